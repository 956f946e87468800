#include "engine/shard_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "engine/chunk_record.h"
#include "engine/recovery.h"
#include "engine/shard_format.h"

namespace cairn::engine {
namespace {

// What no shard could ever take.
Result<void> validate(const Entry& entry) {
  const auto invalid = [](const char* what) { return Error(Errc::invalid_argument, what); };
  const bool has_chunk = entry.kind == EntryKind::chunk_write || entry.kind == EntryKind::chunk_delete ||
                         entry.kind == EntryKind::chunk_discard;
  if (has_chunk && entry.chunk.is_zero()) return invalid("the chunk id is zero");
  switch (entry.kind) {
    case EntryKind::noop:
    case EntryKind::chunk_delete:
      return {};
    case EntryKind::chunk_write:
    case EntryKind::chunk_discard:
      if (entry.offset % kPageBytes != 0) return invalid("the offset is not a multiple of 4 KiB");
      if (entry.length == 0) return invalid("the length is zero");
      if (entry.length > kChunkBytes || entry.offset > kChunkBytes - entry.length) return invalid("beyond 4 MiB");
      if (entry.kind == EntryKind::chunk_discard && entry.length % kPageBytes != 0) {
        return invalid("the length to discard is not a multiple of 4 KiB");
      }
      return {};
    case EntryKind::kv_batch:
      if (entry.body.size() > kMaxBodyBytes) return Error(Errc::too_large, "a key-value batch of more than 1 MiB");
      return {};
  }
  return invalid("an unknown kind of entry");
}

// The payload in whole pages: what the last one has beyond the payload's end is zeroed in its block.
mem::BufChain whole_pages(const mem::BufChain& payload) {
  const size_t pad = (kPageBytes - payload.size() % kPageBytes) % kPageBytes;
  mem::BufChain pages;
  for (size_t i = 0; i < payload.slices().size(); ++i) {
    mem::Buf slice = payload.slices()[i];
    ASSERT(reinterpret_cast<uintptr_t>(slice.data()) % kPageBytes == 0);
    if (i + 1 == payload.slices().size() && pad > 0) {
      std::memset(slice.writable() + slice.size(), 0, pad);
      slice.extend(pad);
    }
    ASSERT(slice.size() % kPageBytes == 0);
    pages.append(std::move(slice));
  }
  return pages;
}

void add_page_crcs(const mem::BufChain& pages, std::vector<uint32_t>& crcs) {
  pages.for_each([&](std::span<const std::byte> slice) {
    for (; !slice.empty(); slice = slice.subspan(kPageBytes)) crcs.push_back(crc32c(slice.first(kPageBytes)));
  });
}

}  // namespace

// The device writes of one entry's payload to its units; reports each to the journal's op.
class ShardImpl::UnitWrites {
 public:
  UnitWrites() = default;
  UnitWrites(const UnitWrites&) = delete;
  UnitWrites& operator=(const UnitWrites&) = delete;

  void start(BlockDevice& device, const ShardLayout& layout, const std::vector<UnitRun>& runs, mem::BufChain payload,
             Journal::Op& op) {
    writes_.reserve(runs.size());
    for (const UnitRun& run : runs) {
      Write& write = writes_.emplace_back();
      write.op_ = &op;
      write.memory = payload.split_front(std::min<size_t>(payload.size(), size_t{run.count} * kUnitBytes));
      write.vectors.resize(write.memory.slices().size());
      write.memory.to_iovecs({write.vectors.data(), write.vectors.size()});
      write.op = IoRequest::Op::write;
      write.offset = layout.unit_offset(run.first);
      write.length = write.memory.size();
      write.iovecs = write.vectors.data();
      write.iovec_count = static_cast<uint32_t>(write.vectors.size());
      write.complete = [](IoRequest& done) { static_cast<Write&>(done).op_->end_write(done.result); };
    }
    op.begin_writes(static_cast<uint32_t>(writes_.size()));
    for (Write& write : writes_) device.submit(write);
  }

