// Messages there and back over TCP on loopback between two threads: through two reactors' Sockets, or through what the
// system offers bare (non-blocking calls in a loop, or epoll). Prints one JSON document.
//
//   socket_pingpong KIND [SIZE [DEPTH [SECONDS]]]     KIND: performance, economy, automatic, bare-poll, bare-epoll
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "reactor/listener.h"
#include "reactor/reactor.h"
#include "reactor/socket.h"

namespace cairn {
namespace {

struct Plan {
  std::string kind = "performance";
  size_t size = 64;
  size_t depth = 1;
  double seconds = 1;
};

struct Outcome {
  std::vector<double> round_trips_us;
  double elapsed = 0;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto sum = [](timeval a, timeval b) {
    return static_cast<double>(a.tv_sec + b.tv_sec) + static_cast<double>(a.tv_usec + b.tv_usec) / 1e6;
  };
  return sum(usage.ru_utime, usage.ru_stime);
}

[[noreturn]] void die(std::string_view what) {
  fmt::print(stderr, "socket_pingpong: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

// Two connected TCP sockets.
std::pair<Fd, Fd> connect_pair() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  Address at = Address::loopback(0);
  if (::bind(listener.get(), at.raw(), at.raw_size()) < 0 || ::listen(listener.get(), 1) < 0) die("listen");
  sockaddr_in name{};
  socklen_t length = sizeof name;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length);
  Fd client(::socket(AF_INET, SOCK_STREAM, 0));
  if (::connect(client.get(), reinterpret_cast<sockaddr*>(&name), length) < 0) die("connect");
  Fd server(::accept(listener.get(), nullptr, nullptr));
  for (const Fd* fd : {&client, &server}) {
    const int on = 1;
    ::setsockopt(fd->get(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
  }
  return {std::move(client), std::move(server)};
}

// --- bare ---

// Waits for readability its own way, then receives what is there.
using Receive = std::function<size_t(int fd, std::byte* into, size_t size)>;

size_t poll_receive(int fd, std::byte* into, size_t size) {
  for (;;) {
    const ssize_t n = ::recv(fd, into, size, MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EAGAIN) return 0;
    __builtin_ia32_pause();
  }
}

Receive epoll_receive(int fd) {
  const int epoll = ::epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  return [epoll](int socket, std::byte* into, size_t size) -> size_t {
    for (;;) {
      const ssize_t n = ::recv(socket, into, size, MSG_DONTWAIT);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EAGAIN) return 0;
      epoll_event got{};
      (void)::epoll_wait(epoll, &got, 1, -1);
    }
  };
}

void send_bare(int fd, const std::byte* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

Outcome run_bare(const Plan& plan) {
  auto [client, server] = connect_pair();
  const bool epoll = plan.kind == "bare-epoll";
  const SystemClock clock;
  std::thread echo([&, fd = server.get()] {
    const Receive receive = epoll ? epoll_receive(fd) : Receive(&poll_receive);
    std::vector<std::byte> buffer(std::max<size_t>(plan.size * plan.depth, 65536));
    while (const size_t n = receive(fd, buffer.data(), buffer.size())) send_bare(fd, buffer.data(), n);
  });
  const Receive receive = epoll ? epoll_receive(client.get()) : Receive(&poll_receive);
  std::vector<std::byte> out(plan.size);
  std::vector<std::byte> in(std::max<size_t>(plan.size * plan.depth, 65536));
  Outcome outcome;
  const Time start = clock.now();
  Time sent = start;
  for (size_t i = 0; i < plan.depth; ++i) send_bare(client.get(), out.data(), out.size());
  size_t partial = 0;
  while ((sent - start).seconds() < plan.seconds) {
    partial += receive(client.get(), in.data(), in.size());
    for (; partial >= plan.size; partial -= plan.size) {
      const Time now = clock.now();
      outcome.round_trips_us.push_back(static_cast<double>((now - sent).ns) / 1e3);
      sent = now;
      send_bare(client.get(), out.data(), out.size());
    }
  }
  outcome.elapsed = (sent - start).seconds();
  ::shutdown(client.get(), SHUT_RDWR);
  echo.join();
  return outcome;
}

// --- reactors ---

Task<void> echo(Socket socket, size_t size) {
  std::vector<std::byte> buffer(size);
  for (;;) {
    auto n = co_await socket.recv(buffer);
    if (!n || *n == 0) co_return;
    if (!co_await socket.send_all(std::span<const std::byte>(buffer.data(), *n))) co_return;
  }
}

Task<void> ask(Socket socket, const Plan* plan, Outcome* outcome) {
  const SystemClock clock;
  const std::vector<std::byte> out(plan->size);
  std::vector<std::byte> in(std::max<size_t>(plan->size * plan->depth, 65536));
  const Time start = clock.now();
  Time sent = start;
  for (size_t i = 0; i < plan->depth; ++i) {
    if (!co_await socket.send_all(out)) co_return;
  }
  size_t partial = 0;
  while ((sent - start).seconds() < plan->seconds) {
    auto n = co_await socket.recv(in);
    if (!n || *n == 0) co_return;
    for (partial += *n; partial >= plan->size; partial -= plan->size) {
      const Time now = clock.now();
      outcome->round_trips_us.push_back(static_cast<double>((now - sent).ns) / 1e3);
      sent = now;
      if (!co_await socket.send_all(out)) co_return;
    }
  }
  outcome->elapsed = (sent - start).seconds();
}

Outcome run_reactors(const Plan& plan) {
  const Mode mode = plan.kind == "economy"     ? Mode::economy
                    : plan.kind == "automatic" ? Mode::automatic
                                               : Mode::performance;
  auto [client, server] = connect_pair();
  std::thread echo_thread([&, fd = std::move(server)]() mutable {
    SeededRng rng(1);
    Registry registry;
    auto reactor = *Reactor::create({.index = 1, .mode = mode, .rng = rng, .registry = registry});
    reactor->run_task(&echo, Socket(*reactor, std::move(fd)), std::max<size_t>(plan.size * plan.depth, 65536));
  });
  SeededRng rng(2);
  Registry registry;
  auto reactor = *Reactor::create({.index = 0, .mode = mode, .rng = rng, .registry = registry});
  Outcome outcome;
  reactor->run_task(&ask, Socket(*reactor, std::move(client)), &plan, &outcome);
  echo_thread.join();
  if (std::getenv("PINGPONG_METRICS") != nullptr) {
    fmt::print(stderr, "{}", Registry::expose({{&registry, "reactor=\"0\""}}));
  }
  return outcome;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  using namespace cairn;
  Plan plan;
  if (argc > 1) plan.kind = argv[1];
  if (argc > 2) plan.size = std::strtoul(argv[2], nullptr, 10);
  if (argc > 3) plan.depth = std::strtoul(argv[3], nullptr, 10);
  if (argc > 4) plan.seconds = std::strtod(argv[4], nullptr);
  const double cpu_before = cpu_seconds();
  auto outcome = plan.kind.starts_with("bare") ? run_bare(plan) : run_reactors(plan);
  const double cpu = cpu_seconds() - cpu_before;
  auto& times = outcome.round_trips_us;
  if (times.empty()) return 1;
  const auto count = static_cast<double>(times.size());
  std::ranges::sort(times);
  fmt::print(
      "{{\"kind\": \"{}\", \"size\": {}, \"depth\": {}, \"p50_us\": {:.2f}, \"p99_us\": {:.2f}, \"mean_us\": {:.2f}, "
      "\"kops\": {:.1f}, \"cpu_us_per_op\": {:.2f}}}\n",
      plan.kind, plan.size, plan.depth, times[times.size() / 2], times[times.size() * 99 / 100],
      outcome.elapsed * 1e6 / count, count / outcome.elapsed / 1e3, cpu * 1e6 / count);
  return 0;
}
