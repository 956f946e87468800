// Echo between two threads over TCP on loopback, and over shared memory: by SRPC, and by the barest loops that do the
// same, which are the limit. Prints one JSON document.
//
//   srpc_bench SIDE WAIT SIZE DEPTH SECONDS
//     SIDE   srpc | shm: SRPC over shared memory | plain, tls: SRPC with keys, without and with TLS
//            bare: TCP, one send for each message | batched: bare, and all messages that came together go back in one
//            send: the limit, which no sender can reach whose messages come from several places
//            ring: shared memory, polled
//     WAIT   epoll: sleeps when there is nothing to do (srpc: economy mode) | poll: never does (srpc: performance mode)
//            | auto (srpc only)
//     SIZE   bytes of payload in each direction
//     DEPTH  calls under way at a time, on one connection
//
// The bare loops check nothing and time nothing; all messages are of one size.
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "reactor/address.h"
#include "srpc/channel.h"
#include "srpc/server.h"
#include "srpc/shm/shm_connector.h"
#include "srpc/shm/shm_listener.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/tcp/tls_connector.h"
#include "srpc/testing/host.h"

namespace cairn::srpc {
namespace {

struct Plan {
  std::string side;
  std::string wait;
  size_t size = 64;
  size_t depth = 1;
  double seconds = 1;
};

struct Outcome {
  std::vector<uint32_t> latencies_ns;
  uint64_t calls = 0;
  double elapsed = 0;
  double cpu = 0;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

[[noreturn]] void die(const std::string& what) {
  fmt::print(stderr, "srpc_bench: {}\n", what);
  std::exit(1);
}

// --- bare ---

class BareSocket {
 public:
  BareSocket(Fd fd, bool epoll) : fd_(std::move(fd)), epoll_(epoll ? ::epoll_create1(0) : -1) {
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (epoll) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd_.get(), &event);
  }
  // 0: the end.
  size_t receive(std::byte* into, size_t size) {
    for (;;) {
      const ssize_t n = ::recv(fd_.get(), into, size, MSG_DONTWAIT);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EAGAIN) return 0;
      epoll_event event{};
      if (epoll_.get() >= 0) (void)::epoll_wait(epoll_.get(), &event, 1, -1);
    }
  }
  void send(const std::byte* data, size_t size) {
    while (size > 0) {
      const ssize_t n = ::send(fd_.get(), data, size, MSG_NOSIGNAL);
      if (n <= 0) return;
      data += n;
      size -= static_cast<size_t>(n);
    }
  }
  void shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

 private:
  Fd fd_;
  Fd epoll_;
};

std::pair<Fd, Fd> connect_pair() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  const Address at = Address::loopback(0);
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  Fd client(::socket(AF_INET, SOCK_STREAM, 0));
  if (::bind(listener.get(), at.raw(), at.raw_size()) < 0 || ::listen(listener.get(), 1) < 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length) < 0 ||
      ::connect(client.get(), reinterpret_cast<sockaddr*>(&name), length) < 0) {
    die(std::string("loopback: ") + std::strerror(errno));
  }
  Fd server(::accept(listener.get(), nullptr, nullptr));
  return {std::move(client), std::move(server)};
}

Outcome run_bare(const Plan& plan) {
  auto [client_fd, server_fd] = connect_pair();
  const bool epoll = plan.wait == "epoll";
  const bool batched = plan.side == "batched";
  const auto send_messages = [&plan, batched](BareSocket& socket, const std::byte* data, size_t count) {
    const size_t piece = batched ? count : 1;
    for (size_t i = 0; i < count; i += piece) socket.send(data + i * plan.size, piece * plan.size);
  };
  const size_t room = std::max<size_t>(plan.size * plan.depth, 4096);
  std::thread server([&, fd = std::move(server_fd)]() mutable {
    BareSocket socket(std::move(fd), epoll);
    std::vector<std::byte> buffer(room);
    size_t held = 0;
    while (const size_t n = socket.receive(buffer.data() + held, room - held)) {
      held += n;
      const size_t whole = held / plan.size;
      send_messages(socket, buffer.data(), whole);
      held -= whole * plan.size;
      std::memmove(buffer.data(), buffer.data() + whole * plan.size, held);
    }
  });
  BareSocket socket(std::move(client_fd), epoll);
  std::vector<std::byte> out(room);
  std::vector<std::byte> in(room);
  std::vector<Time> sent_at(plan.depth);
  const SystemClock clock;
  Outcome outcome;
  outcome.latencies_ns.reserve(4'000'000);
  outcome.cpu = -cpu_seconds();
  const Time start = clock.now();
  Time now = start;
  std::ranges::fill(sent_at, start);
  send_messages(socket, out.data(), plan.depth);
  size_t partial = 0;
  while ((now - start).seconds() < plan.seconds) {
    const size_t n = socket.receive(in.data(), room);
    now = clock.now();
    partial += n;
    const size_t whole = partial / plan.size;
    partial %= plan.size;
    for (size_t i = 0; i < whole; ++i) {
      Time& sent = sent_at[outcome.calls++ % plan.depth];
      outcome.latencies_ns.push_back(static_cast<uint32_t>((now - sent).ns));
      sent = now;
    }
    send_messages(socket, out.data(), whole);
  }
  outcome.elapsed = (now - start).seconds();
  outcome.cpu += cpu_seconds();
  socket.shutdown();
  server.join();
  return outcome;
}

