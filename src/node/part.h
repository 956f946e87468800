// Part: one reactor's share of a node, with everything of the operating system that StorageNode does without: the
// thread, its memory, the device on its ring, sockets.
//
//   main thread   TRY(auto part, Part::create(shared, i, arena.part(i, n)));  part->worker().start(...)
//   its thread    open ─► listen ... ─► stop_serving ─► close          (by part->worker().call or ask)
//   main thread   part->worker().stop(), then destroy it
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "admin/api.h"
#include "admin/http_handler.h"
#include "admin/node_view.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/device.h"
#include "engine/disk_file.h"
#include "engine/uring_device.h"
#include "gateway/s3/handler.h"
#include "kv/rocks_store.h"
#include "mem/home_mail.h"
#include "mem/pool.h"
#include "node/data_directory.h"
#include "node/http_front.h"
#include "node/ports.h"
#include "node/resources.h"
#include "node/settings.h"
#include "node/storage_node.h"
#include "reactor/offload.h"
#include "reactor/worker.h"
#include "srpc/key_ring.h"
#include "srpc/reactor_placement.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::node {

class Part {
 public:
  // What all parts of a node share; outlives them.
  struct Shared {
    const NodeSettings& settings;
    const Resources& resources;
    const DataDirectory& directory;
    const engine::DiskFile& disk;
    const engine::DeviceInfo& device;
    const control::ClusterMap& map;
    const kv::RocksStore& store;
    OffloadPool& helpers;
    const WallClock& wall_clock;
    admin::NodeView& node;  // for the admin API, which part 0 serves
    Id128 life;             // of this process
    // Called on a part's thread when a shard has taken its device for failed: the others of that device must follow.
    std::function<void(const Error& why)> on_device_failed;
  };

  // On the main thread.
  static Result<std::unique_ptr<Part>> create(const Shared& shared, uint32_t index, std::span<std::byte> memory);
  ~Part();

  Worker& worker() { return worker_; }
  const Registry& registry() const { return registry_; }
  uint32_t index() const { return index_; }

  // The rest: on the worker's thread.

  // Opens this part's shards, those whose number modulo the number of parts is `index`, and serves their groups to
  // other parts and nodes. `placement` outlives the part.
  Task<Result<void>> open(srpc::ReactorPlacement* placement, Address srpc);
  // Serves `service` there: s3 on every part, admin on part 0.
  Task<Result<void>> listen(Service service, Address at);
  // When all parts are open.
  Task<Result<void>> start_background();
  // Adds the first access key unless there is one. False when it has been deleted meanwhile.
  Task<Result<bool>> ensure_access_key();
  // In three steps, each on all parts before the next: what one part still does may need another.
  Task<Result<void>> stop_serving(Duration grace);
  Task<Result<void>> close_clients();
  Task<Result<void>> close();

  Task<Result<void>> checkpoint();
  Task<Result<object::OrphanReport>> check_orphans();
  // Another part's shard has found the device failed.
  void fence(const Error& why);
  struct Status {
    admin::ReactorStatus reactor;
    std::vector<admin::ShardStatus> shards;
    std::vector<admin::GroupStatus> groups;
  };
  Task<Status> status();

 private:
  // The ways to other poll groups.
  class TcpWays final : public client::SrpcClient::Connectors {
   public:
    explicit TcpWays(srpc::tcp::TcpPollGroup& group) : group_(group) {}
    std::unique_ptr<srpc::Connector> make(const control::NodeEntry& node, uint16_t poll_group) override;

   private:
    srpc::tcp::TcpPollGroup& group_;
  };
  // The admin API and its front.
  struct Admin {
    Admin(Part& part, const Shared& shared);
    admin::Api api;
    admin::HttpHandler handler;
    HttpFront front;
  };

  Part(const Shared& shared, uint32_t index, std::span<std::byte> memory, std::unique_ptr<SystemRng> rng,
       std::unique_ptr<Registry> registry, std::unique_ptr<Reactor> reactor);
  Reactor& reactor() { return worker_.reactor(); }
  Task<void> watch_health();

  const Shared& shared_;
  uint32_t index_;
  std::unique_ptr<SystemRng> rng_;
  std::unique_ptr<Registry> registry_owner_;
  Registry& registry_;
  Worker worker_;
  mem::Pool pool_;
  mem::HomeMail home_mail_;
  engine::UringDevice device_;
  std::vector<std::unique_ptr<kv::OrderedStore>> views_;  // one for each shard of this part
  srpc::tcp::TcpPollGroup tcp_;
  TcpWays ways_;
  // Of this reactor, so that it could be changed here.
  std::optional<srpc::KeyRing> keys_;
  StorageNode storage_;
  srpc::ReactorPlacement* placement_ = nullptr;
  std::unique_ptr<srpc::tcp::TcpListener> srpc_listener_;
  Scope background_;
  s3::Handler s3_handler_;
  HttpFront s3_front_;
  std::unique_ptr<Admin> admin_;
};

}  // namespace cairn::node
