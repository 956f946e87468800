// Link: a queue pair with its slots, and everything that is under way on it. It outlives the stream that used it until
// the device has let go of all memory.
//
//   prepared ─ connect() ─> open ─ retire() ─> draining ─ sent, or QueueOptions::drain ─> flushing ─ all back ─> gone
//                             └─ failed: the same, but for sending ──────────────────────^
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mem/buf_chain.h"
#include "srpc/rdma/one_sided_queue.h"
#include "srpc/rdma/qp_address.h"
#include "srpc/rdma/queue_options.h"
#include "srpc/rdma/rail.h"
#include "srpc/rdma/rdma_metrics.h"
#include "srpc/rdma/send_queue.h"
#include "srpc/rdma/slot.h"
#include "srpc/rdma/slot_memory.h"

namespace cairn::srpc::rdma {

class Link final : private SendQueue::Retired, private OneSidedQueue::Poster {
 public:
  // Of whoever uses it: there may be something to receive, to send, or to learn.
  class User {
   public:
    virtual void on_link_news() = 0;

   protected:
    ~User() = default;
  };

  // A queue pair in INIT with its receives posted. `number` names it in completions.
  static VerbResult<std::unique_ptr<Link>> make(Rail& rail, const Rail::Choice& choice, Role role, uint32_t number,
                                                uint32_t psn, const QueueOptions& options, RdmaMetrics& metrics);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  // Destroys the queue pair, if destroy() hasn't, and then gives back everything.
  ~Link();

  uint32_t number() const { return number_; }
  Role role() const { return role_; }
  Rail& rail() const { return rail_; }
  const QpAddress& local() const { return local_; }
  VerbResult<void> connect(const QpAddress& remote);
  void set_user(User* user) { user_ = user; }

  // --- Receiving ---
  size_t available() const { return available_; }
  // The peer has sent its last bytes, and they have been received.
  bool ended() const { return end_received_ && available_ == 0; }
  // Up to available() bytes.
  size_t receive(std::span<const iovec> vectors);

  // --- Sending ---
  // As much as may go now; 0: nothing may, and on_link_news() comes when it may.
  size_t send(std::span<const iovec> vectors);
  void end_sending();
  bool may_send() const;
  // connect() was successful.
  OneSidedQueue& one_sided() { return session_->one_sided; }

  // --- The end ---
  bool failed() const { return failure_.has_value(); }
  const std::string& failure() const { return *failure_; }
  void fail(std::string why);
  // No more is sent or received; `kept` is memory that the peer may still reach.
  void retire(std::vector<mem::BufChain>&& kept);
  // What was sent has arrived, as far as it will.
  bool sent_all() const { return failed() || !session_ || (session_->sends.empty() && !end_due_); }
  void flush();
  // The device has let go of everything that was posted.
  bool flushed() const {
    // Where nothing will be told any more there is nothing to wait for.
    if (unflushable_ || queue_->broken) return true;
    return (!session_ || session_->sends.empty()) && receives_ == 0;
  }
  VerbResult<void> destroy();

  void on_completion(bool is_receive, uint32_t index, const WorkCompletion& completion);
  // The part of a completion's id that tells receives from sends.
  static constexpr uint64_t kReceive = uint64_t{1} << 31;

 private:
  struct Arrived {
    uint16_t slot;
    uint32_t offset;  // of the next byte
    uint32_t end;
  };

  // What depends on what the two sides have told each other.
  struct Session {
    Session(Link& link, const QpAddress& remote, uint32_t reads);
    Credits credits;
    uint32_t slot_bytes;  // the longest SEND
    SendQueue sends;
    OneSidedQueue one_sided;
  };

  Link(Rail& rail, const Rail::Choice& choice, Role role, uint32_t number, const QueueOptions& options,
       RdmaMetrics& metrics);
  VerbResult<void> set_up(uint32_t psn);
  uint32_t send_slots() const { return options_.slots + 2U; }
  std::span<std::byte> receive_slot(uint32_t index) const;
  std::span<std::byte> send_slot(uint32_t index) const;
  VerbResult<void> post_receive(uint32_t slot);
  void repost(uint32_t slot);
  void on_received(uint32_t slot, uint32_t bytes);
  bool room_for_bytes() const;
  // The next slot, filled with so many bytes behind its header.
  void send_one(uint32_t bytes, uint8_t flags);
  // The end, and credits that are owed and that nothing else carries.
  void send_control();
  void on_retired(SendRequest::Kind kind, bool ok) override;
  bool post(const SendRequest& request) override;
  bool submit(const SendRequest& request);
  void set_failed(std::string why);
  uint64_t id_base() const { return uint64_t{number_} << 32; }
  void tell() {
    if (user_ != nullptr) user_->on_link_news();
  }

  Rail& rail_;
  Role role_;
  uint32_t number_;
  QueueOptions options_;
  RdmaMetrics& metrics_;
  User* user_ = nullptr;
  Rail::Choice choice_;
  QpAddress local_;

  Rail::Queue* queue_ = nullptr;
  SlotMemory* slot_memory_ = nullptr;
  SlotMemory::Block memory_;
  std::unique_ptr<VerbsQp> qp_;
  std::optional<Session> session_;

  uint32_t receives_ = 0;         // posted
  std::vector<Arrived> arrived_;  // a ring of `slots`
  size_t first_arrived_ = 0;
  size_t arrived_count_ = 0;
  size_t available_ = 0;  // bytes in them
  bool end_received_ = false;

  uint32_t next_send_slot_ = 0;
  uint32_t send_slots_used_ = 0;
  bool may_post_ = false;  // the queue pair is in RTS
  bool end_due_ = false;
  bool end_sent_ = false;
  bool retired_ = false;
  bool in_error_ = false;     // the queue pair
  bool unflushable_ = false;  // it couldn't be brought there
  std::optional<std::string> failure_;
  std::vector<mem::BufChain> kept_;
};

}  // namespace cairn::srpc::rdma
