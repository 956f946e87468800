// ReactorHost: one reactor with everything that SRPC needs around it: memory, metrics, the transports. It drives
// coroutines on the calling thread, or on a thread of its own.
//
//   TRY(auto host, srpc::ReactorHost::create());
//   Task<Result<int>> talk(srpc::ReactorHost* host, Address to) {
//     srpc::Channel channel(host->reactor(), host->metrics(), host->connector(to));
//     auto reply = co_await channel.call<Echo>({.meta = {1}}, {.deadline = host->reactor().now() + seconds(1)});
//     co_await channel.close();
//     ...
//   }
//   auto result = host->run(&talk, host.get(), to);       // here, until it has ended
//
//   host->start("client-0");                              // or on a thread of its own:
//   auto future = host->begin(&talk, host.get(), to);
//
// A program that has its reactors and memory already doesn't need one: Server, Channel and the transports take them
// directly, as this class does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/rng.h"
#include "base/status.h"
#include "mem/arena.h"
#include "mem/home_mail.h"
#include "mem/pool.h"
#include "reactor/address.h"
#include "reactor/reactor.h"
#include "reactor/worker.h"
#include "srpc/channel.h"
#include "srpc/rdma/rdma_options.h"
#include "srpc/rdma/rdma_poll_group.h"
#include "srpc/rdma/upgrades.h"
#include "srpc/shm/shm_poll_group.h"
#include "srpc/tcp/tcp_poll_group.h"
#include "srpc/tls/tls_context.h"
#include "srpc/transport.h"

namespace cairn::srpc {

// How to reach a server. `near`: by shared memory if it is on this machine and takes it, else as `rdma`. `rdma`: by
// TCP, and over RDMA as soon as that is possible at both ends. `tcp`: by TCP and nothing else.
enum class Way : uint8_t { near, tcp, shm, rdma };

struct HostOptions {
  uint32_t index = 0;  // of its reactor
  Mode mode = Mode::automatic;
  Duration wake_cost = {};           // zero: measured now, in about 5 ms
  size_t memory = size_t{64} << 20;  // for payload, touched at once; a multiple of 1 MiB
  // With `machine`, servers on this machine move payload directly between that memory and theirs.
  mem::Arena::Sharing sharing = mem::Arena::Sharing::machine;
  size_t request_bytes = 0;  // of it, what clients leave alone for requests (mem/pool.h)
  Rng* rng = nullptr;        // outlives the host; null: the kernel's
  // With it RDMA is used where it works. What keeps it from working is no error: the log says it, and TCP it is.
  std::optional<rdma::RdmaOptions> rdma = {};
};

class ReactorHost {
 public:
  // Errors: busy (not that much memory), and what the kernel says when it has no io_uring for us.
  static Result<std::unique_ptr<ReactorHost>> create(const HostOptions& options = {});
  ReactorHost(const ReactorHost&) = delete;
  ReactorHost& operator=(const ReactorHost&) = delete;
  // What was run or begun has ended; channels, servers and listeners are gone.
  ~ReactorHost();

  Reactor& reactor() { return worker_.reactor(); }
  mem::Pool& pool() { return pool_; }
  Registry& registry() { return registry_; }
  ChannelMetrics& metrics() { return metrics_; }
  tcp::TcpPollGroup& tcp() { return *tcp_; }
  shm::ShmPollGroup& shm() { return *shm_; }
  // Null without HostOptions::rdma; the group also where no device works.
  rdma::RdmaPollGroup* rdma() { return rdma_.get(); }
  rdma::Upgrades* upgrades() { return upgrades_.get(); }
  // All that connections begin with, for a ReactorPlacement.
  std::vector<PollGroup*> transports() { return {tcp_.get(), shm_.get()}; }
  // For a channel on this host's thread. With `tls_keys`, which are the channel's and outlive it, TCP is encrypted
  // (tcp/tls_connector.h); shared memory is as it is.
  std::unique_ptr<Connector> connector(const Address& to, Way way = Way::near, const KeyRing* tls_keys = nullptr);

  // From now on everything here belongs to a thread of its own. `name` shows in ps and perf.
  void start(const std::string& name);
  // Ends that thread, for good: the reactor doesn't run on another one afterwards.
  void stop();
  bool threaded() const { return worker_.started(); }

  // Runs std::invoke(function, arguments...), a Task<T>, to its end and gives its T.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    if (threaded()) return begin(std::move(function), std::move(arguments)...).get();
    return reactor().run_task(std::move(function), std::move(arguments)...);
  }
  // The same as a std::future<T>, for hosts with a thread. What the arguments point to outlives it.
  template <typename Function, typename... Arguments>
  auto begin(Function function, Arguments... arguments) {
    ASSERT(threaded());
    return worker_.call(std::move(function), std::move(arguments)...);
  }
  // Runs an ordinary function there.
  template <typename Function>
  auto call(Function function) {
    return run(&invoke<Function>, std::move(function));
  }

 private:
  ReactorHost(const HostOptions& options, std::unique_ptr<Rng> own_rng, std::unique_ptr<Registry> registry,
              std::unique_ptr<Reactor> reactor, mem::Arena arena);

  template <typename Function>
  static Task<std::invoke_result_t<Function&>> invoke(Function function) {
    co_return function();
  }
  void open_rdma(const HostOptions& options);
  Task<void> close_transports();

  std::unique_ptr<Rng> own_rng_;
  std::unique_ptr<Registry> registry_owner_;
  Registry& registry_;
  Worker worker_;
  mem::Arena arena_;
  mem::Pool pool_;
  mem::HomeMail mail_;
  ChannelMetrics metrics_;
  tls::TlsContext tls_;
  std::unique_ptr<tcp::TcpPollGroup> tcp_;
  std::unique_ptr<shm::ShmPollGroup> shm_;
  std::vector<std::unique_ptr<rdma::Device>> devices_;
  std::unique_ptr<rdma::RdmaPollGroup> rdma_;
  std::unique_ptr<rdma::Upgrades> upgrades_;
  bool closed_ = false;
};

}  // namespace cairn::srpc
