#include "reactor/ring.h"

#include <cerrno>
#include <cstring>

#include "base/assert.h"

namespace cairn {
namespace {

constexpr unsigned kFiles = 64;

}  // namespace

Result<std::unique_ptr<Ring>> Ring::create(unsigned entries, Counter& enters) {
  std::unique_ptr<Ring> ring(new Ring(enters));
  io_uring_params params{};
  // R_DISABLED: made on one thread, driven by another (enable()).
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                 IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
  // Polls complete many times per submission. What doesn't fit the kernel keeps, so this is about speed only.
  params.cq_entries = entries * 4;
  const int error = io_uring_queue_init_params(entries, &ring->ring_, &params);
  if (error < 0) {
    auto failed = error_from_errno(-error, "io_uring_setup");
    if (error == -ENOSYS || error == -EPERM) {
      return std::move(failed).with_context(
          "io_uring is not available: allow it (sysctl kernel.io_uring_disabled=0; in a container, a seccomp profile "
          "that permits io_uring)");
    }
    if (error == -EINVAL) return std::move(failed).with_context("io_uring of Linux 6.1 or newer is needed");
    return failed;
  }
  ring->open_ = true;
  // An optimisation only: without the table the slots stay empty.
  if (io_uring_register_files_sparse(&ring->ring_, kFiles) == 0) {
    for (int slot = static_cast<int>(kFiles); slot > 0;) ring->free_files_.push_back(--slot);
  }
  return ring;
}

Ring::~Ring() {
  if (open_) io_uring_queue_exit(&ring_);
}

Result<void> Ring::enable() {
  // liburing 2.3 declares io_uring_enable_rings() but doesn't export it.
  const int error = io_uring_register(static_cast<unsigned>(ring_.ring_fd), IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  if (error < 0) return error_from_errno(-error, "io_uring_enable_rings");
  enabled_ = true;
  return {};
}

int Ring::register_file(int fd) {
  if (free_files_.empty()) return -1;
  const int slot = free_files_.back();
  if (io_uring_register_files_update(&ring_, static_cast<unsigned>(slot), &fd, 1) != 1) return -1;
  free_files_.pop_back();
  return slot;
}

void Ring::unregister_file(int slot) {
  const int none = -1;
  // Fails on another thread than the ring's, at the end of the program: the ring goes next and drops the file.
  if (io_uring_register_files_update(&ring_, static_cast<unsigned>(slot), &none, 1) == 1) free_files_.push_back(slot);
}

io_uring_sqe& Ring::next_sqe() {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  // Full: hand over what is there. The kernel refuses only while it is out of memory or its completion backlog is
  // long; enter() then takes completions into the ring until there is room.
  while (sqe == nullptr) {
    ASSERT(enabled_);  // that much before the reactor runs is a bug
    enter();
    sqe = io_uring_get_sqe(&ring_);
  }
  return *sqe;
}

void Ring::cancel(RingOp& op) {
  submit(nullptr, [&op](io_uring_sqe& sqe) { io_uring_prep_cancel(&sqe, &op, 0); });
}

bool Ring::wants_enter() const {
  return io_uring_sq_ready(&ring_) > 0 ||
         (IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

void Ring::enter() {
  enters_.add();
  const int result = io_uring_submit_and_get_events(&ring_);
  ASSERT(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY || result == -ETIME);
}

void Ring::submit_queued() {
  enters_.add();
  const int result = io_uring_submit(&ring_);
  // What the kernel doesn't take now is submitted by the next enter().
  ASSERT(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY);
}

void Ring::wait(Duration timeout) {
  enters_.add();
  const int64_t ns = timeout.ns < 0 ? 0 : timeout.ns;
  __kernel_timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
  io_uring_cqe* first = nullptr;
  const int result = io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
  ASSERT(result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN || result == -EBUSY);
}

size_t Ring::reap() {
  size_t count = 0;
  // A completion's function may submit and so enter(): head and tail are read anew each time.
  while (has_completions()) {
    const io_uring_cqe cqe = ring_.cq.cqes[*ring_.cq.khead & ring_.cq.ring_mask];
    io_uring_cq_advance(&ring_, 1);
    ++count;
    auto* op = static_cast<RingOp*>(io_uring_cqe_get_data(&cqe));
    if (op != nullptr) op->complete(*op, cqe.res, cqe.flags);
  }
  return count;
}

bool Ring::has_completions() const { return io_uring_cq_ready(&ring_) > 0; }

}  // namespace cairn
