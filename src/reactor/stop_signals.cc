#include "reactor/stop_signals.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace cairn {

StopSignals::StopSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

bool StopSignals::wait(Duration limit) {
  const timespec timeout{.tv_sec = static_cast<time_t>(limit.ns / 1'000'000'000), .tv_nsec = limit.ns % 1'000'000'000};
  // EINTR (another signal, a debugger) counts as none: the caller comes back.
  return sigtimedwait(&set_, nullptr, &timeout) > 0;
}

void StopSignals::wait() {
  int signal = 0;
  while (sigwait(&set_, &signal) == EINTR) {
  }
}

void StopSignals::let_the_next_one_kill() { pthread_sigmask(SIG_UNBLOCK, &set_, nullptr); }

}  // namespace cairn
