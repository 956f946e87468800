// Ring: one io_uring, with what its reactor needs of it. Set up so that completions wait in the kernel until the
// reactor asks (DEFER_TASKRUN): no interrupt of the reactor's thread, and a flag in shared memory tells without a
// system call whether asking is worth it.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "base/time.h"

namespace cairn {

// One operation in the ring, embedded in whatever wants to know. Stays in place until its last completion.
struct RingOp {
  using Complete = void (*)(RingOp& op, int32_t result, uint32_t flags);
  explicit RingOp(Complete function) : complete(function) {}
  RingOp(const RingOp&) = delete;
  RingOp& operator=(const RingOp&) = delete;

  Complete complete;
};

class Ring {
 public:
  static constexpr unsigned kSubmitAt = 4;

  static Result<std::unique_ptr<Ring>> create(unsigned entries, Counter& enters);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Only the thread that calls this may submit from then on. Once.
  Result<void> enable();

  // Queues one operation: `prepare(sqe)` calls an io_uring_prep function. It is submitted by the next enter() or
  // wait(), or with others as soon as there are kSubmitAt of them: a device shall not idle while a long round of the
  // reactor goes on. With op == nullptr nobody hears of the completion.
  template <typename Prepare>
  void submit(RingOp* op, Prepare&& prepare) {
    io_uring_sqe& sqe = next_sqe();
    std::forward<Prepare>(prepare)(sqe);
    io_uring_sqe_set_data(&sqe, op);
    if (enabled_ && io_uring_sq_ready(&ring_) >= kSubmitAt) submit_queued();
  }

  // Ends an operation early: its last completion comes soon, with -ECANCELED unless it was faster. (Not POLL_REMOVE for
  // polls: that gives up, leaving the poll armed, when an event is just being delivered.)
  void cancel(RingOp& op);

  // Whether enter() would find something to do: operations to submit, or completions that wait in the kernel.
  bool wants_enter() const;
  // One system call: submits, and fetches what has completed. Doesn't wait.
  void enter();
  // Submits, then waits until something completes or the timeout passes.
  void wait(Duration timeout);
  // Calls the operations whose completions are in the ring; no system call. Returns how many.
  size_t reap();
  bool has_completions() const;

  // A slot in the ring's own file table, which saves the kernel a reference count per request. -1 when the table is
  // full: use the descriptor. Before enable(), or on the ring's thread.
  int register_file(int fd);
  void unregister_file(int slot);

 private:
  explicit Ring(Counter& enters) : enters_(enters) {}
  io_uring_sqe& next_sqe();
  void submit_queued();

  io_uring ring_{};
  bool open_ = false;
  bool enabled_ = false;
  std::vector<int> free_files_;
  Counter& enters_;  // one system call each
};

}  // namespace cairn
