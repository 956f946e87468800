// SocketCore: the part of a socket that the reactor sees: who waits for which direction, and how the reactor learns
// that it may go on. Used by Socket and Listener only.
//
// A direction's waiter tries its system call at once. When that would block, it waits in one of two ways:
//
//      would block, spinning, list has room         misses too often, or the reactor goes to sleep
//   ─────────────────────────────────────► hot ────────────────────────────────────────────────────► armed
//                                           ▲                                                          │
//                                           └── events keep coming within microseconds ────────────────┘
//
// hot: tried again each round. armed: a poll in the ring, multishot for receiving, so that a quiet connection costs
// nothing and a waking one no system call of its own. A poll stays armed when nobody waits: its event only leads to a
// try that fails.
#pragma once

#include <coroutine>
#include <cstdint>

#include "base/fd.h"
#include "reactor/hot_list.h"
#include "reactor/reactor.h"
#include "reactor/ring.h"

namespace cairn::detail {

class SocketOp;

class SocketCore final : public Reactor::Lingering {
 public:
  enum class Use : uint8_t { connection, listener };

  SocketCore(Reactor& reactor, Fd fd, Use use);
  ~SocketCore() override;

  // Ends waits with Errc::closed, closes or gives away the descriptor, and frees the core as soon as the ring lets go.
  static void close(SocketCore* core);
  static Fd release(SocketCore* core);

  Reactor& reactor() { return reactor_; }
  int fd() const { return fd_.get(); }

 private:
  friend class SocketOp;

  class Side final : public HotSource, public RingOp {
   public:
    Side(SocketCore& core, short events, bool multishot, bool may_be_hot)
        : RingOp(&on_event), core_(core), events_(events), multishot_(multishot), may_be_hot_(may_be_hot) {}

    // `op` would block. `yielded`: it didn't try, because its coroutine had its share of this round.
    void wait(SocketOp& op, bool yielded);
    void forget() {
      waiter_ = nullptr;
      core_.reactor_.hot().remove(*this);
    }
    // A receive got less than it asked for. If a poll is armed, the next byte is an event, and until it comes there is
    // no use in trying. (Unless the peer has ended: then the end was part of an event that has passed.)
    void note_short_receive() { drained_ = in_ring_ && !disarming_ && !ended_; }
    bool drained() const { return drained_; }
    SocketOp* waiter() { return waiter_; }
    bool in_ring() const { return in_ring_; }
    // The poll ends; its last completion comes by itself.
    void disarm();

   private:
    static void on_event(RingOp& op, int32_t result, uint32_t flags);
    bool try_hot() override;
    void cool_down() override { arm(); }
    void arm();
    bool try_waiter();

    SocketCore& core_;
    SocketOp* waiter_ = nullptr;
    Time waiting_since_;
    short events_;
    bool multishot_;
    bool may_be_hot_;
    bool in_ring_ = false;    // a poll is armed, or its end is under way
    bool disarming_ = false;  // its end is under way
    bool rearm_ = false;      // arm anew when it has ended
    bool drained_ = false;    // nothing to receive until the next event
    bool ended_ = false;      // an event told of the peer's end, or of an error
    bool brisk_ = true;       // the last event came within HotList::kPatience
  };

  void fail_waiters();
  static void let_go(SocketCore* core);

  Reactor& reactor_;
  Fd fd_;
  Side in_;
  Side out_;
  bool closing_ = false;
};

}  // namespace cairn::detail
