// For tests and benchmarks: a ReactorHost whose randomness is fixed and whose parts are at hand by name.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "srpc/reactor_host.h"

namespace cairn::srpc::testing {

class Host {
 public:
  explicit Host(uint32_t index, Mode mode = Mode::automatic, size_t memory = size_t{48} << 20, size_t request_bytes = 0,
                std::optional<rdma::RdmaOptions> rdma = {})
      : rng(index + 1),
        host_(*srpc::ReactorHost::create({.index = index,
                                          .mode = mode,
                                          .wake_cost = microseconds(50),
                                          .memory = memory,
                                          .request_bytes = request_bytes,
                                          .rng = &rng,
                                          .rdma = std::move(rdma)})) {}

  void start_thread() { host_->start("test"); }
  void stop_thread() { host_->stop(); }
  bool threaded() const { return host_->threaded(); }

  // Runs a coroutine on the reactor and waits for its end.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    return host_->run(std::move(function), std::move(arguments)...);
  }
  // Runs a function there.
  template <typename Function>
  auto call(Function function) {
    return host_->call(std::move(function));
  }

  SeededRng rng;

 private:
  std::unique_ptr<srpc::ReactorHost> host_;

 public:
  Reactor* const reactor = &host_->reactor();
  Registry& registry = host_->registry();
  mem::Pool& pool = host_->pool();
  ChannelMetrics& metrics = host_->metrics();
  tcp::TcpPollGroup* const tcp = &host_->tcp();
  shm::ShmPollGroup* const shm = &host_->shm();
  rdma::Upgrades* const upgrades = host_->upgrades();
};

}  // namespace cairn::srpc::testing
