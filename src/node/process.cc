#include "node/process.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "control/map_store.h"
#include "node/cluster_setup.h"
#include "node/device_file.h"
#include "node/device_setup.h"
#include "node/files.h"
#include "node/host_checks.h"
#include "node/listen_error.h"
#include "node/patience.h"
#include "node/ports.h"

namespace cairn::node {
namespace {

constexpr size_t kHelperThreads = 2;
constexpr auto kSignalPoll = std::chrono::milliseconds(20);
// Of the views of the store; the shards' are "s0/", "s1/", ...
constexpr const char* kControlPrefix = "control/";

Result<void> first_error(std::vector<Result<void>> results) {
  for (auto& result : results) {
    if (!result) return std::move(result);
  }
  return {};
}

}  // namespace

Process::Process(const CommandLine& line, StopSignals& signals)
    : line_(line), signals_(signals), machine_(Machine::probe()), started_(clock_.now()) {}

Process::~Process() { ASSERT(parts_.empty()); }

template <typename T>
T Process::wait_for(std::future<T> future) {
  while (future.wait_for(kSignalPoll) != std::future_status::ready) {
    if (signals_.wait(Duration{})) {
      LOG(info, "stopped while starting");
      std::_Exit(0);
    }
  }
  return future.get();
}

template <typename... Arguments>
std::vector<std::future<Result<void>>> Process::call_all(Task<Result<void>> (Part::*method)(Arguments...),
                                                         std::type_identity_t<Arguments>... arguments) {
  std::vector<std::future<Result<void>>> running;
  running.reserve(parts_.size());
  for (const auto& part : parts_) running.push_back(part->worker().call(method, part.get(), arguments...));
  return running;
}

Result<void> Process::start() {
  raise_file_limit();
  TRY(directory_, DataDirectory::open(line_.data_directory, rng_, wall_clock_));
  TRY(take_ports());
  TRY(set_up());
  TRY(make_parts());
  TRY(open_parts());
  Part& first = *parts_.front();
  TRY(const bool access_key_valid, wait_for(first.worker().call(&Part::ensure_access_key, &first)));
  TRY(open_gateways());
  return announce(access_key_valid);
}

Result<void> Process::take_ports() {
  const auto take = [this](Service service) -> Result<HeldPort> {
    TRY(const Address at, listen_at(line_.settings.values(), service));
    // It gives access to everything.
    const bool open_to_all = line_.settings.values().srpc_keys != "required";
    if (service == Service::srpc && open_to_all && !at.is_loopback()) {
      return Error(
          Errc::invalid_argument,
          fmt::format("srpc can't listen on {} without keys, since everybody who reaches it may do everything: set "
                      "srpc.keys=required, or listen.srpc=127.0.0.1",
                      at.to_string()));
    }
    auto held = while_busy(seconds(2), [&] { return HeldPort::take(at); });
    if (!held) return listen_error(held.error(), service, at);
    return held;
  };
  TRY(s3_port_, take(Service::s3));
  TRY(admin_port_, take(Service::admin));
  TRY(srpc_port_, take(Service::srpc));
  return {};
}

Result<void> Process::set_up() {
  const NodeSettings& settings = line_.settings.values();
  const std::string path = settings.device_path.empty() ? directory_->default_device_path() : settings.device_path;
  const bool first_start = directory_->devices().empty();
  // A device that the node has used and that is gone must not be replaced by an empty one.
  if (!first_start && !exists(path)) {
    return Error(
        Errc::not_found,
        fmt::format("device {} is missing: this node keeps its data there; bring it back, or set device.path to "
                    "where it is now",
                    path));
  }
  TRY(disk_, find_or_create_device(path, settings));
  TRY(auto setup, SetupReactor::create(*disk_, rng_));
  TRY(set_up_device(*setup, path));
  TRY(set_up_store(*setup));
  // Last, when all that a later start insists on is durable.
  if (first_start) TRY(directory_->remember_device({device_.device, disk_->path()}));
  return {};
}

Result<void> Process::set_up_device(SetupReactor& setup, const std::string& path) {
  const NodeSettings& settings = line_.settings.values();
  TRY(device_, wait_for(setup.worker().call(
                   &node::set_up_device, engine::DeviceContext{setup.device(), setup.pool()}, std::cref(*directory_),
                   path, resolve_shards(settings, machine_, disk_->size_bytes()), std::ref<Rng>(rng_))));
  TRY(resources_, resolve_resources(settings, machine_, device_.geometry.shard_count));
  LOG(info, "device {}: {}, {} shards, id {}", path, format_size(disk_->size_bytes()), device_.geometry.shard_count,
      device_.device.to_string());
  return {};
}

Result<void> Process::set_up_store(SetupReactor& setup) {
  const bool first_start = directory_->devices().empty();
  helpers_.emplace("cairn-helper", kHelperThreads);
  TRY(store_, kv::RocksStore::open({.path = directory_->store_path(),
                                    .create = first_start,
                                    .cache_bytes = resources_.store_cache_bytes,
                                    .write_buffer_bytes = line_.settings.values().store_write_buffer}));
  const auto view = store_->view(kControlPrefix, *helpers_, setup.worker().reactor(), setup.registry(), "");
  control::EmbeddedMapStore maps(setup.worker().reactor(), *view);
  TRY(map_, wait_for(setup.worker().call(
                &set_up_map, std::ref<control::MapStore>(maps), std::cref(directory_->identity()), device_,
                control::NodeEntry{.id = directory_->identity().node_id,
                                   .name = directory_->identity().node_id.to_string().substr(0, 8),
                                   .address = srpc_port_.address().to_string(),
                                   .poll_groups = static_cast<uint16_t>(resources_.reactors)},
                first_start)));
  return {};
}

Result<void> Process::make_parts() {
  metrics_.emplace(
      fmt::format("version=\"{}\",cluster=\"{}\"", kVersion, directory_->identity().cluster_id.to_string()));
  const uint32_t count = resources_.reactors;
  TRY(arena_, mem::Arena::create(resources_.arena_bytes));
  shared_.emplace(Part::Shared{.settings = line_.settings.values(),
                               .resources = resources_,
                               .directory = *directory_,
                               .disk = *disk_,
                               .device = device_,
                               .map = map_,
                               .store = *store_,
                               .helpers = *helpers_,
                               .wall_clock = wall_clock_,
                               .node = *this,
                               .life = Id128::random(rng_),
                               .on_device_failed = [this](const Error& why) { fence_device(why); }});
  for (uint32_t i = 0; i < count; ++i) {
    TRY(auto part, Part::create(*shared_, i, arena_->part(i, count)));
    parts_.push_back(std::move(part));
  }
  for (const auto& part : parts_) part->worker().start(fmt::format("cairn-{}", part->index()));
  LOG(info, "{} reactors, {} of memory{}", count, format_size(resources_.arena_bytes),
      arena_->huge() ? " in huge pages" : "");
  return {};
}

Result<void> Process::open_parts() {
  std::vector<Reactor*> reactors;
  reactors.reserve(parts_.size());
  for (const auto& part : parts_) reactors.push_back(&part->worker().reactor());
  placement_.emplace(reactors);
  std::vector<Result<void>> results;
  for (auto& one : call_all(&Part::open, &*placement_, srpc_port_.address())) {
    results.push_back(wait_for(std::move(one)));
  }
  TRY(first_error(std::move(results)));
  for (auto& one : call_all(&Part::start_background)) TRY(wait_for(std::move(one)));
  return {};
}

void Process::fence_device(const Error& why) {
  LOG(error, "device {} has failed and takes no more writes: {}", disk_->path(), why.message());
  for (const auto& part : parts_) {
    part->worker().reactor().post_from_any_thread([one = part.get(), why] { one->fence(why); });
  }
}

Result<void> Process::open_gateways() {
  const auto listen = [this](Part& part, Service service, const Address& at) {
    return wait_for(part.worker().call(&Part::listen, &part, service, at));
  };
  const std::string s3 = s3_port_.address().to_string();
  const std::string admin = admin_port_.address().to_string();
  endpoints_ = {{"s3", s3}, {"admin", admin}, {"srpc", srpc_port_.address().to_string()}};
  for (const auto& part : parts_) TRY(listen(*part, Service::s3, s3_port_.address()));
  TRY(listen(*parts_.front(), Service::admin, admin_port_.address()));
  for (const auto& [service, address] : endpoints_) LOG(info, "{} at {}", service, address);
  return {};
}

Result<void> Process::announce(bool access_key_valid) {
  TRY(write_endpoints(endpoints_, *directory_));
  if (!line_.ready_file.empty()) {
    TRY(write_ready_file(line_.ready_file, endpoints_, *directory_, access_key_valid));
  }
  serving_.store(true);
  LOG(info, "cairnd {} is up, cluster {}", kVersion, directory_->identity().cluster_id.to_string());
  return {};
}

void Process::stop() {
  serving_.store(false);
  if (!line_.ready_file.empty()) remove_file(line_.ready_file);
  if (directory_) remove_file(endpoints_path(directory_->path()));

  // Waits without looking for signals: from here on they end the process by themselves.
  const auto finish = [](std::vector<std::future<Result<void>>> running) {
    for (auto& one : running) {
      if (auto result = one.get(); !result) LOG(error, "while stopping: {}", result.error().message());
    }
  };
  finish(call_all(&Part::stop_serving, line_.settings.values().stop_timeout));
  finish(call_all(&Part::close_clients));
  finish(call_all(&Part::close));
  for (const auto& part : parts_) part->worker().stop();
  parts_.clear();
}

}  // namespace cairn::node
