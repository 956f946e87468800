// StorageNode: what one reactor of a node holds and serves, from the shards up to the object store, without anything of
// the operating system: it takes a Loop, devices, stores and connectors. So the simulator runs whole nodes of it.
//
//    objects() ──► client ──► own server, in-process ────────┐
//                     └─────► Connectors: other poll groups  ▼
//    connections from outside ──────────────────► server ──► groups ──► shards
//
//   StorageNode node(context, options);           // registers metrics: before the loop runs
//   CO_TRY(co_await node.open(std::move(seats)));  // now server() may get connections
//   node.start_background();                       // when the other reactors of this node are open, too
//   ...
//   co_await node.close_clients();                 // on all reactors that stop together, before ...
//   co_await node.close(deadline);
#pragma once

#include <memory>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "base/time.h"
#include "client/srpc_client.h"
#include "control/cluster_map.h"
#include "engine/block_device.h"
#include "engine/shard.h"
#include "kv/ordered_store.h"
#include "mem/pool.h"
#include "object/janitor.h"
#include "object/store.h"
#include "reactor/loop.h"
#include "reactor/task.h"
#include "replica/group_host.h"
#include "replica/service.h"
#include "srpc/server.h"

namespace cairn::node {

class StorageNode {
 public:
  // All outlive the node.
  struct Context {
    Loop& loop;
    Registry& registry;
    mem::Pool& pool;
    const WallClock& wall_clock;
    client::SrpcClient::Connectors& connectors;  // to every poll group but this one
  };
  struct Options {
    Id128 node;  // in the map
    Id128 life;  // of this process
    uint16_t poll_group = 0;
    control::ClusterMap map;
    engine::ShardOptions shard;
    // What its server asks clients for, and its client proves. null: nothing. Outlives the node.
    const srpc::KeyRing* keys = nullptr;
  };
  // A shard of this reactor with its own part of a store. Both outlive the node.
  struct Seat {
    engine::ShardExtent extent;
    engine::BlockDevice& device;
    kv::OrderedStore& store;
  };

  StorageNode(const Context& context, Options options);
  StorageNode(const StorageNode&) = delete;
  StorageNode& operator=(const StorageNode&) = delete;
  // Closed before.
  ~StorageNode();

  // Opens the shards and recovers their groups. After an error, the closes give back what was opened.
  Task<Result<void>> open(std::vector<Seat> seats);
  // Removes what is left of deleted and unfinished objects, for the groups of this reactor.
  void start_background() { janitor_.start(); }
  // Ends the object store's background work and the client.
  Task<void> close_clients();
  // Answers what is under way until `deadline`, closes the groups, and makes a last checkpoint of each shard.
  Task<void> close(Time deadline);

  object::ObjectStore& objects() { return objects_; }
  object::Janitor& janitor() { return janitor_; }
  srpc::Server& server() { return server_; }
  replica::GroupHost& groups() { return host_; }
  struct OwnShard {
    uint32_t number = 0;
    std::unique_ptr<engine::Shard> shard;
  };
  const std::vector<OwnShard>& shards() const { return shards_; }

 private:
  // In-process to the own poll group, elsewhere by what the node was given.
  class Routes final : public client::SrpcClient::Connectors {
   public:
    Routes(StorageNode& node, Connectors& elsewhere) : node_(node), elsewhere_(elsewhere) {}
    std::unique_ptr<srpc::Connector> make(const control::NodeEntry& node, uint16_t poll_group) override;

   private:
    StorageNode& node_;
    Connectors& elsewhere_;
  };

  Context context_;
  Options options_;
  std::vector<OwnShard> shards_;
  replica::GroupHost host_;
  replica::Service service_;
  srpc::Server server_;
  Routes routes_;
  client::SrpcClient client_;
  object::Store objects_;
  object::Janitor janitor_;
};

}  // namespace cairn::node
