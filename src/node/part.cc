#include "node/part.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "node/listen_error.h"

namespace cairn::node {
namespace {

// Reading all indexes of a full node takes its time.
constexpr Duration kOrphanTime = seconds(3600);
constexpr Duration kHealthInterval = milliseconds(500);

// Of each reactor's memory: for internal work, whatever others take, and as much for requests, whatever clients take.
size_t reserve_of(size_t memory_bytes) { return std::max(memory_bytes / 8, size_t{8} << 20); }

Mode mode_of(const NodeSettings& settings) {
  if (settings.mode == "performance") return Mode::performance;
  if (settings.mode == "economy") return Mode::economy;
  return Mode::automatic;
}

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::performance:
      return "performance";
    case Mode::economy:
      return "economy";
    case Mode::automatic:
      return "automatic";
  }
  return "";
}

std::optional<srpc::KeyRing> keys_of(const Part::Shared& shared) {
  if (shared.settings.srpc_keys != "required") return std::nullopt;
  return srpc::KeyRing(shared.directory.cluster_keys());
}

StorageNode::Options storage_options(const Part::Shared& shared, uint32_t index, const srpc::KeyRing* keys) {
  const uint64_t cache = shared.resources.engine_cache_bytes / shared.device.geometry.shard_count;
  return {.node = shared.directory.identity().node_id,
          .life = shared.life,
          .poll_group = static_cast<uint16_t>(index),
          .map = shared.map,
          .shard = {.cache_bytes = cache,
                    .dirty_bytes = cache / 4 * 3,
                    .checkpoint_interval = shared.settings.engine_checkpoint_interval},
          .keys = keys};
}

s3::Settings s3_settings(const NodeSettings& settings) {
  return {.region = settings.s3_region,
          .domains = settings.s3_domains,
          .public_hosts = settings.s3_public_hosts,
          .request_time = settings.s3_request_timeout};
}

http::Options s3_http_options(const NodeSettings& settings) {
  http::Options options;
  options.metrics_label = "listener=\"s3\"";
  options.max_connections = settings.s3_max_connections;
  options.head_time = settings.s3_header_timeout;
  options.idle_time = settings.s3_idle_timeout;
  options.stall_time = settings.s3_stall_timeout;
  return options;
}

http::Options admin_http_options() {
  http::Options options;
  options.metrics_label = "listener=\"admin\"";
  options.max_connections = 256;
  return options;
}

}  // namespace

Part::Admin::Admin(Part& part, const Shared& shared)
    : api({shared.node, part.storage_.objects(), part.reactor(), shared.wall_clock, *part.rng_},
          shared.directory.admin_token()),
      handler(api),
      front(part.reactor(), {part.reactor(), part.pool_, part.registry_, shared.wall_clock}, admin_http_options(),
            handler) {}

Result<std::unique_ptr<Part>> Part::create(const Shared& shared, uint32_t index, std::span<std::byte> memory) {
  auto rng = std::make_unique<SystemRng>();
  auto registry = std::make_unique<Registry>();
  TRY(auto reactor,
      Reactor::create({.index = index, .mode = mode_of(shared.settings), .rng = *rng, .registry = *registry}));
  return std::unique_ptr<Part>(
      new Part(shared, index, memory, std::move(rng), std::move(registry), std::move(reactor)));
}

Part::Part(const Shared& shared, uint32_t index, std::span<std::byte> memory, std::unique_ptr<SystemRng> rng,
           std::unique_ptr<Registry> registry, std::unique_ptr<Reactor> reactor)
    : shared_(shared),
      index_(index),
      rng_(std::move(rng)),
      registry_owner_(std::move(registry)),
      registry_(*registry_owner_),
      worker_(std::move(reactor)),
      pool_(worker_.reactor(), registry_, memory, reserve_of(memory.size()), reserve_of(memory.size())),
      home_mail_(worker_.reactor(), pool_),
      device_(worker_.reactor(), shared.disk, registry_),
      tcp_(worker_.reactor(), pool_),
      ways_(tcp_),
      keys_(keys_of(shared)),
      storage_({worker_.reactor(), registry_, pool_, shared.wall_clock, ways_},
               storage_options(shared, index, keys_ ? &*keys_ : nullptr)),
      background_(worker_.reactor()),
      s3_handler_({worker_.reactor(), shared.wall_clock, storage_.objects(), registry_}, s3_settings(shared.settings)),
      s3_front_(worker_.reactor(), {worker_.reactor(), pool_, registry_, shared.wall_clock},
                s3_http_options(shared.settings), s3_handler_) {
  for (uint32_t shard = index_; shard < shared.device.geometry.shard_count; shard += shared.resources.reactors) {
    views_.push_back(shared.store.view(fmt::format("s{}/", shard), shared.helpers, worker_.reactor(), registry_,
                                       fmt::format("shard=\"{}\"", shard)));
  }
  if (index_ == 0) admin_ = std::make_unique<Admin>(*this, shared);
}

Part::~Part() = default;

std::unique_ptr<srpc::Connector> Part::TcpWays::make(const control::NodeEntry& node, uint16_t) {
  // An address that isn't one makes a connector that always fails, and says so: maps are data from outside.
  return std::make_unique<srpc::tcp::TcpConnector>(group_, Address::parse(node.address).value_or(Address()));
}

