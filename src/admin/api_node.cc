// Health, metrics, status, configuration, maintenance.
#include <fmt/format.h>

#include <algorithm>

#include "admin/api_routes.h"
#include "base/version.h"

namespace cairn::admin {
namespace {

using nlohmann::json;

json to_json(const ReactorStatus& reactor) {
  return {{"id", reactor.id},
          {"mode", reactor.mode},
          {"busy_share", reactor.busy_share},
          {"asleep_share", reactor.asleep_share},
          {"arena_bytes", reactor.arena_bytes},
          {"arena_free_bytes", reactor.arena_free_bytes}};
}

json to_json(const ShardStatus& shard) {
  return {{"id", shard.id},
          {"reactor", shard.reactor},
          {"total_bytes", shard.total_bytes},
          {"used_bytes", shard.used_bytes},
          {"freeing_bytes", shard.freeing_bytes},
          {"reserve_bytes", shard.reserve_bytes},
          {"health", shard.health}};
}

// What a pool of all devices offers: one copy of each byte per replica.
json pool_of(const NodeStatus& status) {
  uint64_t total = 0;
  uint64_t used = 0;
  uint64_t reserve = 0;
  for (const auto& device : status.devices) {
    for (const auto& shard : device.shards) {
      total += shard.total_bytes;
      used += shard.used_bytes + shard.freeing_bytes;
      reserve += shard.reserve_bytes;
    }
  }
  const uint64_t taken = std::min(total, used + reserve);
  return {{"name", "default"},        {"replicas", status.replicas},
          {"total_bytes", total},     {"used_bytes", used},
          {"reserve_bytes", reserve}, {"available_bytes", (total - taken) / std::max(status.replicas, 1u)}};
}

json problems_of(const NodeStatus& status) {
  json problems = json::array();
  for (const auto& device : status.devices) {
    for (const auto& shard : device.shards) {
      if (shard.health != "ok") {
        problems.push_back(fmt::format("device {}, shard {}: {}", device.path, shard.id, shard.health));
      }
    }
  }
  for (const auto& group : status.groups) {
    if (group.health != "ok") problems.push_back(fmt::format("group {}: {}", group.id, group.health));
  }
  return problems;
}

json to_json(const NodeStatus& status) {
  json reactors = json::array();
  for (const auto& reactor : status.reactors) reactors.push_back(to_json(reactor));
  json devices = json::array();
  for (const auto& device : status.devices) {
    json shards = json::array();
    for (const auto& shard : device.shards) shards.push_back(to_json(shard));
    devices.push_back({{"id", device.id.to_string()},
                       {"path", device.path},
                       {"size_bytes", device.size_bytes},
                       {"shards", std::move(shards)}});
  }
  json groups = json::array();
  for (const auto& group : status.groups) {
    groups.push_back({{"id", group.id},
                      {"shard", group.shard},
                      {"last_index", group.last_index},
                      {"applied_index", group.applied_index},
                      {"role", group.role},
                      {"health", group.health}});
  }
  json gateways = json::array();
  for (const auto& gateway : status.gateways) {
    gateways.push_back({{"service", gateway.service}, {"address", gateway.address}});
  }
  json problems = problems_of(status);
  return {{"cluster_id", status.cluster_id.to_string()},
          {"node_id", status.node_id.to_string()},
          {"version", kVersion},
          {"uptime_seconds", status.uptime_seconds},
          {"health", problems.empty() ? "ok" : "degraded"},
          {"problems", std::move(problems)},
          {"pools", json::array({pool_of(status)})},
          {"devices", std::move(devices)},
          {"reactors", std::move(reactors)},
          {"groups", std::move(groups)},
          {"gateways", std::move(gateways)}};
}

}  // namespace

Task<Response> Api::healthz(const Call&) {
  // Answering at all is the proof: this reactor runs.
  co_return json_response({{"alive", true}, {"version", kVersion}});
}

Task<Response> Api::readyz(const Call&) {
  const auto ready = context_.node.ready();
  if (ready) co_return json_response({{"ready", true}});
  co_return json_response({{"ready", false}, {"reason", ready.error().message()}}, 503);
}

Task<Response> Api::metrics(const Call&) {
  co_return Response{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = context_.node.metrics()};
}

Task<Response> Api::status(const Call&) {
  const auto status = co_await context_.node.status();
  if (!status) co_return error_response(status.error());
  co_return json_response(to_json(*status));
}

Task<Response> Api::config(const Call&) {
  json settings = json::array();
  for (const auto& row : context_.node.config()) {
    settings.push_back({{"name", row.name},
                        {"value", row.value},
                        {"default", row.default_value},
                        {"origin", row.origin},
                        {"type", row.type},
                        {"help", row.help}});
  }
  co_return json_response({{"settings", std::move(settings)}});
}

Task<Response> Api::checkpoint(const Call&) {
  const auto done = co_await context_.node.checkpoint();
  if (!done) co_return error_response(done.error());
  co_return json_response({{"checkpointed", true}});
}

Task<Response> Api::check_orphans(const Call&) {
  const auto report = co_await context_.node.check_orphans();
  if (!report) co_return error_response(report.error());
  co_return json_response({{"chunks", report->chunks},
                           {"referenced", report->referenced},
                           {"queued", report->queued},
                           {"in_flight", report->in_flight},
                           {"orphans", report->orphans},
                           {"examples", report->examples}});
}

}  // namespace cairn::admin
