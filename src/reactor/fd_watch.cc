#include "reactor/fd_watch.h"

#include <poll.h>

#include "reactor/ring.h"

namespace cairn {

// The poll in the ring, which may outlive the watch by a moment.
class FdWatch::Poll final : public Reactor::Lingering, public RingOp {
 public:
  Poll(Reactor& reactor, int fd) : RingOp(&on_event), reactor_(reactor), fd_(fd), event_(reactor) { arm(); }

  static void let_go(Poll* poll) {
    poll->closing_ = true;
    if (!poll->armed_) {
      delete poll;
      return;
    }
    poll->reactor_.ring().cancel(*poll);
    poll->reactor_.linger(*poll);
  }

  Event& event() { return event_; }

 private:
  void arm() {
    armed_ = true;
    reactor_.ring().submit(this, [this](io_uring_sqe& sqe) { io_uring_prep_poll_multishot(&sqe, fd_, POLLIN); });
  }

  static void on_event(RingOp& op, int32_t, uint32_t flags) {
    auto& poll = static_cast<Poll&>(op);
    if ((flags & IORING_CQE_F_MORE) == 0) poll.armed_ = false;
    if (poll.closing_) {
      if (!poll.armed_) delete &poll;
      return;
    }
    poll.event_.set();
    if (!poll.armed_) poll.arm();
  }

  Reactor& reactor_;
  int fd_;
  Event event_;
  bool armed_ = false;
  bool closing_ = false;
};

FdWatch::FdWatch(Reactor& reactor, int fd) : poll_(new Poll(reactor, fd)) {}
FdWatch::~FdWatch() { Poll::let_go(poll_); }

Task<Result<void>> FdWatch::readable(CancelToken token) {
  CO_TRY(co_await poll_->event().wait(token));
  poll_->event().reset();
  co_return Result<void>();
}

}  // namespace cairn
