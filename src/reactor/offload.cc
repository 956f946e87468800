#include "reactor/offload.h"

#include <pthread.h>
#include <signal.h>

#include "base/assert.h"

namespace cairn {

OffloadPool::OffloadPool(const std::string& name, size_t threads) {
  ASSERT(threads > 0);
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
    (void)pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

OffloadPool::~OffloadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void OffloadPool::submit(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    ASSERT(!stopping_);
    jobs_.push_back(&job);
  }
  changed_.notify_one();
}

void OffloadPool::work() {
  // Signals are the program's business, not a helper's.
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    Job* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = jobs_.front();
      jobs_.pop_front();
    }
    job->run(*job);
  }
}

}  // namespace cairn