// --- a bare ring ---

// Messages of one size between two threads that share memory and poll: a copy in, a copy out, one word that says how
// far.
class BareRing {
 public:
  explicit BareRing(size_t message) : message_(message), slots_(std::max<size_t>(kBytes / message, 2)) {
    bytes_.resize(message_ * slots_);
  }
  // As many as there is room for.
  size_t write(const std::byte* from, size_t count) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    count = std::min<size_t>(count, slots_ - (head - tail_.load(std::memory_order_acquire)));
    for (size_t i = 0; i < count; ++i) std::memcpy(slot(head + i), from, message_);
    head_.store(head + count, std::memory_order_release);
    return count;
  }
  size_t read(std::byte* into, size_t most) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    const size_t count = std::min<size_t>(most, head_.load(std::memory_order_acquire) - tail);
    for (size_t i = 0; i < count; ++i) std::memcpy(into, slot(tail + i), message_);
    tail_.store(tail + count, std::memory_order_release);
    return count;
  }

 private:
  static constexpr size_t kBytes = 128 * 1024;
  std::byte* slot(uint64_t number) { return bytes_.data() + number % slots_ * message_; }

  const size_t message_;
  const size_t slots_;
  std::vector<std::byte> bytes_;
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

Outcome run_ring(const Plan& plan) {
  BareRing requests(plan.size);
  BareRing replies(plan.size);
  std::atomic<bool> stop{false};
  std::thread server([&] {
    std::vector<std::byte> buffer(plan.size);
    while (!stop.load(std::memory_order_relaxed)) {
      if (requests.read(buffer.data(), 1) == 0) continue;
      while (replies.write(buffer.data(), 1) == 0 && !stop.load(std::memory_order_relaxed)) {
      }
    }
  });
  std::vector<std::byte> buffer(plan.size);
  std::vector<Time> sent_at(plan.depth);
  const SystemClock clock;
  Outcome outcome;
  outcome.latencies_ns.reserve(4'000'000);
  outcome.cpu = -cpu_seconds();
  const Time start = clock.now();
  Time now = start;
  uint64_t sent = 0;
  while ((now - start).seconds() < plan.seconds) {
    while (sent - outcome.calls < plan.depth && requests.write(buffer.data(), 1) == 1) {
      sent_at[sent++ % plan.depth] = clock.now();
    }
    if (replies.read(buffer.data(), 1) == 0) continue;
    now = clock.now();
    outcome.latencies_ns.push_back(static_cast<uint32_t>((now - sent_at[outcome.calls++ % plan.depth]).ns));
  }
  outcome.elapsed = (now - start).seconds();
  outcome.cpu += cpu_seconds();
  stop.store(true);
  server.join();
  return outcome;
}

// --- SRPC ---

struct EchoMeta {
  Le64 number;
};
struct Echo {
  static constexpr MethodId kId{1};
  static constexpr std::string_view kName = "echo";
  using Request = EchoMeta;
  using Reply = EchoMeta;
};

Task<Result<Message<EchoMeta>>> serve_echo(CallContext&, Message<EchoMeta> request) { co_return request; }

struct Driver {
  Channel* channel;
  const Plan* plan;
  Outcome* outcome;
  const Clock* clock;
  Time start;
};

Task<void> call_again_and_again(Driver* driver, mem::BufChain payload, mem::Pool* pool) {
  // As whoever expects much says where it shall land.
  auto reply_memory = co_await pool->alloc_chain(driver->plan->size);
  if (!reply_memory) die(reply_memory.error().to_string());
  Time before = driver->clock->now();
  while ((before - driver->start).seconds() < driver->plan->seconds) {
    CallOptions options;
    if (driver->plan->size >= kBulkBytes) options.reply_memory = *reply_memory;
    auto reply = co_await driver->channel->call<Echo>({.meta = {1}, .data = payload}, options);
    if (!reply) die(reply.error().to_string());
    const Time now = driver->clock->now();
    driver->outcome->latencies_ns.push_back(static_cast<uint32_t>((now - before).ns));
    ++driver->outcome->calls;
    before = now;
  }
}

