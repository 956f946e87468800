#include "srpc/stream/socket_poll.h"

#include <poll.h>

namespace cairn::srpc::stream {

SocketPoll::SocketPoll(Reactor& reactor, int fd, Events& events)
    : reactor_(reactor), fd_(fd), events_(&events), in_(*this, POLLIN | POLLRDHUP, true), out_(*this, POLLOUT, false) {}

void SocketPoll::let_go() {
  events_ = nullptr;
  in_.disarm();
  out_.disarm();
  if (in_ring()) reactor_.linger(*this);
  free_if_done();
}

void SocketPoll::Side::arm() {
  wanted_ = true;
  // If it is being removed, its end arms it anew.
  if (polling_) return;
  polling_ = true;
  owner_.reactor_.ring().submit(&poll_, [this](io_uring_sqe& sqe) {
    if (multishot_) {
      io_uring_prep_poll_multishot(&sqe, owner_.fd_, static_cast<unsigned>(mask_));
    } else {
      io_uring_prep_poll_add(&sqe, owner_.fd_, static_cast<unsigned>(mask_));
    }
  });
}

void SocketPoll::Side::disarm() {
  wanted_ = false;
  if (!polling_ || removing_) return;
  removing_ = true;
  owner_.reactor_.ring().submit(&removal_, [this](io_uring_sqe& sqe) {
    io_uring_prep_poll_remove(&sqe, reinterpret_cast<uintptr_t>(static_cast<RingOp*>(&poll_)));
  });
}

void SocketPoll::Side::on_removed(RingOp& op, int32_t, uint32_t) {
  Side& side = static_cast<Op&>(op).side;
  side.removing_ = false;
  // EALREADY: an event was being delivered just then, and the poll goes on. (ENOENT: it has ended by itself.) When the
  // poll does end, it says so in a completion of its own.
  if (!side.wanted_ && side.polling_) side.disarm();
  side.owner_.free_if_done();
}

void SocketPoll::Side::on_event(RingOp& op, int32_t result, uint32_t flags) {
  Side& side = static_cast<Op&>(op).side;
  SocketPoll& owner = side.owner_;
  if ((flags & IORING_CQE_F_MORE) == 0) side.polling_ = false;
  if (owner.events_ == nullptr) return owner.free_if_done();
  if (side.multishot_) {
    // It may have ended because the completion queue was full, or have been removed and wanted again meanwhile.
    if (!side.polling_ && side.wanted_) side.arm();
    // Also when nobody wants it now: what is said of the end isn't said again.
    owner.events_->on_poll_in(result > 0 && (result & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
  } else if (side.wanted_ && !side.polling_) {
    side.wanted_ = false;
    owner.events_->on_poll_out();
  }
}

}  // namespace cairn::srpc::stream
