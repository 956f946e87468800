#include "scenarios/node_world.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "engine/geometry.h"

namespace cairn::scenarios {
namespace {

constexpr Id128 kCluster{{9}};
constexpr Id128 kNode{{1}};
constexpr Id128 kDevice{{2}};
constexpr size_t kPoolReserveBytes = 6 << 20;

uint64_t shard_bytes(uint64_t data_bytes) { return engine::kMinJournalBytes + engine::kMiB + data_bytes; }

}  // namespace

std::unique_ptr<srpc::Connector> NodeWorld::Nowhere::make(const control::NodeEntry&, uint16_t) {
  ASSERT(false);
  return nullptr;
}

NodeWorld::NodeWorld(const RunInput& run_input)
    : input(run_input),
      sim(input.seed),
      loop(sim),
      rng(sim.make_rng("node scenario")),
      plan(FaultPlan::draw(rng)),
      data_bytes((rng.chance(1, 4) ? 3 + rng.below(4) : 16 + rng.below(16)) * engine::kMiB),
      disk(loop, {.size_bytes = kShards * shard_bytes(data_bytes)}),
      store(loop, {.read_max = microseconds(60), .flush_max = milliseconds(2)}) {
  sim.trace().print_to(input.trace);
  shard_options.cache_bytes = 2 << 20;
  shard_options.dirty_bytes = 1 << 20;
  shard_options.checkpoint_interval = rng.chance(1, 2) ? milliseconds(20) : seconds(30);
  shard_options.admission_wait = milliseconds(50);
  auto map = control::make_single_node_map(kCluster, {.id = kNode, .name = "node", .address = "sim", .poll_groups = 1},
                                           {{.id = kDevice, .node = kNode, .shards = kShards}}, kGroups);
  ASSERT(map.has_value());
  map_ = *std::move(map);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    views_.push_back(std::make_unique<kv::PrefixStore>(store, fmt::format("s{}/", shard)));
  }
}

NodeWorld::~NodeWorld() { ASSERT(node == nullptr); }

engine::ShardExtent NodeWorld::extent(uint32_t shard) const {
  return {.device = kDevice,
          .shard = shard,
          .offset = shard * shard_bytes(data_bytes),
          .length = shard_bytes(data_bytes),
          .journal_bytes = engine::kMinJournalBytes};
}

void NodeWorld::new_life() {
  pool.reset();
  registry = std::make_unique<Registry>();
  pool = std::make_unique<mem::Pool>(loop, *registry, input.arena.memory(), kPoolReserveBytes);
}

Result<void> NodeWorld::format() {
  new_life();
  return sim.run(loop, &NodeWorld::format_task, this);
}

Task<Result<void>> NodeWorld::format_task() {
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const engine::Shard::Context context{
        .loop = loop, .registry = *registry, .pool = *pool, .device = disk, .store = *views_[shard]};
    CO_TRY(co_await engine::Shard::format(context, extent(shard)));
  }
  co_return Result<void>{};
}

Result<void> NodeWorld::start() {
  ASSERT(node == nullptr && powered_);
  ++life;
  new_life();
  node::StorageNode::Options options{
      .node = kNode, .life = Id128::random(sim.rng()), .poll_group = 0, .map = map_, .shard = shard_options};
  node = std::make_unique<node::StorageNode>(
      node::StorageNode::Context{
          .loop = loop, .registry = *registry, .pool = *pool, .wall_clock = wall_, .connectors = nowhere_},
      std::move(options));
  return sim.run(loop, &NodeWorld::start_task, this);
}

Task<Result<void>> NodeWorld::start_task() {
  std::vector<node::StorageNode::Seat> seats;
  seats.reserve(kShards);
  for (uint32_t shard = 0; shard < kShards; ++shard) seats.push_back({extent(shard), disk, *views_[shard]});
  CO_TRY(co_await node->open(std::move(seats)));
  node->start_background();
  co_return Result<void>{};
}

void NodeWorld::stop() {
  if (node == nullptr) return;
  sim.run(loop, &node::StorageNode::close_clients, node.get());
  sim.run(loop, &node::StorageNode::close, node.get(), loop.now() + milliseconds(100));
  node.reset();
  disk.reopen();
  check.that(pool->free_bytes() == pool->total_bytes(), "after stopping, {} bytes of the pool are still in use",
             pool->total_bytes() - pool->free_bytes());
}

void NodeWorld::power_off(CrashStyle style) {
  ASSERT(powered_);
  powered_ = false;
  disk.faults().crash_style = style;
  disk.power_off();
  store.power_off(sim.rng());
}

void NodeWorld::power_on() {
  ASSERT(!powered_ && node == nullptr);
  sim.run_for(milliseconds(1));
  powered_ = true;
  disk.power_on();
  store.power_on();
}

uint64_t NodeWorld::used_bytes() const {
  uint64_t bytes = 0;
  for (const auto& own : node->shards()) {
    const engine::SpaceUsage usage = own.shard->usage();
    bytes += usage.used_bytes + usage.pending_bytes;
  }
  return bytes;
}

}  // namespace cairn::scenarios