Task<void> drive(Driver* driver, mem::Pool* pool) {
  if (auto connected = co_await driver->channel->wait_connected(); !connected) die(connected.error().to_string());
  auto payload = co_await pool->alloc_chain(driver->plan->size);
  if (!payload) die(payload.error().to_string());
  driver->outcome->cpu = -cpu_seconds();
  driver->start = driver->clock->now();
  {
    Scope scope(driver->channel->loop());
    for (size_t i = 0; i < driver->plan->depth; ++i) scope.spawn(&call_again_and_again, driver, *payload, pool);
    co_await scope.join();
  }
  driver->outcome->elapsed = (driver->clock->now() - driver->start).seconds();
  driver->outcome->cpu += cpu_seconds();
  co_await driver->channel->close();
}

Task<void> stop(tcp::TcpListener* listener, shm::ShmListener* shm_listener, Server* server) {
  co_await listener->close();
  co_await shm_listener->close();
  co_await server->drain(server->loop().now() + seconds(1));
}

Outcome run_srpc(const Plan& plan) {
  const Mode mode = plan.wait == "poll" ? Mode::performance : plan.wait == "auto" ? Mode::automatic : Mode::economy;
  const size_t memory = std::max<size_t>(size_t{64} << 20, 4 * plan.size * plan.depth);
  testing::Host server_host(1, mode, memory);
  testing::Host client_host(0, mode, memory);
  const KeyRing ring({SharedKey({})});
  const bool keyed = plan.side == "tls" || plan.side == "plain";
  const KeyRing* keys = keyed ? &ring : nullptr;
  Server server(*server_host.reactor, server_host.registry, server_host.pool, {.keys = keys});
  server.register_method<Echo>(&serve_echo);
  auto listener = tcp::TcpListener::open(*server_host.tcp, server, Address::loopback(0),
                                         plan.side == "tls" ? Tls::required : Tls::off);
  if (!listener) die(listener.error().to_string());
  const Address address = Address::loopback((*listener)->port());
  // Beside it, as a server has both.
  auto shm_listener = shm::ShmListener::open(*server_host.shm, server, address);
  if (!shm_listener) die(shm_listener.error().to_string());
  server_host.start_thread();

  const SystemClock clock;
  Outcome outcome;
  outcome.latencies_ns.reserve(4'000'000);
  {
    std::unique_ptr<Connector> connector;
    if (plan.side == "shm") {
      connector = std::make_unique<shm::ShmConnector>(*client_host.shm, address);
    } else if (plan.side == "tls") {
      connector = std::make_unique<tcp::TlsConnector>(*client_host.tcp, ring, address);
    } else {
      connector = std::make_unique<tcp::TcpConnector>(*client_host.tcp, address);
    }
    Channel channel(*client_host.reactor, client_host.metrics, std::move(connector), {.keys = keys});
    Driver driver{&channel, &plan, &outcome, &clock, {}};
    client_host.run(&drive, &driver, &client_host.pool);
  }
  server_host.run(&stop, listener->get(), shm_listener->get(), &server);
  server_host.call([&] {
    listener->reset();
    shm_listener->reset();
    return 0;
  });
  server_host.stop_thread();
  return outcome;
}

}  // namespace
}  // namespace cairn::srpc

int main(int argc, char** argv) {
  using namespace cairn::srpc;
  if (argc != 6) die("usage: srpc_bench srpc|shm|plain|tls|bare|batched|ring epoll|poll|auto SIZE DEPTH SECONDS");
  const Plan plan{argv[1], argv[2], std::strtoul(argv[3], nullptr, 10), std::strtoul(argv[4], nullptr, 10),
                  std::atof(argv[5])};
  if (plan.size == 0 || plan.depth == 0) die("SIZE and DEPTH start at 1");
  const bool by_srpc = plan.side == "srpc" || plan.side == "shm" || plan.side == "plain" || plan.side == "tls";
  Outcome outcome = by_srpc ? run_srpc(plan) : plan.side == "ring" ? run_ring(plan) : run_bare(plan);
  if (outcome.calls == 0) die("no call was answered");
  std::ranges::sort(outcome.latencies_ns);
  const auto percentile = [&](double p) {
    const auto at = static_cast<size_t>(p * static_cast<double>(outcome.latencies_ns.size() - 1));
    return static_cast<double>(outcome.latencies_ns[at]) / 1e3;
  };
  const auto calls = static_cast<double>(outcome.calls);
  fmt::print(
      "{{\"calls\": {}, \"p50_us\": {:.3f}, \"p99_us\": {:.3f}, \"kops\": {:.3f}, \"cpu_us_per_call\": {:.3f}}}\n",
      outcome.calls, percentile(0.5), percentile(0.99), calls / outcome.elapsed / 1e3, outcome.cpu / calls * 1e6);
  return 0;
}
