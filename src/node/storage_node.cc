#include "node/storage_node.h"

#include <fmt/format.h>

#include "srpc/inproc/local_connector.h"

namespace cairn::node {
namespace {

srpc::ServerOptions server_options(const StorageNode::Options& options) {
  srpc::ServerOptions server;
  server.poll_group = options.poll_group;
  const auto* self = options.map.find_node(options.node);
  ASSERT(self != nullptr);
  server.poll_groups = self->poll_groups;
  server.server_id = options.life;
  server.keys = options.keys;
  return server;
}

object::Identity identity_of(const StorageNode::Options& options) {
  return {.owner = options.node, .life = options.life};
}

object::Janitor::Options janitor_options(const StorageNode::Options& options) {
  object::Janitor::Options janitor{.groups = {}, .sweeps = options.poll_group == 0, .identity = identity_of(options)};
  for (uint32_t group = 0; group < options.map.group_count(); ++group) {
    const auto location = options.map.locate(engine::GroupId(group));
    if (location && location->node == options.node && location->poll_group == options.poll_group) {
      janitor.groups.emplace_back(group);
    }
  }
  return janitor;
}

}  // namespace

std::unique_ptr<srpc::Connector> StorageNode::Routes::make(const control::NodeEntry& node, uint16_t poll_group) {
  if (node.id == node_.options_.node && poll_group == node_.options_.poll_group) {
    return std::make_unique<srpc::inproc::LocalConnector>(node_.server_);
  }
  return elsewhere_.make(node, poll_group);
}

StorageNode::StorageNode(const Context& context, Options options)
    : context_(context),
      options_(std::move(options)),
      host_(context.loop, context.registry),
      service_(host_),
      server_(context.loop, context.registry, context.pool, server_options(options_)),
      routes_(*this, context.connectors),
      client_({context.loop, context.registry, context.pool, routes_, options_.life}, options_.map,
              {.keys = options_.keys}),
      objects_({context.loop, client_, context.registry, context.wall_clock}, identity_of(options_)),
      janitor_({context.loop, client_, context.registry, context.wall_clock}, janitor_options(options_)) {
  server_.set_map_epoch(options_.map.epoch);
  service_.register_with(server_);
}

StorageNode::~StorageNode() { ASSERT(shards_.empty()); }

Task<Result<void>> StorageNode::open(std::vector<Seat> seats) {
  std::vector<replica::GroupHost::ShardRef> refs;
  for (const Seat& seat : seats) {
    auto shard = co_await engine::Shard::open(
        {context_.loop, context_.registry, context_.pool, seat.device, seat.store}, seat.extent, options_.shard);
    if (!shard) co_return std::move(shard.error()).with_context(fmt::format("shard {}", seat.extent.shard));
    refs.push_back({seat.extent.device, seat.extent.shard, shard->get(), &seat.store});
    shards_.push_back({seat.extent.shard, *std::move(shard)});
  }
  co_await host_.open(options_.map, std::move(refs));
  co_return Result<void>();
}

Task<void> StorageNode::close_clients() {
  co_await janitor_.close();
  co_await objects_.close();
  co_await client_.close();
}

Task<void> StorageNode::close(Time deadline) {
  co_await server_.drain(deadline);
  co_await host_.close();
  for (const auto& own : shards_) co_await own.shard->close();
  shards_.clear();
}

}  // namespace cairn::node
