// One connection as the server sees it.
//
//   hello ──> challenged ──> open ──> closing ──> closed ──> removed (once its last handler has returned)
//     │            │          ^          ^
//     ├────────────┼──────────┘          │
//     └────────────┴─────────────────────┘
//
// `challenged`: where the server has keys, and always there; the client's proof is awaited. In place of `open` a
// connection may go to another poll group, and is opened there. `closing`: goodbye is sent,
// messages are ignored. `closed`: the endpoint has ended; calls are cancelled, and what they answer is dropped.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reactor/timer.h"
#include "srpc/push_target.h"
#include "srpc/server.h"
#include "srpc/server_call.h"
#include "srpc/transport.h"

namespace cairn::srpc {

class ServerConnection final : private EndpointEvents {
 public:
  ServerConnection(Server& server, uint64_t number, std::unique_ptr<Endpoint> endpoint);
  ~ServerConnection();

  void start();
  void start_placed(const Introduction& introduction);
  // Says goodbye and ends it.
  void close(Close close);
  // Tells the client to send nothing new; it closes when it has its answers.
  void announce_drain();
  void cancel_calls(Errc reason);
  // The same for those without a sequence; the others go on.
  void lose_calls();

  uint64_t number() const { return number_; }
  // Its hello was answered here.
  bool is_served() const { return served_; }
  const std::string& peer() const { return endpoint_->peer(); }

 private:
  friend class ServerCall;
  friend class PushTarget;
  enum class State : uint8_t { hello, challenged, open, closing, closed };

  void on_message(Incoming& message) override;
  void on_sent() override;
  void on_closed(const Close& close) override;

  void on_hello(const Incoming& message);
  void challenge(const HelloBody& hello, std::span<const std::byte> hello_bytes);
  void on_proof(const Incoming& message);
  // Serves the client here, or gives the connection to the poll group that the client wants.
  void take(const Introduction& introduction);
  void serve_or_refuse(const Introduction& introduction);
  void welcome(const Introduction& introduction);
  void on_request(Incoming& message);
  void on_cancel(uint64_t request_id);
  // Checks what the client was told it may send.
  bool within_credit(const Header& header);
  void on_notice(Incoming& message);
  void refuse_busy(const Header& header, MethodEntry& method, std::string why, Duration retry_after);
  // What stands in front of the metadata, which is taken off. Ends the connection if it makes no sense.
  std::optional<Extensions> extensions_of(Incoming& message);
  // True: it was executed before, or may have been, and needs nothing more; or the connection is closing.
  bool executed_before(const Header& header, const Sequence& sequence, MethodEntry& method);
  void start_call(Incoming& message, MethodEntry& method, const Extensions& extensions);
  void add_call(ServerCall& call, const Header& header);
  void on_notice_done();
  Result<void> push(MethodId method, std::span<const std::byte> metadata);
  void reject(const Header& header, const Error& error, Duration retry_after);

  // All messages go through here: it adds the credits that are owed.
  void send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data);
  void send_owed_credits();
  void on_call_done(ServerCall& call);
  // Ends it with a goodbye that doesn't say what `cause` says: who can't prove himself learns nothing.
  void turn_away(std::string cause);
  void say_goodbye(CloseReason reason, std::string_view text);
  void end(Close why);
  void remove_if_done();
  void arm_timer();
  static void on_timer(void* self);
  void check_timeouts();

  Server& server_;
  Loop& loop_;
  const uint64_t number_;
  std::unique_ptr<Endpoint> endpoint_;
  State state_ = State::hello;
  Close close_;
  bool served_ = false;
  bool paused_ = false;
  uint8_t version_ = kVersionMin;
  uint64_t features_ = 0;
  std::shared_ptr<PushTarget> push_target_;
  Id128 client_id_;
  Time began_;

  // While `challenged`.
  HelloBody hello_;
  Sha256 transcript_{};

  uint32_t client_credits_;       // what the client may still send
  uint32_t owed_credits_ = 0;     // receive slots that are free again, not told yet
  uint64_t bytes_running_ = 0;    // payload of the requests under way
  uint32_t notices_running_ = 0;  // of calls_
  // Of the client's calls with a sequence, once there was one.
  SequenceTable::Channel* sequences_ = nullptr;
  ServerCallTable calls_;
  Timer timer_;
};

}  // namespace cairn::srpc
