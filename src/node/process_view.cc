// What the admin API sees of a Process. Everything here runs on part 0's reactor while the node serves.
#include <algorithm>

#include "node/process.h"

namespace cairn::node {

Task<Result<admin::NodeStatus>> Process::status() {
  admin::NodeStatus status;
  status.cluster_id = directory_->identity().cluster_id;
  status.node_id = directory_->identity().node_id;
  status.uptime_seconds = uptime_seconds();
  status.replicas = 1;
  admin::DeviceStatus device;
  device.id = device_.device;
  device.path = disk_->path();
  device.size_bytes = disk_->size_bytes();
  Reactor& home = parts_.front()->worker().reactor();
  for (const auto& part : parts_) {
    auto of_part = co_await part->worker().ask(home, &Part::status, part.get());
    status.reactors.push_back(std::move(of_part.reactor));
    for (auto& shard : of_part.shards) device.shards.push_back(std::move(shard));
    for (auto& group : of_part.groups) status.groups.push_back(std::move(group));
  }
  std::ranges::sort(device.shards, {}, &admin::ShardStatus::id);
  std::ranges::sort(status.groups, {}, &admin::GroupStatus::id);
  status.devices.push_back(std::move(device));
  for (const auto& [service, address] : endpoints_) status.gateways.push_back({service, address});
  co_return status;
}

std::vector<admin::ConfigRow> Process::config() const {
  std::vector<admin::ConfigRow> rows;
  for (const auto& row : line_.settings.rows()) {
    rows.push_back({.name = std::string(row.setting->name),
                    .value = row.value,
                    .default_value = std::string(row.setting->default_text),
                    .origin = row.origin,
                    .type = row.setting->type_text(),
                    .help = std::string(row.setting->help)});
  }
  return rows;
}

std::string Process::metrics() {
  std::vector<Registry::Source> sources = {{&metrics_->update({.uptime_seconds = uptime_seconds(),
                                                               .ready = serving_.load(),
                                                               .store_memory_bytes = store_->memory_bytes(),
                                                               .store_disk_bytes = store_->disk_bytes()}),
                                            ""}};
  for (const auto& part : parts_) {
    sources.push_back({&part->registry(), "reactor=\"" + std::to_string(part->index()) + "\""});
  }
  return Registry::expose(sources);
}

uint64_t Process::uptime_seconds() const { return static_cast<uint64_t>((clock_.now() - started_).ns / seconds(1).ns); }

Result<void> Process::ready() const {
  if (serving_.load()) return {};
  return Error(Errc::unavailable, "starting or stopping");
}

Task<Result<void>> Process::checkpoint() {
  Reactor& home = parts_.front()->worker().reactor();
  for (const auto& part : parts_) CO_TRY(co_await part->worker().ask(home, &Part::checkpoint, part.get()));
  co_return Result<void>();
}

Task<Result<object::OrphanReport>> Process::check_orphans() {
  Part& first = *parts_.front();
  co_return co_await first.worker().ask(first.worker().reactor(), &Part::check_orphans, &first);
}

}  // namespace cairn::node
