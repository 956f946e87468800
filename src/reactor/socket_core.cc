#include "reactor/socket_core.h"

#include <poll.h>
#include <sys/socket.h>

#include "reactor/socket_op.h"

namespace cairn::detail {

SocketCore::SocketCore(Reactor& reactor, Fd fd, Use use)
    : reactor_(reactor),
      fd_(std::move(fd)),
      in_(*this, POLLIN | POLLRDHUP, true, use == Use::connection),
      // A sender that is blocked waits for a third of the buffer to drain; trying each round would send in crumbs.
      out_(*this, POLLOUT, false, true) {}

SocketCore::~SocketCore() {
  reactor_.hot().remove(in_);
  reactor_.hot().remove(out_);
}

void SocketCore::fail_waiters() {
  for (Side* side : {&in_, &out_}) {
    if (side->waiter() != nullptr) side->waiter()->finish(Errc::closed);
  }
}

void SocketCore::close(SocketCore* core) {
  core->fail_waiters();
  // A poll in the ring holds the file open: without the shutdown the peer would hear of the end only when the ring has
  // let go.
  if (core->in_.in_ring() || core->out_.in_ring()) ::shutdown(core->fd(), SHUT_RDWR);
  core->fd_.reset();
  let_go(core);
}

Fd SocketCore::release(SocketCore* core) {
  ASSERT(core->in_.waiter() == nullptr);
  ASSERT(core->out_.waiter() == nullptr);
  Fd fd = std::move(core->fd_);
  let_go(core);
  return fd;
}

void SocketCore::let_go(SocketCore* core) {
  core->closing_ = true;
  for (Side* side : {&core->in_, &core->out_}) {
    core->reactor_.hot().remove(*side);
    side->disarm();
  }
  if (core->in_.in_ring() || core->out_.in_ring()) {
    core->reactor_.linger(*core);
  } else {
    delete core;
  }
}

void SocketCore::Side::wait(SocketOp& op, bool yielded) {
  ASSERT(waiter_ == nullptr);
  waiter_ = &op;
  Reactor& reactor = core_.reactor_;
  waiting_since_ = reactor.now();
  if (yielded) {
    reactor.hot().add(*this, waiting_since_);
  } else if (may_be_hot_ && brisk_ && reactor.spinning() && !reactor.hot().full()) {
    // The poll would only add a completion to each event.
    disarm();
    reactor.hot().add(*this, waiting_since_);
  } else {
    arm();
  }
}

void SocketCore::Side::arm() {
  if (in_ring_) {
    rearm_ = disarming_;
    return;
  }
  in_ring_ = true;
  core_.reactor_.ring().submit(this, [this](io_uring_sqe& sqe) {
    if (multishot_) {
      io_uring_prep_poll_multishot(&sqe, core_.fd(), static_cast<unsigned>(events_));
    } else {
      io_uring_prep_poll_add(&sqe, core_.fd(), static_cast<unsigned>(events_));
    }
  });
}

void SocketCore::Side::disarm() {
  rearm_ = false;
  drained_ = false;
  if (!in_ring_ || disarming_) return;
  disarming_ = true;
  core_.reactor_.ring().cancel(*this);
}

bool SocketCore::Side::try_waiter() {
  SocketOp& op = *waiter_;
  if (!op.attempt()) return false;
  brisk_ = core_.reactor_.now() - waiting_since_ <= HotList::kPatience;
  op.finish(Errc::ok);
  return true;
}

bool SocketCore::Side::try_hot() { return try_waiter(); }

void SocketCore::Side::on_event(RingOp& op, int32_t result, uint32_t flags) {
  auto& side = static_cast<Side&>(op);
  side.drained_ = false;
  if (result > 0 && (result & (POLLRDHUP | POLLHUP | POLLERR)) != 0) side.ended_ = true;
  if ((flags & IORING_CQE_F_MORE) == 0) {
    side.in_ring_ = false;
    side.disarming_ = false;
  }
  SocketCore& core = side.core_;
  if (core.closing_) {
    if (!core.in_.in_ring() && !core.out_.in_ring()) delete &core;
    return;
  }
  const bool rearm = std::exchange(side.rearm_, false);
  if (side.waiter_ == nullptr || side.try_waiter()) return;
  // A false alarm, or the end of a poll that isn't wanted any more (the waiter is hot).
  if (!side.in_ring_ && (rearm || !side.hot())) side.arm();
}

}  // namespace cairn::detail
