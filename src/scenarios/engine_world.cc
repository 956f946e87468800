#include "scenarios/engine_world.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "kv/batch.h"

namespace cairn::scenarios {

using engine::Entry;
using engine::EntryKind;
using engine::GroupId;
using engine::Index;
using engine::Term;

namespace {

constexpr uint64_t kPoolReserveBytes = 4 << 20;
constexpr size_t kKvKeyOverhead = 6;  // kv_prefix and the machine's own byte

Id128 device_id(uint64_t seed) {
  Id128 id;
  for (size_t i = 0; i < 8; ++i) id.bytes[i] = static_cast<uint8_t>(seed >> (8 * i));
  id.bytes[15] = 1;
  return id;
}

uint64_t shard_bytes(const EngineSizes& sizes) { return engine::kMinJournalBytes + engine::kMiB + sizes.data_bytes; }

}  // namespace

EngineSizes EngineSizes::draw(Rng& rng) {
  EngineSizes sizes;
  sizes.groups = static_cast<uint32_t>(1 + rng.below(4));
  sizes.chunks = static_cast<uint32_t>(2 + rng.below(20));
  constexpr uint32_t kChunkLimits[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
  sizes.chunk_bytes = kChunkLimits[rng.below(std::size(kChunkLimits))];
  // One in four is so small that it runs full.
  sizes.data_bytes = (rng.chance(1, 4) ? 1 + rng.below(4) : 8 + rng.below(24)) * engine::kMiB;
  sizes.options.cache_bytes = rng.chance(1, 4) ? 256 << 10 : 8 << 20;
  sizes.options.dirty_bytes = rng.chance(1, 4) ? 128 << 10 : 4 << 20;
  sizes.options.checkpoint_interval =
      rng.chance(1, 2) ? milliseconds(1 + static_cast<int64_t>(rng.below(10))) : seconds(30);
  sizes.options.admission_wait = milliseconds(20);
  if (rng.chance(1, 3)) sizes.apply_delay_max = microseconds(static_cast<int64_t>(rng.below(3000)));
  return sizes;
}

EngineWorld::Group::Group(EngineWorld& world, GroupId group) : id(group), turn(world.loop, 1) {}

EngineWorld::EngineWorld(const RunInput& run_input)
    : input(run_input),
      sim(input.seed),
      loop(sim),
      rng(sim.make_rng("engine scenario")),
      plan(FaultPlan::draw(rng)),
      sizes(EngineSizes::draw(rng)),
      extent_offset(rng.below(2) * engine::kMiB),
      disk(loop,
           {.size_bytes = extent_offset + shard_bytes(sizes), .garbage_seed = rng.chance(1, 8) ? input.seed + 1 : 0}),
      store(loop, {.read_max = microseconds(60), .flush_max = milliseconds(2)}),
      model(sizes.groups, kKvKeyOverhead) {
  sim.trace().print_to(input.trace);
  for (uint32_t i = 0; i < sizes.groups; ++i) groups_.push_back(std::make_unique<Group>(*this, GroupId(i)));
  if (input.sabotage == Sabotage::resurrect_deletes) model.forget_deletes();
  if (input.sabotage == Sabotage::forget_a_write) model.forget_write_number(20);
  store.lie_about_flush(input.sabotage == Sabotage::store_lies_about_flush);
}

EngineWorld::~EngineWorld() { ASSERT(shard == nullptr); }

engine::ShardExtent EngineWorld::extent() const {
  return {.device = device_id(input.seed),
          .shard = static_cast<uint32_t>(input.seed % 7),
          .offset = extent_offset,
          .length = shard_bytes(sizes),
          .journal_bytes = engine::kMinJournalBytes};
}

engine::ChunkId EngineWorld::chunk_id(uint32_t number) const {
  engine::ChunkId id;
  id.bytes[0] = static_cast<uint8_t>(number * 37);
  id.bytes[1] = 0xc1;  // all zeroes would mean "none"
  id.bytes[11] = static_cast<uint8_t>(number >> 8);
  id.bytes[15] = static_cast<uint8_t>(number);
  return id;
}

std::string EngineWorld::kv_prefix(GroupId group) const {
  std::string prefix = "k";
  prefix.resize(kKvKeyOverhead - 1, '\0');
  prefix.back() = static_cast<char>(group.value);
  return prefix;
}

engine::Shard::Context EngineWorld::context() {
  return {.loop = loop, .registry = *registry, .pool = *pool, .device = disk, .store = store};
}

Result<void> EngineWorld::format() {
  registry = std::make_unique<Registry>();
  pool = std::make_unique<mem::Pool>(loop, *registry, input.arena.memory(), kPoolReserveBytes);
  return sim.run(loop, &engine::Shard::format, context(), extent());
}

Result<void> EngineWorld::open() {
  ASSERT(shard == nullptr && powered_);
  ++life;
  fenced = false;
  registry = std::make_unique<Registry>();
  pool.reset();  // before the new one takes the same memory
  pool = std::make_unique<mem::Pool>(loop, *registry, input.arena.memory(), kPoolReserveBytes);
  return sim.run(loop, &EngineWorld::open_task, this);
}

Task<Result<void>> EngineWorld::open_task() {
  CO_TRY(shard, co_await engine::Shard::open(context(), extent(), sizes.options));
  CO_TRY(shard->health());
  for (auto& group : groups_) {
    CO_TRY(group->kv, co_await kv::KvMachine::open(loop, store, {.prefix = kv_prefix(group->id)}));
  }
  check_log_ends();
  if (!check.ok()) co_return Result<void>{};
  CO_TRY(co_await apply_recovered());
  for (auto& group : groups_) {
    check.that(shard->applied_index(group->id) == shard->last_index(group->id),
               "group {}: entry {} is the last one, {} the last applied, and all recovered ones were applied",
               group->id.value, shard->last_index(group->id).value, shard->applied_index(group->id).value);
    model.restart(group->id, shard->last_index(group->id).value);
    group->durable = group->proven = model.last(group->id);
  }
  co_return Result<void>{};
}

void EngineWorld::check_log_ends() {
  for (auto& group : groups_) {
    const uint64_t last = shard->last_index(group->id).value;
    const uint64_t issued = model.last(group->id);
    check.that(last <= issued, "group {}: the log ends at entry {}, and only {} were ever proposed", group->id.value,
               last, issued);
    // Damage in the last batches before a crash can't be told from a torn tail, as long as nothing was written after
    // their acknowledgement that could tell.
    const bool payload_damaged = plan.rot_data || disk.stats().lied_pages > 0;
    if (last < group->durable && (payload_damaged || journal_damage_possible)) {
      coverage.hit("recovery.tail_lost_to_damage");
      // With damage in two places one of them may be the proof.
      check.that(last >= group->proven || (payload_damaged && journal_damage_possible),
                 "group {}: the log ends at entry {}, and the journal said that entry {} was durable", group->id.value,
                 last, group->proven);
      group->durable = last;
    }
    check.that(last >= group->durable, "group {}: the log ends at entry {}, and entry {} was acknowledged",
               group->id.value, last, group->durable);
    coverage.hit("recovery.unacknowledged_kept", last - group->durable);
    coverage.hit("recovery.unacknowledged_lost", issued - last);
  }
}

std::vector<uint64_t> EngineWorld::acknowledged() const {
  std::vector<uint64_t> last;
  last.reserve(groups_.size());
  for (const auto& group : groups_) last.push_back(group->durable);
  return last;
}

void EngineWorld::check_recovered(const Entry& entry) {
  if (!check.that(entry.group.value < groups_.size() && entry.index.value <= model.last(entry.group),
                  "an entry {} of group {} was recovered that was never proposed", entry.index.value,
                  entry.group.value)) {
    return;
  }
  const LogOp& op = model.op(entry.group, entry.index.value);
  check.that(entry.kind == op.kind && entry.term.value == op.term && entry.body == op.body,
             "entry {} of group {} was recovered as another one (kind {}, term {})", entry.index.value,
             entry.group.value, static_cast<int>(entry.kind), entry.term.value);
  if (op.kind == EntryKind::noop || op.kind == EntryKind::kv_batch) return;
  check.that(entry.chunk == op.chunk, "entry {} of group {} was recovered for another chunk", entry.index.value,
             entry.group.value);
  if (op.kind == EntryKind::chunk_delete) return;
  check.that(entry.offset == op.offset && entry.length == op.length,
             "entry {} of group {} was recovered with another range", entry.index.value, entry.group.value);
}

Task<Result<void>> EngineWorld::apply_recovered() {
  // A copy: applying may change what the shard returns.
  struct Key {
    GroupId group;
    Index index;
  };
  std::vector<Key> entries;
  std::vector<uint64_t> previous(groups_.size(), 0);
  for (const Entry& entry : shard->recovered()) {
    check_recovered(entry);
    if (!check.ok()) co_return Result<void>{};
    check.that(entry.index.value > previous[entry.group.value], "group {}: entry {} was recovered after entry {}",
               entry.group.value, entry.index.value, previous[entry.group.value]);
    previous[entry.group.value] = entry.index.value;
    entries.push_back({entry.group, entry.index});
  }
  shard->forget_recovered();
  coverage.hit("recovery.entries", entries.size());
  for (const Key& key : entries) {
    const LogOp& op = model.op(key.group, key.index.value);
    if (op.kind == EntryKind::kv_batch) {
      CO_TRY(co_await groups_[key.group.value]->kv->apply(key.index.value, op.body,
                                                          {shard->applied_mark(key.group, key.index)}));
    }
    shard->apply(key.group, key.index);
  }
  co_return Result<void>{};
}

Task<Result<void>> EngineWorld::apply(Group& group, uint64_t index) {
  // A copy: the log may grow while we wait.
  const LogOp op = model.op(group.id, index);
  if (op.kind == EntryKind::kv_batch) {
    CO_TRY(co_await group.kv->apply(index, op.body, {shard->applied_mark(group.id, Index(index))}));
  }
  shard->apply(group.id, Index(index));
  model.apply(group.id, index);
  co_return Result<void>{};
}

Task<Result<void>> EngineWorld::propose(Group& group, LogOp op, mem::BufChain payload, mem::Purpose purpose,
                                        CancelToken cancel) {
  Entry entry;
  entry.group = group.id;
  entry.kind = op.kind;
  entry.chunk = op.chunk;
  entry.offset = op.offset;
  entry.length = op.length;
  entry.payload = std::move(payload);
  entry.body = op.body;
  CO_TRY(auto permit, co_await shard->admit(entry, purpose, cancel));

  const auto acknowledged_before = acknowledged();
  op.term = life;
  entry.term = Term(life);
  const uint64_t index = model.append(group.id, std::move(op));
  entry.index = Index(index);
  sim.trace().event("engine.append", group.id.value, index, entry.offset, entry.length);
  const auto kind = static_cast<uint64_t>(entry.kind);
  const Result<void> appended = co_await shard->append(std::move(entry), std::move(permit));
  sim.trace().event("engine.appended", group.id.value, index, kind, static_cast<uint64_t>(appended.code()));
  if (!appended) co_return appended.error();
  check.that(group.durable + 1 == index, "group {}: entry {} was acknowledged after entry {}", group.id.value, index,
             group.durable);
  group.durable = index;
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups_[i]->proven = std::max(groups_[i]->proven, acknowledged_before[i]);
  }

  // In order: whoever waits here got its acknowledgement before those behind it.
  CO_TRY(co_await group.turn.take());
  if (sizes.apply_delay_max.ns > 0) {
    const auto most = static_cast<uint64_t>(sizes.apply_delay_max.ns);
    (void)co_await loop.sleep(nanoseconds(static_cast<int64_t>(loop.rng().below(most))));
  }
  Result<void> applied;
  if (model.applied(group.id) + 1 != index) {
    applied = Error(Errc::unavailable, "an earlier entry could not be applied");
  } else {
    applied = co_await apply(group, index);
  }
  group.turn.give();
  co_return applied;
}

void EngineWorld::power_off(CrashStyle style) {
  ASSERT(powered_);
  powered_ = false;
  disk.faults().crash_style = style;
  disk.power_off();
  store.power_off(sim.rng());
}

void EngineWorld::power_on() {
  ASSERT(!powered_ && shard == nullptr);
  sim.run_for(milliseconds(1));  // what was in flight comes back with its error
  powered_ = true;
  disk.power_on();
  store.power_on();
}

void EngineWorld::close() {
  if (shard != nullptr) {
    sim.run(loop, &engine::Shard::close, shard.get());
    for (auto& group : groups_) group->kv.reset();
    shard.reset();
  }
  disk.reopen();
  check.that(pool->free_bytes() == pool->total_bytes(), "after closing, {} bytes of the pool are still in use",
             pool->total_bytes() - pool->free_bytes());
}

uint64_t EngineWorld::metric(std::string_view name) const {
  const std::string text = Registry::expose({{registry.get(), ""}});
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += name.size()) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const size_t space = text.find(' ', at);
    return space == std::string::npos ? 0 : std::stoull(text.substr(space + 1));
  }
  return 0;
}

}  // namespace cairn::scenarios
