// SocketPoll: notifications about one socket by the reactor's ring, for when it isn't tried each round.
#pragma once

#include "reactor/reactor.h"
#include "reactor/ring.h"

namespace cairn::srpc::stream {

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

  // Readable: an event each time more comes, from now until disarm_in() has taken effect. What is there already counts
  // if it was disarmed; else look for yourself.
  void arm_in() { in_.arm(); }
  void disarm_in() { in_.disarm(); }
  // Writable: once.
  void arm_out() { out_.arm(); }
  // The ring holds the file open.
  bool in_ring() const { return in_.in_ring() || out_.in_ring(); }

 private:
  class Side {
   public:
    Side(SocketPoll& owner, short mask, bool multishot)
        : owner_(owner), mask_(mask), multishot_(multishot), poll_(*this, &on_event), removal_(*this, &on_removed) {}
    void arm();
    void disarm();
    bool in_ring() const { return polling_ || removing_; }

   private:
    struct Op final : RingOp {
      Op(Side& s, Complete function) : RingOp(function), side(s) {}
      Side& side;
    };
    static void on_event(RingOp& op, int32_t result, uint32_t flags);
    static void on_removed(RingOp& op, int32_t result, uint32_t flags);

    SocketPoll& owner_;
    short mask_;
    bool multishot_;
    bool wanted_ = false;
    bool polling_ = false;   // poll_ is in the ring
    bool removing_ = false;  // removal_ is in the ring
    Op poll_;
    Op removal_;
  };

  SocketPoll(Reactor& reactor, int fd, Events& events);
  ~SocketPoll() override = default;

  void free_if_done() {
    if (events_ == nullptr && !in_ring()) delete this;
  }

  Reactor& reactor_;
  int fd_;
  Events* events_;  // null after let_go
  Side in_;
  Side out_;
};

}  // namespace cairn::srpc::stream
