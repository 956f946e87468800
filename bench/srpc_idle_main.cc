// An idle SRPC server with many connections: what it costs, and how long the first call after a pause takes. The server
// is `srpc-perf server` in another process. Prints one JSON document.
//
//   srpc_idle ADDRESS PID CONNECTIONS SECONDS
//     PID      the server's, whose processor time is looked at while nobody calls for SECONDS
//
// The client polls while it measures latency, so that only the server's wake-up is in it. Beside it, in the same run:
// the barest server, a thread in recv(), after a pause and without one. The difference is what this machine takes to
// wake a thread.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "reactor/address.h"
#include "srpc/channel.h"
#include "srpc/reactor_host.h"
#include "tools/srpc/methods.h"

namespace cairn::srpc {
namespace {

constexpr int kBusyCalls = 2'000;
constexpr int kFirstCalls = 40;
constexpr Duration kPause = milliseconds(100);

double median_us(std::vector<int64_t> samples_ns) {
  std::ranges::nth_element(samples_ns, samples_ns.begin() + static_cast<std::ptrdiff_t>(samples_ns.size() / 2));
  return static_cast<double>(samples_ns[samples_ns.size() / 2]) / 1e3;
}

// User and system time so far, in seconds: fields 14 and 15 of /proc/PID/stat. The second, the program's name, has no
// spaces here.
double cpu_seconds_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string word;
  for (int field = 1; field < 14; ++field) file >> word;
  double user = 0;
  double system = 0;
  file >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Outcome {
  bool ok = true;
  double cpu_percent = 0;
  double busy_us = 0;
  double first_us = 0;
};

class Client {
 public:
  Client(ReactorHost& host, const Address& to, std::string pid) : host_(host), to_(to), pid_(std::move(pid)) {}

  Task<Outcome> run(int connections, Duration time);

 private:
  Task<bool> call(std::vector<int64_t>& samples_ns);

  ReactorHost& host_;
  Address to_;
  std::string pid_;
  SystemClock clock_;
  std::vector<std::unique_ptr<Channel>> channels_;
};

Task<bool> Client::call(std::vector<int64_t>& samples_ns) {
  const Time before = clock_.now();
  const auto reply = co_await channels_.front()->call<tools::Transfer>({.meta = {0}});
  samples_ns.push_back((clock_.now() - before).ns);
  co_return reply.has_value();
}

Task<Outcome> Client::run(int connections, Duration time) {
  Outcome outcome;
  for (int i = 0; i < connections; ++i) {
    channels_.push_back(
        std::make_unique<Channel>(host_.reactor(), host_.metrics(), host_.connector(to_, Way::tcp), ChannelOptions{}));
    outcome.ok &= (co_await channels_.back()->wait_connected()).has_value();
  }
  // Until what the connecting left behind is over.
  (void)co_await host_.reactor().sleep(seconds(1));
  const double cpu_before = cpu_seconds_of(pid_);
  const Time before = clock_.now();
  (void)co_await host_.reactor().sleep(time);
  outcome.cpu_percent = 100 * (cpu_seconds_of(pid_) - cpu_before) / (clock_.now() - before).seconds();

  host_.reactor().set_mode(Mode::performance);
  std::vector<int64_t> busy_ns;
  for (int i = 0; i < 2 * kBusyCalls; ++i) {
    if (i == kBusyCalls) busy_ns.clear();  // the first half warms up
    outcome.ok &= co_await call(busy_ns);
  }
  std::vector<int64_t> first_ns;
  for (int i = 0; i < kFirstCalls; ++i) {
    // Asleep meanwhile: a client that polled through the pause would have used up its time slice by the call.
    host_.reactor().set_mode(Mode::economy);
    (void)co_await host_.reactor().sleep(kPause);
    host_.reactor().set_mode(Mode::performance);
    outcome.ok &= co_await call(first_ns);
  }
  outcome.busy_us = median_us(busy_ns);
  outcome.first_us = median_us(first_ns);
  for (auto& channel : channels_) co_await channel->close();
  channels_.clear();
  co_return outcome;
}

// --- The barest server ---

struct Pair {
  Fd client;
  Fd server;
};

Pair connected_pair() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  Address at = Address::loopback(0);
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  Pair pair;
  pair.client = Fd(::socket(AF_INET, SOCK_STREAM, 0));
  if (::bind(listener.get(), at.raw(), at.raw_size()) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
      ::connect(pair.client.get(), reinterpret_cast<sockaddr*>(&bound), length) != 0) {
    std::abort();
  }
  pair.server = Fd(::accept(listener.get(), nullptr, nullptr));
  const int on = 1;
  for (const Fd* fd : {&pair.client, &pair.server}) {
    ::setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return pair;
}

// Until the other side closes. `flags`: MSG_DONTWAIT polls, 0 sleeps.
void echo_bytes(int fd, int flags) {
  char byte = 0;
  for (;;) {
    const ssize_t n = ::recv(fd, &byte, 1, flags);
    if (n == 0) return;
    if (n == 1) (void)::send(fd, &byte, 1, MSG_NOSIGNAL);
  }
}

double bare_us(int server_flags, int count, Duration pause) {
  Pair pair = connected_pair();
  std::thread server(&echo_bytes, pair.server.get(), server_flags);
  const SystemClock clock;
  std::vector<int64_t> samples_ns;
  for (int i = 0; i < count; ++i) {
    if (pause.ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(pause.ns));
    char byte = 'x';
    const Time before = clock.now();
    (void)::send(pair.client.get(), &byte, 1, MSG_NOSIGNAL);
    while (::recv(pair.client.get(), &byte, 1, MSG_DONTWAIT) != 1) {
    }
    samples_ns.push_back((clock.now() - before).ns);
  }
  ::shutdown(pair.client.get(), SHUT_RDWR);
  server.join();
  return median_us(std::move(samples_ns));
}

int main(const std::vector<std::string>& words) {
  const auto at = Address::parse(words[0]);
  const int connections = std::atoi(words[2].c_str());
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  log::setup(log::Level::error, log::Format::text);
  auto host = ReactorHost::create({.mode = Mode::economy, .wake_cost = microseconds(50), .memory = size_t{8} << 20});
  if (!at || !host) return 1;
  Client client(**host, *at, words[1]);
  const auto time = Duration{static_cast<int64_t>(std::atof(words[3].c_str()) * 1e9)};
  const Outcome outcome = (*host)->run(&Client::run, &client, connections, time);
  if (!outcome.ok) {
    fmt::print(stderr, "srpc_idle: a connection or a call failed\n");
    return 1;
  }
  fmt::print(
      "{{\"cpu_percent\": {:.3f}, \"busy_us\": {:.2f}, \"first_us\": {:.2f}, \"bare_busy_us\": {:.2f}, "
      "\"bare_first_us\": {:.2f}}}\n",
      outcome.cpu_percent, outcome.busy_us, outcome.first_us, bare_us(MSG_DONTWAIT, kBusyCalls, {}),
      bare_us(0, kFirstCalls, kPause));
  return 0;
}

}  // namespace
}  // namespace cairn::srpc

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: srpc_idle ADDRESS PID CONNECTIONS SECONDS\n");
    return 2;
  }
  return cairn::srpc::main({argv + 1, argv + argc});
}
