#include "engine/recovery.h"

#include <fmt/format.h>

#include <map>

#include "base/log.h"
#include "engine/chunk_record.h"
#include "engine/replay.h"
#include "engine/shard_impl.h"

namespace cairn::engine {

class Recovery final : private ReplayFilter {
 public:
  explicit Recovery(ShardImpl& shard) : shard_(shard), state_(shard.state_) {}

  Task<Result<void>> run(Superblock superblock);

 private:
  // An entry matters unless its effects on chunks are in the map's checkpoint.
  bool wants(const Record& record) const override { return record.index > mark_of(group_marks_, record.group); }
  bool was_applied(const Record& record) const override {
    return !wants(record) || is_covered(record) || record.index <= mark_of(kv_marks_, record.group);
  }

  using Marks = std::map<GroupId, Index>;
  static Index mark_of(const Marks& marks, GroupId group) {
    const auto found = marks.find(group);
    return found == marks.end() ? Index{} : found->second;
  }
  Task<Result<void>> load_identity(const Superblock& superblock);
  Task<Result<void>> load_marks(KeySpace space, Marks& marks);
  Task<Result<void>> load_chunks();
  Task<Result<void>> load_maps();
  Task<Result<void>> load(const Superblock& superblock);
  Result<void> add_chunk(ChunkId id, std::string_view value);
  void take_over(Replay replay);
  bool add_entry(ReplayedEntry replayed);
  bool is_covered(const Record& record) const;
  void check_groups(const Replay& replay);
  void damage(std::string why) { state_.set_damage(Error(Errc::corrupt, std::move(why))); }

