// SocketPoll: notifications about one socket by the reactor's ring, for when it isn't tried each round.
#pragma once

#include "reactor/reactor.h"
#include "reactor/ring.h"

namespace cairn::srpc::tcp {

class SocketPoll final : private Reactor::Lingering {
 public:
  class Events {
   public:
    // `hung_up`: the peer has ended its direction, or the connection failed. It isn't told twice.
    virtual void on_poll_in(bool hung_up) = 0;
    virtual void on_poll_out() = 0;

   protected:
    ~Events() = default;
  };

  // Frees itself when the ring lets go after let_go(): the ring may still point to it then.
  static SocketPoll* make(Reactor& reactor, int fd, Events& events) { return new SocketPoll(reactor, fd, events); }
  // No event comes afterwards.
  void let_go();

  // Readable: multishot, an event each time more comes. What is there already counts.
  void arm_in() { in_.arm(); }
  void disarm_in() { in_.disarm(); }
  // Writable: once.
  void arm_out() { out_.arm(); }
  // The ring holds the file open.
  bool in_ring() const { return in_.in_ring() || out_.in_ring(); }

 private:
  class Side final : public RingOp {
   public:
    Side(SocketPoll& owner, short mask, bool multishot)
        : RingOp(&on_event), owner_(owner), mask_(mask), multishot_(multishot) {}
    void arm();
    void disarm();
    bool in_ring() const { return in_ring_; }

   private:
    static void on_event(RingOp& op, int32_t result, uint32_t flags);

    SocketPoll& owner_;
    short mask_;
    bool multishot_;
    bool wanted_ = false;
    bool in_ring_ = false;
    bool disarming_ = false;
  };

  SocketPoll(Reactor& reactor, int fd, Events& events);
  ~SocketPoll() override = default;

  Reactor& reactor_;
  int fd_;
  Events* events_;  // null after let_go
  Side in_;
  Side out_;
};

}  // namespace cairn::srpc::tcp
