#include "tools/srpc/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/units.h"
#include "reactor/scope.h"
#include "reactor/sync.h"
#include "srpc/channel.h"
#include "tools/srpc/methods.h"
#include "tools/srpc/perf_service.h"
#include "tools/srpc/reach.h"

namespace cairn::srpc::tools {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Of one thread: the payload that goes out, which all calls share, what comes back for each, and room for what
// fragments.
size_t memory_for(const Workload& workload) {
  const size_t answers = workload.operation == Operation::write ? 0 : 2 * workload.size * workload.depth;
  const size_t wanted = 16 * kMiB + 2 * workload.size + answers;
  return (wanted + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

// Free memory and what the kernel would give up for it. Where it can't be known, everything is taken for there.
size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  size_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return SIZE_MAX;
}

// The arenas are touched at once: too large ones would end other processes before they end this one.
std::optional<Failure> check_memory(const Workload& workload) {
  const size_t wanted = memory_for(workload) * workload.threads;
  const size_t there = available_memory();
  if (wanted <= there / 4 * 3) return std::nullopt;
  return Failure{Exit::failed, std::string(errc_name(Errc::too_large)),
                 fmt::format("{} of memory for so many answers of that size, and {} are free: less --size, --depth or "
                             "--threads",
                             format_size(wanted), format_size(there))};
}

Failure local_failure(const Error& error) {
  return {Exit::failed, std::string(errc_name(error.code())), error.message()};
}

Failure call_failure(const Error& error, const std::string& where) {
  const std::string code(errc_name(error.code()));
  if (error.code() == Errc::unsupported) {
    return {Exit::not_srpc, code,
            fmt::format("the SRPC server at {} isn't srpc-perf's: start one with 'srpc-perf server'", where)};
  }
  return {Exit::failed, code, fmt::format("a call to {} failed: {}", where, error.to_string())};
}

// One thread of the load.
class LoadThread {
 public:
  LoadThread(std::unique_ptr<ReactorHost> host, const Address& to, const Workload& workload, uint32_t number,
             uint16_t poll_group)
      : host_(std::move(host)),
        to_(to),
        workload_(workload),
        number_(number),
        poll_group_(poll_group),
        ended_(host_->reactor()) {}

  ReactorHost& host() { return *host_; }
  const LatencyHistogram& latency() const { return latency_; }

  // In this order, on the host's thread.
  Task<std::optional<Failure>> connect();
  // From `from` to `to` calls are measured that end then.
  Task<std::optional<Failure>> load(Time from, Time to);
  Task<void> close();

 private:
  Task<void> call_again_and_again(Time from, Time to);
  Task<void> call_at_a_rate(Time from, Time to);
  Task<void> call_once(Time due, Time from, Time to);
  Result<mem::BufChain> take_memory();

  std::unique_ptr<ReactorHost> host_;
  Address to_;
  Workload workload_;
  uint32_t number_;
  uint16_t poll_group_;
  SystemClock clock_;
  Event ended_;  // one of the calls at a rate
  std::unique_ptr<Channel> channel_;
  mem::BufChain payload_;
  LatencyHistogram latency_;
  std::optional<Failure> failure_;
};

Task<std::optional<Failure>> LoadThread::connect() {
  channel_ = std::make_unique<Channel>(
      host_->reactor(), host_->metrics(),
      host_->connector(to_, workload_.way, workload_.tls ? workload_.keys : nullptr),
      ChannelOptions{.poll_group = poll_group_, .connect_timeout = workload_.connect_timeout, .keys = workload_.keys});
  if (auto failure = co_await reach(*channel_, workload_.way, workload_.connect_timeout, workload_.keys != nullptr))
    co_return failure;
  if (workload_.operation != Operation::read && workload_.size > 0) {
    auto payload = co_await host_->pool().alloc_chain(workload_.size);
    if (!payload) co_return local_failure(payload.error());
    payload_ = *std::move(payload);
  }
  co_return std::nullopt;
}

Task<std::optional<Failure>> LoadThread::load(Time from, Time to) {
  if (workload_.calls_per_second > 0) {
    co_await call_at_a_rate(from, to);
    co_return failure_;
  }
  Scope scope(host_->reactor());
  for (uint32_t i = 0; i < workload_.depth; ++i) scope.spawn(&LoadThread::call_again_and_again, this, from, to);
  co_await scope.join();
  co_return failure_;
}

Task<void> LoadThread::call_again_and_again(Time from, Time to) {
  const uint32_t reply_bytes = workload_.operation == Operation::write ? 0 : static_cast<uint32_t>(workload_.size);
  // Where each answer lands; the memory of one is that of the next.
  mem::BufChain answer;
  if (reply_bytes > 0 && !channel_->by_reference()) {
    auto memory = co_await host_->pool().alloc_chain(reply_bytes);
    if (!memory) {
      failure_ = local_failure(memory.error());
      co_return;
    }
    answer = *std::move(memory);
  }
  for (Time before = clock_.now(); before < to && !failure_;) {
    auto reply = co_await channel_->call<Transfer>({.meta = {reply_bytes}, .data = payload_},
                                                   {.reply_memory = std::move(answer)});
    if (!reply) {
      if (!failure_) failure_ = call_failure(reply.error(), channel_->address());
      co_return;
    }
    const Time now = clock_.now();
    if (now >= from && now < to) latency_.record((now - before).ns);
    before = now;
    answer = channel_->by_reference() ? mem::BufChain() : std::move(reply->data);
  }
}

Task<void> LoadThread::call_at_a_rate(Time from, Time to) {
  const double interval_ns = 1e9 * workload_.threads / workload_.calls_per_second;
  const Time start = clock_.now();
  Scope scope(host_->reactor());
  for (uint64_t n = 0; !failure_; ++n) {
    // Threads take turns. From the start, not from the call before: rounding would add up.
    const double offset = (static_cast<double>(n) + static_cast<double>(number_) / workload_.threads) * interval_ns;
    const Time due = start + Duration{static_cast<int64_t>(offset)};
    if (due >= to || clock_.now() >= to) break;
    if (due > clock_.now()) (void)co_await host_->reactor().sleep_until(due);
    while (scope.running() >= workload_.depth && !failure_) {
      ended_.reset();
      (void)co_await ended_.wait();
    }
    scope.spawn(&LoadThread::call_once, this, due, from, to);
  }
  co_await scope.join();
}

Task<void> LoadThread::call_once(Time due, Time from, Time to) {
  const uint32_t reply_bytes = workload_.operation == Operation::write ? 0 : static_cast<uint32_t>(workload_.size);
  mem::BufChain answer;
  if (reply_bytes > 0 && !channel_->by_reference()) {
    auto memory = co_await host_->pool().alloc_chain(reply_bytes);
    if (!memory) {
      failure_ = local_failure(memory.error());
      co_return;
    }
    answer = *std::move(memory);
  }
  const auto reply =
      co_await channel_->call<Transfer>({.meta = {reply_bytes}, .data = payload_}, {.reply_memory = std::move(answer)});
  const Time now = clock_.now();
  if (!reply && !failure_) failure_ = call_failure(reply.error(), channel_->address());
  if (reply && now >= from && now < to) latency_.record((now - due).ns);
  ended_.set();
}

Task<void> LoadThread::close() {
  payload_.clear();
  if (channel_) co_await channel_->close();
  channel_.reset();
}

// The main thread's own connection: asks the server what it is and what it has used. It sleeps whenever it can, so as
// not to take a core from those that are measured.
class Observer {
 public:
  Observer(std::unique_ptr<ReactorHost> host, const Address& to, const Workload& workload)
      : host_(std::move(host)),
        workload_(workload),
        channel_(host_->reactor(), host_->metrics(),
                 host_->connector(to, workload.way, workload.tls ? workload.keys : nullptr), {.keys = workload.keys}) {}
  ~Observer() { host_->run(&Channel::close, &channel_); }

  ReactorHost& host() { return *host_; }
  Channel& channel() { return channel_; }

  struct Used {
    Time at;
    double client_cpu_us = 0;
    double server_cpu_us = 0;
    uint64_t server_hops = 0;
  };
  Task<std::expected<Used, Failure>> look();
  Task<std::optional<Failure>> connect();
  Task<void> sleep_until(Time at) { (void)co_await host_->reactor().sleep_until(at); }

 private:
  std::unique_ptr<ReactorHost> host_;
  Workload workload_;
  SystemClock clock_;
  Channel channel_;
};

Task<std::optional<Failure>> Observer::connect() {
  co_return co_await reach(channel_, workload_.way, workload_.connect_timeout, workload_.keys != nullptr);
}

Task<std::expected<Observer::Used, Failure>> Observer::look() {
  auto usage = co_await channel_.call<Usage>({});
  if (!usage) co_return std::unexpected(call_failure(usage.error(), channel_.address()));
  co_return Used{.at = clock_.now(),
                 .client_cpu_us = static_cast<double>(process_cpu_us()),
                 .server_cpu_us = static_cast<double>(usage->meta.cpu_us.get()),
                 .server_hops = usage->meta.hops.get()};
}

class Load {
 public:
  Load(const Address& to, const Workload& workload) : to_(to), workload_(workload) {}
  // All threads have let go of their channels before their hosts go.
  ~Load() {
    for (auto& thread : threads_) {
      if (thread->host().threaded()) thread->host().run(&LoadThread::close, thread.get());
    }
  }

  std::expected<Measured, Failure> run() {
    if (auto failure = check_memory(workload_)) return std::unexpected(*std::move(failure));
    auto host = ReactorHost::create({.mode = Mode::economy, .memory = 4 * kMiB, .rdma = rdma_for(workload_.way)});
    if (!host) return std::unexpected(local_failure(host.error()));
    Observer observer(*std::move(host), to_, workload_);
    if (auto failure = observer.host().run(&Observer::connect, &observer)) return std::unexpected(*std::move(failure));
    // Also finds out whether this is the right server before anything is loaded.
    if (auto used = observer.host().run(&Observer::look, &observer); !used) return std::unexpected(used.error());
    Measured measured{.workload = workload_,
                      .transport = std::string(observer.channel().transport()),
                      .poll_groups = observer.channel().poll_groups()};
    if (auto failure = start_threads(measured.poll_groups)) return std::unexpected(*std::move(failure));

    const Time from = SystemClock().now() + workload_.warm_up;
    const Time to = from + workload_.time;
    std::vector<std::future<std::optional<Failure>>> loads;
    loads.reserve(threads_.size());
    for (auto& thread : threads_) loads.push_back(thread->host().begin(&LoadThread::load, thread.get(), from, to));
    observer.host().run(&Observer::sleep_until, &observer, from);
    const auto before = observer.host().run(&Observer::look, &observer);
    const uint64_t hops_before = hops();
    observer.host().run(&Observer::sleep_until, &observer, to);
    measured.client_hops = hops() - hops_before;
    const auto after = observer.host().run(&Observer::look, &observer);
    std::optional<Failure> failure;
    for (auto& load : loads) {
      if (auto failed = load.get()) failure = std::move(failed);
    }
    if (failure) return std::unexpected(*std::move(failure));
    if (!before) return std::unexpected(before.error());
    if (!after) return std::unexpected(after.error());

    // The two looks stand a little apart from `from` and `to`: processor time is scaled to the time that was measured.
    measured.seconds = workload_.time.seconds();
    const double scale = measured.seconds / (after->at - before->at).seconds();
    measured.client_cpu_us = (after->client_cpu_us - before->client_cpu_us) * scale;
    measured.server_cpu_us = (after->server_cpu_us - before->server_cpu_us) * scale;
    measured.server_hops = after->server_hops - before->server_hops;
    for (auto& thread : threads_) measured.latency.add(thread->latency());
    if (measured.latency.count() == 0) {
      return std::unexpected(
          Failure{Exit::failed, "timed_out", "no call was answered while it was measured: measure longer (--seconds)"});
    }
    return measured;
  }

 private:
  std::optional<Failure> start_threads(uint16_t poll_groups) {
    for (uint32_t i = 0; i < workload_.threads; ++i) {
      // What there is to say about RDMA the observer's host has said.
      auto host = ReactorHost::create(
          {.index = i + 1, .mode = workload_.mode, .memory = memory_for(workload_), .rdma = rdma_for(workload_.way)});
      if (!host) return local_failure(host.error());
      (*host)->start(fmt::format("perf-{}", i));
      const auto group = static_cast<uint16_t>(i % std::max<uint32_t>(1, poll_groups));
      threads_.push_back(std::make_unique<LoadThread>(*std::move(host), to_, workload_, i, group));
    }
    for (auto& thread : threads_) {
      if (auto failure = thread->host().run(&LoadThread::connect, thread.get())) return failure;
    }
    return std::nullopt;
  }

  uint64_t hops() {
    uint64_t sum = 0;
    for (auto& thread : threads_) sum += hops_of(thread->host()).value();
    return sum;
  }

  Address to_;
  Workload workload_;
  std::vector<std::unique_ptr<LoadThread>> threads_;
};

}  // namespace

double Measured::bytes_per_second() const {
  const double directions = workload.operation == Operation::echo ? 2 : 1;
  return calls_per_second() * static_cast<double>(workload.size) * directions;
}

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::write:
      return "write";
    case Operation::read:
      return "read";
    case Operation::echo:
      return "echo";
  }
  return "?";
}

std::expected<Measured, Failure> measure(const Address& server, const Workload& workload) {
  return Load(server, workload).run();
}

}  // namespace cairn::srpc::tools