  ShardImpl& shard_;
  ShardState& state_;
  uint64_t checkpoint_ = 0;  // the store's
  Marks group_marks_;
  Marks kv_marks_;
  std::vector<std::pair<Unit, Lsn>> superseded_;  // units of covered entries, unless the map has them
};

// The store and the device must belong together: a journal whose tail was moved is only half of the truth.
Task<Result<void>> Recovery::load_identity(const Superblock& superblock) {
  CO_TRY(const auto value, co_await state_.context.store.get(key_prefix(KeySpace::identity)));
  if (!value) {
    if (superblock.checkpoint == 0) co_return Result<void>{};
    co_return Error(Errc::corrupt,
                    fmt::format("the store of shard {} is empty, and checkpoint {} should be in it: was its directory "
                                "deleted or replaced? Nothing was changed; put it back",
                                state_.extent.shard, superblock.checkpoint));
  }
  CO_TRY(const auto identity, decode_identity(*value));
  if (identity.device != state_.extent.device || identity.shard != state_.extent.shard) {
    co_return Error(
        Errc::invalid_argument,
        fmt::format("the store belongs to shard {} of device {}, not to shard {} of device {}: start with the "
                    "directory that belongs to the device",
                    identity.shard, identity.device.to_string(), state_.extent.shard,
                    state_.extent.device.to_string()));
  }
  // The store is written before the superblock, so it may be one ahead, never behind.
  if (identity.checkpoint != superblock.checkpoint && identity.checkpoint != superblock.checkpoint + 1) {
    co_return Error(
        Errc::corrupt,
        fmt::format("shard {}: the device is at checkpoint {} and the store at {}: one of them was restored "
                    "from an older copy. Nothing was changed",
                    state_.extent.shard, superblock.checkpoint, identity.checkpoint));
  }
  checkpoint_ = identity.checkpoint;
  co_return Result<void>{};
}

Task<Result<void>> Recovery::load_marks(KeySpace space, Marks& marks) {
  kv::ScanOptions options{.begin = key_prefix(space),
                          .end = key_prefix(static_cast<KeySpace>(static_cast<char>(space) + 1))};
  for (;;) {
    CO_TRY(const auto page, co_await state_.context.store.scan(options));
    for (const auto& item : page.items) {
      const auto group = parse_mark_key(space, item.key);
      if (!group) co_return Error(Errc::corrupt, "the store holds a key that the engine never writes");
      CO_TRY(marks[*group], decode_mark(item.value));
    }
    if (!page.more) co_return Result<void>{};
    options.begin = page.items.back().key + '\0';
  }
}

Result<void> Recovery::add_chunk(ChunkId id, std::string_view value) {
  TRY(Chunk chunk, decode_chunk(value, state_.layout.unit_count));
  for (const UnitSlot& slot : chunk.slots) {
    if (slot.mapped() && !state_.space.claim_used(slot.unit)) {
      return Error(Errc::corrupt,
                   fmt::format("two chunks claim unit {}, chunk {} is one of them", slot.unit.value, id.to_string()));
    }
  }
  state_.chunks.emplace_hint(state_.chunks.end(), id, std::move(chunk));
  return {};
}

Task<Result<void>> Recovery::load_chunks() {
  kv::ScanOptions options{.begin = key_prefix(KeySpace::chunk), .end = key_prefix(static_cast<KeySpace>('c' + 1))};
  for (;;) {
    CO_TRY(const auto page, co_await state_.context.store.scan(options));
    for (const auto& item : page.items) {
      const auto id = parse_chunk_key(item.key);
      if (!id) co_return Error(Errc::corrupt, "the store holds a key that the engine never writes");
      CO_TRY(add_chunk(*id, item.value));
    }
    if (!page.more) co_return Result<void>{};
    options.begin = page.items.back().key + '\0';
  }
}

// A checkpoint that was cut off leaves some chunks ahead of their group's mark.
bool Recovery::is_covered(const Record& record) const {
  if (record.kind == EntryKind::kv_batch) return record.index <= mark_of(kv_marks_, record.group);
  if (record.kind == EntryKind::noop) return false;
  const auto found = state_.chunks.find(record.chunk);
  return found != state_.chunks.end() && found->second.group == record.group &&
         record.index <= found->second.last_change;
}

bool Recovery::add_entry(ReplayedEntry replayed) {
  Record& record = replayed.record;
  GroupLog& log = state_.groups[record.group];
  if (record.index != log.last + 1) {
    damage(fmt::format("the journal is damaged: group {} jumps from entry {} to {}", record.group.value, log.last.value,
                       record.index.value));
    return false;
  }
  const bool covered = is_covered(record);
  if (covered) {
    for (const Unit unit : record.units) superseded_.emplace_back(unit, replayed.batch);
  } else {
    for (const Unit unit : record.units) {
      if (state_.space.claim_pending(unit)) continue;
      damage(fmt::format("entry {} of group {} wrote unit {}, which the chunk map has given to another",
                         record.index.value, record.group.value, unit.value));
      return false;
    }
    Entry entry;
    entry.group = record.group;
    entry.term = record.term;
    entry.index = record.index;
    entry.kind = record.kind;
    entry.chunk = record.chunk;
    entry.offset = record.offset;
    entry.length = record.length;
    entry.body = std::move(record.body);
    shard_.recovered_.push_back(std::move(entry));
  }
  PendingEntry& pending = log.push();
  pending.batch = replayed.batch;
  pending.inline_lsn = replayed.inline_lsn;
  pending.durable = true;
  pending.covered = covered;
  pending.rotten_pages = replayed.rotten_pages;
  if (!covered && record.kind == EntryKind::chunk_write) {
    pending.reserved_units = inline_units(record.plan, record.offset, record.length);
    state_.space.reserve_again(pending.reserved_units);
  }
  pending.record = std::move(record);
  shard_.journal_.add_replayed(pending.batch);
  return true;
}

// What is in the store must be in the journal: it was durable before it was applied.
void Recovery::check_groups(const Replay& replay) {
  std::map<GroupId, Index> last(group_marks_);
  for (const auto& [group, index] : replay.last_indexes) last[group] = std::max(last[group], index);
  for (const auto& [group, index] : kv_marks_) {
    if (index <= mark_of(last, group)) continue;
    damage(
        fmt::format("the store has entry {} of group {}, and the journal ends at {}: the device lost writes that it "
                    "had confirmed. Does it ignore flushes (a cache without power-loss protection)?",
                    index.value, group.value, mark_of(last, group).value));
    return;
  }
}

void Recovery::take_over(Replay replay) {
  if (replay.damage) return damage(*replay.damage);
  check_groups(replay);
  if (state_.damage) return;
  for (const auto& [group, index] : group_marks_) {
    state_.groups[group].last = state_.groups[group].applied = index;
  }
  for (ReplayedEntry& entry : replay.entries) {
    if (!add_entry(std::move(entry))) return;
  }
  // A chunk's map says what is covered only until the chunk is deleted: then the next replay meets these entries again.
  for (const auto& [unit, batch] : superseded_) state_.space.hold(unit, batch);
  for (auto& [group, log] : state_.groups) {
    while (!log.pending.empty() && log.pending.front().covered) {
      shard_.journal_.entry_applied(log.pending.front().batch);
      ++state_.applies;
      log.pop();
    }
  }
  if (replay.cut_entries > 0) {
    state_.metrics.cut_entries.add(replay.cut_entries);
    LOG(warn,
        "shard {}: the journal ends at position {}: {} entries behind it were cut, because payload there isn't whole. "
        "They were never acknowledged, unless the device lost what it had confirmed",
        state_.extent.shard, replay.end.value, replay.cut_entries);
  }
  if (replay.rotten_pages > 0) {
    state_.metrics.corrupt_pages.add(replay.rotten_pages);
    LOG(error, "shard {}: {} pages of small writes are rotten in the journal; reading them will say so",
        state_.extent.shard, replay.rotten_pages);
  }
}

Task<Result<void>> Recovery::load_maps() {
  CO_TRY(co_await load_marks(KeySpace::group_mark, group_marks_));
  CO_TRY(co_await load_marks(KeySpace::kv_mark, kv_marks_));
  co_return co_await load_chunks();
}

Task<Result<void>> Recovery::load(const Superblock& superblock) {
  state_.superblock = superblock;
  CO_TRY(co_await load_identity(superblock));
  auto loaded = co_await load_maps();
  if (!loaded && loaded.error().code() != Errc::corrupt) co_return loaded;
  if (!loaded) {
    damage(std::move(loaded).error().message());
    co_return Result<void>{};
  }
  const JournalIdentity identity{.device = state_.extent.device, .shard = state_.extent.shard};
  CO_TRY(auto replay, co_await replay_journal(state_.context.device, state_.context.pool, state_.layout, identity,
                                              superblock, *this));
  const Lsn end = replay.end;
  const size_t entries = replay.entries.size();
  shard_.journal_.start(superblock.tail, end, superblock.epoch + 1);
  take_over(std::move(replay));
  if (state_.damage) co_return Result<void>{};
  LOG(info, "shard {}: {} chunks, {} entries from the journal", state_.extent.shard, state_.chunks.size(), entries);

  // After a crash of the process alone, what was read may be in the device's cache and nowhere else. It must be on
  // stable storage before a superblock says that it was durable.
  state_.metrics.flushes.add();
  CO_TRY(co_await flush(state_.context.device));
  // The new life begins before anything is written to the journal.
  state_.superblock.life_begin = end;
  co_return co_await shard_.checkpointer_.write_superblock(superblock.tail, checkpoint_, false);
}

Task<Result<void>> Recovery::run(Superblock superblock) {
  CO_TRY(co_await load(superblock));
  if (state_.damage) {
    LOG(error, "shard {}: {}", state_.extent.shard, state_.damage->message());
    shard_.recovered_.clear();
  }
  co_return co_await shard_.start();
}

Task<Result<std::unique_ptr<Shard>>> recover_shard(Shard::Context context, ShardExtent extent, ShardOptions options) {
  CO_TRY(const auto layout, ShardLayout::of(extent));
  CO_TRY(const auto superblock, co_await load_superblock(context.device, context.pool, extent));
  auto shard = std::make_unique<ShardImpl>(context, extent, layout, options);
  Recovery recovery(*shard);
  CO_TRY(co_await recovery.run(superblock));
  co_return std::unique_ptr<Shard>(std::move(shard));
}

}  // namespace cairn::engine
