// One connection as its client sees it: hello, credits, the table of calls under way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reactor/sync.h"
#include "reactor/timer.h"
#include "srpc/channel.h"
#include "srpc/extensions.h"
#include "srpc/handshake.h"
#include "srpc/transport.h"

namespace cairn::srpc::detail {

class PendingCall;

// One ping, in the frame of whoever waits for its pong.
struct PendingPing {
  explicit PendingPing(Loop& loop) : ended(loop) {}
  uint64_t id = 0;
  Event ended;
  // One of these once it has ended; the connection knows it no longer, and may be gone.
  bool answered = false;
  bool lost = false;
};

class ClientConnection final : private EndpointEvents {
 public:
  ClientConnection(Channel& channel, std::unique_ptr<Endpoint> endpoint);
  ~ClientConnection();

  // Once, first. When it returns ok the connection takes calls.
  Task<Result<void>> hello(CancelToken token);
  const HelloReplyBody& agreed() const { return agreed_; }

  bool can_send(PendingCall& call) const;
  // Only if can_send. A call that the server would never take ends at once.
  void send(PendingCall& call);
  // The caller of a sent call is gone. Its slot stays taken until the answer comes, which is dropped.
  void abandon(PendingCall& call, bool tell_peer);

  // `ping` outlives the call.
  Task<Result<void>> ping(PendingPing& ping, CancelToken token);

  size_t in_flight() const { return in_flight_; }
  const Endpoint& endpoint() const { return *endpoint_; }
  bool by_reference() const { return endpoint_->caps().by_reference; }
  void close(Close close);
  // Set once the connection has ended and all its calls have failed.
  Event& closed() { return closed_event_; }
  const Close& why_closed() const { return close_; }

 private:
  // A request id is (uses of the slot << 16 | slot): a reply finds its call without a search, and an old reply can't be
  // taken for that of a later call.
  struct Slot {
    PendingCall* call = nullptr;  // null while in use: the call was given up
    uint64_t uses = 0;
    uint32_t data_bytes = 0;
    bool in_use = false;
  };
  static constexpr unsigned kSlotBits = 16;
  static constexpr uint64_t kNoticeBit = uint64_t{1} << 63;

  void send_notice(PendingCall& call);
  void send_request(Kind kind, uint64_t id, PendingCall& call, const std::optional<Sequence>& sequence,
                    mem::BufChain&& data);
  void on_message(Incoming& message) override;
  mem::BufChain memory_for(const Header& header) override;
  void on_closed(const Close& close) override;
  // As they are sent: without a key they end before it.
  std::span<const std::byte> hello_bytes() const;
  // The slot that a reply names, or null.
  Slot* slot_of(const Header& header);
  void on_challenge(const Incoming& message);
  void on_hello_reply(const Incoming& message);
  // Whether the server has proved that it knows the key, or neither side has one. Ends the connection if not.
  bool is_trusted(const Incoming& hello_reply);
  void on_reply(Incoming& message);
  void on_pong(uint64_t id);
  void on_goodbye(const Incoming& message);
  void add_credits(uint16_t credits);
  void broken(CloseReason reason, std::string text);
  // The server isn't told why: it may be anybody.
  void distrust(std::string cause);
  void say_goodbye(CloseReason reason, std::string_view text);
  void end(Close why);
  void send_control(Kind kind, uint64_t request_id);
  void release_slot(uint32_t slot);
  void close_when_idle();
  static void on_timer(void* self);
  void keep_alive();

  Channel& channel_;
  Loop& loop_;
  std::unique_ptr<Endpoint> endpoint_;
  Event hello_event_;
  Event closed_event_;
  bool hello_done_ = false;
  HelloBody hello_;
  std::optional<SessionKey> session_;  // from the challenge to the hello reply
  bool draining_ = false;
  bool closing_ = false;
  Close close_;
  HelloReplyBody agreed_;

  uint32_t credits_ = 0;  // Invariant: credits_ <= agreed_.credits
  uint64_t bytes_in_flight_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  size_t in_flight_ = 0;  // slots in use
  uint64_t notices_ = 0;  // sent

  std::vector<PendingPing*> pings_;
  uint64_t next_ping_ = 1;  // 0: a sign of life that nobody waits for

  Time last_sent_;
  Timer timer_;
};

}  // namespace cairn::srpc::detail
