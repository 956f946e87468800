#include "reactor/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "reactor/fd_watch.h"

namespace cairn {

Result<Signals> Signals::block(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return error_from_errno(error, "pthread_sigmask");
  }
  Fd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return error_from_errno(errno, "signalfd");
  return Signals(std::move(fd));
}

Task<Result<int>> Signals::next(Reactor& reactor, CancelToken token) {
  FdWatch watch(reactor, fd_.get());
  for (;;) {
    signalfd_siginfo info{};
    const ssize_t n = ::read(fd_.get(), &info, sizeof info);
    if (n == sizeof info) co_return static_cast<int>(info.ssi_signo);
    if (n < 0 && errno != EAGAIN && errno != EINTR) co_return error_from_errno(errno, "read signals");
    CO_TRY(co_await watch.readable(token));
  }
}

}  // namespace cairn
