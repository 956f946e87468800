// NodeRig: a whole storage node on one TestLoop: real shards on FaultDevices, groups, SRPC in process, a client. Stops,
// crashes and starts again. What the disks and stores lose at a crash is their fault model; everything above is real.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/srpc_client.h"
#include "control/cluster_map.h"
#include "mem/arena.h"
#include "replica/group_host.h"
#include "replica/service.h"
#include "replica/testing/shard_rig.h"
#include "replica/testing/test_loop.h"
#include "srpc/inproc/local_connector.h"
#include "srpc/server.h"

namespace cairn::client {

class NodeRig {
 public:
  struct Options {
    uint64_t seed = 1;
    uint32_t shards = 2;
    uint32_t groups = 4;
    uint64_t shard_bytes = uint64_t{64} << 20;  // 16 MiB of it journal
    uint64_t pool_bytes = uint64_t{96} << 20;
  };

  explicit NodeRig(Options its_options)
      : options(its_options),
        loop(its_options.seed),
        wall(loop),
        rng(its_options.seed + 1),
        arena(*mem::Arena::create(its_options.pool_bytes)) {
    for (uint32_t i = 0; i < options.shards; ++i) {
      shards.push_back(std::make_unique<replica::ShardRig>(loop, rng, kDevice, i, options.shard_bytes));
    }
    map = *control::make_single_node_map(kCluster, {.id = kNode, .name = "node", .address = "inproc", .poll_groups = 1},
                                         {{.id = kDevice, .node = kNode, .shards = options.shards}}, options.groups);
  }
  NodeRig() : NodeRig(Options{}) {}
  ~NodeRig() {
    if (running) stop();
  }

  void start() {
    registry = std::make_unique<Registry>();
    pool = std::make_unique<mem::Pool>(loop, *registry, arena.memory(), 8 << 20);
    std::vector<replica::GroupHost::ShardRef> refs;
    for (auto& shard : shards) {
      shard->start(*pool, *registry);
      refs.push_back(
          {.device = kDevice, .number = shard->extent().shard, .shard = &shard->shard(), .store = &shard->store()});
    }
    host = std::make_unique<replica::GroupHost>(loop, *registry);
    loop.run(&replica::GroupHost::open, host.get(), map, refs);
    server = std::make_unique<srpc::Server>(loop, *registry, *pool, srpc::ServerOptions{});
    service = std::make_unique<replica::Service>(*host);
    service->register_with(*server);
    connectors.server = server.get();
    client = make_client();
    running = true;
  }
  // An orderly end. Whoever uses the client has ended.
  void stop() {
    loop.run(&SrpcClient::close, client.get());
    loop.run([](srpc::Server* its, Time at) { return its->drain(at); }, server.get(), loop.now());
    loop.run(&replica::GroupHost::close, host.get());
    client.reset();
    server.reset();
    service.reset();
    host.reset();
    for (auto& shard : shards) shard->stop();
    pool.reset();
    running = false;
  }
  // The power goes: what is under way ends with errors. end_crash() when nobody uses the client any more.
  void power_off() {
    for (auto& shard : shards) shard->power_off();
  }

  std::unique_ptr<SrpcClient> make_client() {
    return std::make_unique<SrpcClient>(
        SrpcClient::Context{
            .loop = loop, .registry = *registry, .pool = *pool, .connectors = connectors, .client_id = kNode},
        map);
  }

  static constexpr Id128 kCluster{{9}};
  static constexpr Id128 kNode{{1}};
  static constexpr Id128 kDevice{{2}};

  struct Connectors final : SrpcClient::Connectors {
    std::unique_ptr<srpc::Connector> make(const control::NodeEntry&, uint16_t) override {
      return std::make_unique<srpc::inproc::LocalConnector>(*server);
    }
    srpc::Server* server = nullptr;
  };

  Options options;
  replica::TestLoop loop;
  replica::TestWallClock wall;
  SeededRng rng;
  mem::Arena arena;
  control::ClusterMap map;
  std::vector<std::unique_ptr<replica::ShardRig>> shards;
  std::unique_ptr<Registry> registry;
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<replica::GroupHost> host;
  std::unique_ptr<replica::Service> service;
  std::unique_ptr<srpc::Server> server;
  Connectors connectors;
  std::unique_ptr<SrpcClient> client;
  bool running = false;
};

}  // namespace cairn::client