Task<Result<void>> Part::open(srpc::ReactorPlacement* placement, Address srpc) {
  pool_.bind_to_this_thread();
  std::vector<StorageNode::Seat> seats;
  for (size_t i = 0; i < views_.size(); ++i) {
    const auto shard = static_cast<uint32_t>(index_ + i * shared_.resources.reactors);
    seats.push_back({shared_.device.extent(shard), device_, *views_[i]});
  }
  CO_TRY(co_await storage_.open(std::move(seats)));
  placement_ = placement;
  placement->open(static_cast<uint16_t>(index_), storage_.server(), {&tcp_});
  storage_.server().set_placement(placement);
  auto listener = srpc::tcp::TcpListener::open(tcp_, storage_.server(), srpc);
  if (!listener) co_return listen_error(listener.error(), Service::srpc, srpc);
  srpc_listener_ = *std::move(listener);
  co_return Result<void>();
}

Task<Result<void>> Part::start_background() {
  storage_.start_background();
  background_.spawn(&Part::watch_health, this);
  co_return Result<void>();
}

// A shard that sees a write or flush fail takes no more by itself; the shards beside it on the device learn of it here.
Task<void> Part::watch_health() {
  while (co_await reactor().sleep(kHealthInterval, background_.token())) {
    for (const auto& own : storage_.shards()) {
      const auto health = own.shard->health();
      if (health.code() != Errc::device_fenced) continue;
      shared_.on_device_failed(health.error());
      co_return;
    }
  }
}

void Part::fence(const Error& why) {
  for (const auto& own : storage_.shards()) {
    if (own.shard->health()) own.shard->fence(why);
  }
}

Task<Result<void>> Part::listen(Service service, Address at) {
  ASSERT(service == Service::s3 || admin_ != nullptr);
  HttpFront& front = service == Service::s3 ? s3_front_ : admin_->front;
  if (auto opened = front.open(at); !opened) co_return listen_error(opened.error(), service, at);
  co_return Result<void>();
}

Task<Result<bool>> Part::ensure_access_key() {
  const Credentials& credentials = shared_.directory.credentials();
  const object::CallContext context{.deadline = reactor().now() + seconds(30), .cancel = {}};
  auto keys = co_await storage_.objects().list_access_keys(context);
  if (!keys) co_return std::move(keys.error()).with_context("reading the access keys");
  // No key at all: the first start, or one that ended before this. Otherwise whoever deleted the first one meant it.
  if (!keys->empty()) {
    co_return std::ranges::any_of(*keys, [&](const auto& key) { return key.access_key == credentials.access_key; });
  }
  auto put = co_await storage_.objects().put_access_key({.access_key = credentials.access_key,
                                                         .secret_key = credentials.secret_key,
                                                         .created_unix_ns = shared_.wall_clock.unix_ns(),
                                                         .note = "made at the first start"},
                                                        context);
  if (!put) co_return std::move(put.error()).with_context("keeping the first access key");
  co_return true;
}

Task<Result<void>> Part::stop_serving(Duration grace) {
  co_await s3_front_.close(grace);
  if (admin_) co_await admin_->front.close(grace);
  co_return Result<void>();
}

Task<Result<void>> Part::close_clients() {
  co_await background_.close();
  co_await storage_.close_clients();
  co_return Result<void>();
}

Task<Result<void>> Part::close() {
  if (srpc_listener_) co_await srpc_listener_->close();
  srpc_listener_.reset();
  if (placement_ != nullptr) placement_->close(static_cast<uint16_t>(index_));
  co_await storage_.close(reactor().now() + shared_.settings.stop_timeout);
  co_await tcp_.close();
  co_return Result<void>();
}

Task<Result<void>> Part::checkpoint() {
  for (const auto& own : storage_.shards()) CO_TRY(co_await own.shard->checkpoint());
  co_return Result<void>();
}

Task<Result<object::OrphanReport>> Part::check_orphans() {
  co_return co_await storage_.janitor().check_orphans({.deadline = reactor().now() + kOrphanTime, .cancel = {}});
}

Task<Part::Status> Part::status() {
  Status status;
  const auto spent = reactor().time_spent();
  const auto total = static_cast<double>(std::max<uint64_t>(spent.work_ns + spent.spin_ns + spent.sleep_ns, 1));
  status.reactor = {.id = index_,
                    .mode = std::string(mode_name(reactor().mode())),
                    .busy_share = static_cast<double>(spent.work_ns) / total,
                    .asleep_share = static_cast<double>(spent.sleep_ns) / total,
                    .arena_bytes = pool_.total_bytes(),
                    .arena_free_bytes = pool_.free_bytes()};
  for (const auto& own : storage_.shards()) {
    const auto usage = own.shard->usage();
    const auto health = own.shard->health();
    status.shards.push_back({.id = own.number,
                             .reactor = index_,
                             .total_bytes = usage.total_bytes,
                             .used_bytes = usage.used_bytes + usage.pending_bytes,
                             .freeing_bytes = usage.freeing_bytes,
                             .reserve_bytes = usage.reserve_bytes,
                             .health = health ? "ok" : health.error().to_string()});
  }
  for (const replica::Group* group : storage_.groups().groups()) {
    const auto of_group = group->status();
    const auto location = shared_.map.locate(of_group.group);
    status.groups.push_back({.id = of_group.group.value,
                             .shard = location ? location->shard : 0,
                             .last_index = of_group.last_index.value,
                             .applied_index = of_group.applied_index.value,
                             .role = of_group.leads ? "leader" : "stopped",
                             .health = of_group.health ? "ok" : of_group.health.error().to_string()});
  }
  co_return status;
}

}  // namespace cairn::node
