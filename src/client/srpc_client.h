// SrpcClient: the Client over SRPC channels, one to each poll group that it talks to, made when first needed. A channel
// within the own reactor passes payload by reference.
//
// What is repeated, and until when: see client.h. Pauses between tries grow from 1 ms to 200 ms, or are what the server
// asks for; the call's deadline ends them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client/client.h"
#include "control/cluster_map.h"
#include "replica/group.h"
#include "srpc/channel.h"

namespace cairn::client {

class SrpcClient final : public Client {
 public:
  // Makes a way to a node's poll group: in-process to the own reactor, TCP (later shared memory, RDMA) elsewhere.
  class Connectors {
   public:
    virtual ~Connectors() = default;
    virtual std::unique_ptr<srpc::Connector> make(const control::NodeEntry& node, uint16_t poll_group) = 0;
  };

  // All outlive the client.
  struct Context {
    Loop& loop;
    Registry& registry;
    mem::Pool& pool;
    Connectors& connectors;
    Id128 client_id;
  };
  struct Options {
    Duration call_timeout = seconds(30);  // of calls that name no deadline
    // Tries of one call when its connection is lost and it may be repeated.
    uint32_t lost_tries = 4;
    const srpc::KeyRing* keys = nullptr;  // of the cluster; outlives the client
  };

  SrpcClient(Context context, control::ClusterMap map, Options options);
  SrpcClient(Context context, control::ClusterMap map) : SrpcClient(context, std::move(map), Options{}) {}
  SrpcClient(const SrpcClient&) = delete;
  SrpcClient& operator=(const SrpcClient&) = delete;
  // Closed before.
  ~SrpcClient() override;

  // Ends what is under way with Errc::closed.
  Task<void> close();

  const control::ClusterMap& map() const { return map_; }
  // A newer one is taken, an older one ignored.
  void set_map(control::ClusterMap map);

  engine::GroupId group_of_chunk(engine::ChunkId chunk) const override { return map_.group_of_chunk(chunk); }
  engine::GroupId group_of_key(Id128 salt) const override { return map_.group_of_key(salt); }
  engine::GroupId system_group() const override { return control::kSystemGroup; }
  std::vector<engine::GroupId> all_groups() const override;

  Task<Result<void>> chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data,
                                 CallContext context) override;
  Task<Result<mem::BufChain>> chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                         CallContext context) override;
  Task<Result<void>> chunk_delete(engine::ChunkId chunk, CallContext context) override;
  Task<Result<std::vector<engine::ChunkId>>> chunk_list(engine::GroupId group, engine::ChunkId after, size_t limit,
                                                        CallContext context) override;
  Task<Result<std::optional<std::string>>> kv_get(engine::GroupId group, std::string key, CallContext context) override;
  Task<Result<kv::ScanResult>> kv_scan(engine::GroupId group, kv::ScanOptions options, CallContext context) override;
  Task<Result<void>> kv_batch(engine::GroupId group, kv::Batch batch, mem::Purpose purpose,
                              CallContext context) override;
  Task<Result<void>> lease_renew(engine::GroupId group, Id128 what, Duration ttl, CallContext context) override;
  Task<Result<LeaseCheck>> lease_check(engine::GroupId group, std::vector<Id128> what, CallContext context) override;

  // What a group's leader says about itself; without the shard's space, which is the node's to tell.
  struct GroupReport {
    bool leads = false;
    uint64_t term = 0;
    uint64_t last_index = 0;
    uint64_t applied_index = 0;
    Result<void> health;
  };
  Task<Result<GroupReport>> group_status(engine::GroupId group, CallContext context);

 private:
  enum class Repeat : uint8_t { when_refused, always };
  struct Metrics;
  class Retry;

  // The request's struct has a field `group`, which is set.
  template <srpc::Method M>
  Task<Result<srpc::Message<typename M::Reply>>> call(engine::GroupId group, srpc::Message<typename M::Request> request,
                                                      Repeat repeat, CallContext context, size_t reply_bytes = 0);
  Result<srpc::Channel*> channel_to(engine::GroupId group);
  // The newer map that came with stale_epoch.
  void take_map(const mem::BufChain& bytes);

  Context context_;
  control::ClusterMap map_;
  Options options_;
  std::unique_ptr<Metrics> metrics_;
  srpc::ChannelMetrics channel_metrics_;
  bool closing_ = false;
  // By node and poll group. A channel whose address the map has changed stays until close(): calls may wait in it.
  struct Link {
    std::string address;
    std::unique_ptr<srpc::Channel> channel;
  };
  std::map<std::pair<Id128, uint16_t>, Link> links_;
  std::vector<std::unique_ptr<srpc::Channel>> retired_;
};

}  // namespace cairn::client