 private:
  struct Write : IoRequest {
    Journal::Op* op_ = nullptr;
    mem::BufChain memory;
    boost::container::small_vector<iovec, mem::BufChain::kInline> vectors;
  };
  boost::container::small_vector<Write, 1> writes_;
};

ShardImpl::ShardImpl(const Context& context, const ShardExtent& extent, const ShardLayout& layout,
                     const ShardOptions& options)
    : state_(context, extent, layout, options),
      journal_(context.loop, context.pool, context.device, state_.metrics, *this,
               {.layout = layout, .identity = {.device = extent.device, .shard = extent.shard}}),
      applier_(state_),
      reader_(state_, *this),
      admission_(state_, journal_, *this),
      checkpointer_(state_, journal_, *this),
      recycler_(state_, *this),
      checkpoint_wanted_(context.loop),
      checkpoint_done_(context.loop),
      interval_timer_([](void* self) { static_cast<ShardImpl*>(self)->want_checkpoint(); }, this),
      appended_(context.loop),
      scope_(context.loop) {
  appended_.set();
  context.pool.add_reclaimer(*this);
}

ShardImpl::~ShardImpl() {
  state_.context.pool.remove_reclaimer(*this);
  state_.context.loop.disarm(interval_timer_);
}

Task<Result<void>> ShardImpl::start() {
  CO_TRY(co_await reader_.start());
  scope_.spawn(&Journal::run, &journal_);
  scope_.spawn(&ShardImpl::checkpoint_loop, this);
  scope_.spawn(&Recycler::run, &recycler_);
  state_.update_space_metrics();
  co_return Result<void>{};
}

Index ShardImpl::last_index(GroupId group) const {
  const auto found = state_.groups.find(group);
  return found == state_.groups.end() ? Index{} : found->second.last;
}

Index ShardImpl::applied_index(GroupId group) const {
  const auto found = state_.groups.find(group);
  return found == state_.groups.end() ? Index{} : found->second.applied;
}

Task<Result<Permit>> ShardImpl::admit(const Entry& entry, mem::Purpose purpose, CancelToken token) {
  CO_TRY(validate(entry));
  co_return co_await admission_.admit(Admission::need_of(entry), admission_.lane_of(entry, purpose), token);
}

// How far the chunk may reach when an entry that is appended now is applied.
uint32_t ShardImpl::furthest_end(const GroupLog& log, ChunkId chunk) const {
  const auto found = state_.chunks.find(chunk);
  uint32_t end = found == state_.chunks.end() ? 0 : found->second.size;
  for (const PendingEntry& pending : log.pending) {
    if (pending.record.chunk == chunk) end = std::max(end, pending.record.offset + pending.record.length);
  }
  return end;
}

void ShardImpl::prepare_write(PendingEntry& pending, mem::BufChain payload, Need need, std::vector<UnitRun>& runs) {
  Record& record = pending.record;
  ASSERT(payload.size() == record.length);
  const GroupLog& log = state_.groups[record.group];
  const bool ends_in_unit = (record.offset + record.length) % kUnitBytes != 0 && record.length >= kDirectBytes;
  const bool extends = ends_in_unit && record.offset + record.length >= furthest_end(log, record.chunk);
  record.plan = plan_write(record.offset, record.length, extends);
  pending.reserved_units = inline_units(record.plan, record.offset, record.length);
  ASSERT(need.units == record.plan.unit_count + pending.reserved_units);

  state_.space.take(record.plan.unit_count, runs);
  record.units.reserve(record.plan.unit_count);
  for (const UnitRun& run : runs) {
    for (uint32_t i = 0; i < run.count; ++i) record.units.push_back(run.first + i);
  }
  mem::BufChain pages = whole_pages(payload);
  const size_t head = size_t{record.plan.head_pages} * kPageBytes;
  const size_t tail = size_t{record.plan.tail_pages} * kPageBytes;
  pending.inline_payload = pages.slice(0, head);
  pending.direct_payload = pages.slice(head, pages.size() - head - tail);
  pending.inline_payload.append(pages.slice(pages.size() - tail, tail));
}

Task<Result<void>> ShardImpl::append(Entry entry, Permit permit) {
  if (state_.damage) co_return *state_.damage;
  if (journal_.fenced()) co_return *journal_.fenced();
  ASSERT(permit.owner() == &admission_);
  GroupLog& log = state_.groups[entry.group];
  ASSERT(entry.index == log.last + 1);
  if (appending_++ == 0) appended_.reset();
  const Need need = permit.spend();
  PendingEntry& pending = log.push();
  pending.record.group = entry.group;
  pending.record.term = entry.term;
  pending.record.index = entry.index;
  pending.record.kind = entry.kind;
  pending.record.chunk = entry.chunk;
  pending.record.offset = entry.offset;
  pending.record.length = entry.length;
  pending.record.body = std::move(entry.body);

  Journal::Op op(journal_, pending);
  UnitWrites writes;
  if (entry.kind == EntryKind::chunk_write) {
    std::vector<UnitRun> runs;
    prepare_write(pending, std::move(entry.payload), need, runs);
    if (!runs.empty()) {
      state_.metrics.payload_bytes.add(pending.direct_payload.size());
      writes.start(state_.context.device, state_.layout, runs, pending.direct_payload, op);
    }
    // The device is at work while the checksums are computed. Inline pages lie at both ends.
    const size_t head = size_t{pending.record.plan.head_pages} * kPageBytes;
    pending.record.page_crcs.reserve(pages_of(pending.record.length));
    add_page_crcs(pending.inline_payload.slice(0, head), pending.record.page_crcs);
    add_page_crcs(pending.direct_payload, pending.record.page_crcs);
    add_page_crcs(pending.inline_payload.slice(head, pending.inline_payload.size() - head), pending.record.page_crcs);
  } else {
    ASSERT(need.units == 0);
  }
  journal_.submit(op, need.journal_bytes);
  maybe_checkpoint();
  auto result = co_await op;
  if (--appending_ == 0) appended_.set();
  co_return result;
}

void ShardImpl::apply(GroupId group, Index index) {
  GroupLog& log = state_.groups[group];
  ASSERT(!log.pending.empty() && index == log.applied + 1);
  do {
    PendingEntry& entry = log.pending.front();
    ASSERT(entry.durable && entry.record.index == log.applied + 1);
    applier_.apply(entry);
    journal_.entry_applied(entry.batch);
    ++state_.applies;
    log.pop();
    // After a replay, what the checkpoint has already follows by itself: it isn't in recovered().
  } while (!log.pending.empty() && log.pending.front().covered);
  state_.share_memory();
  state_.update_space_metrics();
  admission_.changed();
  note_change();
  maybe_checkpoint();
}

kv::Mutation ShardImpl::applied_mark(GroupId group, Index index) const {
  return {.key = mark_key(KeySpace::kv_mark, group), .value = encode_mark(index)};
}

std::optional<ChunkStat> ShardImpl::stat(ChunkId chunk) const {
  const auto found = state_.chunks.find(chunk);
  if (found == state_.chunks.end()) return std::nullopt;
  return ChunkStat{.size = found->second.size, .last_change = found->second.last_change, .group = found->second.group};
}

std::vector<ChunkId> ShardImpl::list(ChunkId after, size_t limit) const {
  std::vector<ChunkId> ids;
  for (auto at = state_.chunks.upper_bound(after); at != state_.chunks.end() && ids.size() < limit; ++at) {
    ids.push_back(at->first);
  }
  return ids;
}

SpaceUsage ShardImpl::usage() const {
  const uint64_t unit = kUnitBytes;
  return {.total_bytes = state_.space.total() * unit,
          .free_bytes = state_.space.free() * unit,
          .used_bytes = state_.space.used() * unit,
          .pending_bytes = state_.space.pending() * unit,
          .freeing_bytes = state_.space.freeing() * unit,
          .reserve_bytes = state_.space.reserve_units() * unit};
}

Result<void> ShardImpl::health() const {
  if (state_.damage) return *state_.damage;
  if (journal_.fenced()) return *journal_.fenced();
  return {};
}

Task<Result<void>> Shard::format(Context context, ShardExtent extent) {
  co_return co_await format_shard(context.device, context.pool, extent);
}

Task<Result<std::unique_ptr<Shard>>> Shard::open(Context context, ShardExtent extent, ShardOptions options) {
  co_return co_await recover_shard(context, extent, options);
}

}  // namespace cairn::engine
