#include "srpc/tcp/socket_poll.h"

#include <poll.h>

namespace cairn::srpc::tcp {

SocketPoll::SocketPoll(Reactor& reactor, int fd, Events& events)
    : reactor_(reactor), fd_(fd), events_(&events), in_(*this, POLLIN | POLLRDHUP, true), out_(*this, POLLOUT, false) {}

void SocketPoll::let_go() {
  events_ = nullptr;
  in_.disarm();
  out_.disarm();
  if (in_ring()) {
    reactor_.linger(*this);
  } else {
    delete this;
  }
}

void SocketPoll::Side::arm() {
  wanted_ = true;
  // When it is being disarmed, its end arms it anew.
  if (in_ring_) return;
  in_ring_ = true;
  owner_.reactor_.ring().submit(this, [this](io_uring_sqe& sqe) {
    if (multishot_) {
      io_uring_prep_poll_multishot(&sqe, owner_.fd_, static_cast<unsigned>(mask_));
    } else {
      io_uring_prep_poll_add(&sqe, owner_.fd_, static_cast<unsigned>(mask_));
    }
  });
}

void SocketPoll::Side::disarm() {
  wanted_ = false;
  if (!in_ring_ || disarming_) return;
  disarming_ = true;
  owner_.reactor_.ring().submit(nullptr, [this](io_uring_sqe& sqe) {
    io_uring_prep_poll_remove(&sqe, reinterpret_cast<uintptr_t>(static_cast<RingOp*>(this)));
  });
}

void SocketPoll::Side::on_event(RingOp& op, int32_t result, uint32_t flags) {
  auto& side = static_cast<Side&>(op);
  SocketPoll& owner = side.owner_;
  if ((flags & IORING_CQE_F_MORE) == 0) {
    side.in_ring_ = false;
    side.disarming_ = false;
  }
  if (owner.events_ == nullptr) {
    if (!owner.in_ring()) delete &owner;
    return;
  }
  if (!side.wanted_) return;
  if (side.multishot_) {
    // It may have ended because the completion queue was full, or have been disarmed and wanted again meanwhile.
    if (!side.in_ring_) side.arm();
    owner.events_->on_poll_in(result > 0 && (result & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
  } else if (!side.in_ring_) {
    side.wanted_ = false;
    owner.events_->on_poll_out();
  }
}

}  // namespace cairn::srpc::tcp
