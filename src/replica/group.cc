#include "replica/group.h"

#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "replica/solo_log.h"

namespace cairn::replica {

// Counts one call, so that close() can wait for it.
class Group::UnderWay {
 public:
  explicit UnderWay(Group& group) : group_(group) {
    if (group_.under_way_++ == 0) group_.idle_.reset();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    if (--group_.under_way_ == 0) group_.idle_.set();
  }

 private:
  Group& group_;
};

Group::Group(Context context, engine::GroupId id)
    : context_(context), id_(id), leases_(context.loop), idle_(context.loop) {
  idle_.set();
}

Group::~Group() { ASSERT(under_way_ == 0); }

std::string Group::store_prefix(engine::GroupId id) {
  // All of one length, so that none is the beginning of another; never the engine's.
  std::string prefix = "g";
  for (int shift = 24; shift >= 0; shift -= 8) prefix += static_cast<char>(id.value >> shift & 0xff);
  static_assert(engine::kEngineKeyByte != 'g');
  return prefix;
}

Task<std::unique_ptr<Group>> Group::open(Context context, engine::GroupId id) {
  std::unique_ptr<Group> group(new Group(context, id));
  const Result<void> recovered = co_await group->recover();
  if (!recovered) {
    LOG(error, "group {} can't serve: {}", id.value, recovered.error().to_string());
    group->failed_ = recovered.error();
  }
  co_return group;
}

Task<Result<void>> Group::recover() {
  // Of a damaged shard nobody knows how much is missing, so it must not be built upon.
  CO_TRY(context_.shard.health());
  CO_TRY(kv_, co_await kv::KvMachine::open(context_.loop, context_.store, {.prefix = store_prefix(id_)}));
  auto log = std::make_unique<SoloLog>(context_.loop, context_.shard, id_, static_cast<StateMachine&>(*this));
  CO_TRY(co_await log->recover());
  log_ = std::move(log);
  co_return Result<void>{};
}

Task<Result<void>> Group::apply(Committed entry) {
  if (entry.kind == engine::EntryKind::kv_batch) {
    std::vector<kv::Mutation> mark;
    mark.push_back(context_.shard.applied_mark(id_, entry.index));
    CO_TRY(co_await kv_->apply(entry.index.value, std::move(entry.body), std::move(mark)));
  }
  context_.shard.apply(id_, entry.index);
  co_return Result<void>{};
}

Task<void> Group::close() {
  closing_ = true;
  while (under_way_ > 0) (void)co_await idle_.wait();
}

Result<void> Group::open_for_calls() const {
  if (closing_) return Error(Errc::unavailable, "the node is stopping");
  if (failed_) return *failed_;
  return {};
}

Result<void> Group::serving() const {
  TRY(open_for_calls());
  if (!log_->leads()) {
    if (Result<void> health = log_->health(); !health) return health.error();
    return Error(Errc::unavailable, "this replica does not lead the group");
  }
  return {};
}

GroupStatus Group::status() const {
  GroupStatus status{.group = id_,
                     .leads = false,
                     .term = {},
                     .last_index = {},
                     .applied_index = {},
                     .health = {},
                     .usage = context_.shard.usage()};
  if (log_ != nullptr) {
    status.leads = log_->leads();
    status.term = log_->term();
    status.last_index = log_->last_index();
    status.applied_index = log_->applied_index();
    status.health = log_->health();
  }
  if (failed_) status.health = *failed_;
  if (status.health) status.health = context_.shard.health();
  return status;
}

Task<Result<void>> Group::before_read(CancelToken cancel) {
  CO_TRY(open_for_calls());
  if (!log_->may_read()) CO_TRY(co_await log_->read_barrier(cancel));
  co_return Result<void>{};
}

Task<Result<void>> Group::propose(engine::Entry entry, mem::Purpose purpose, CancelToken cancel) {
  entry.group = id_;
  Result<engine::Permit> permit = co_await context_.shard.admit(entry, purpose, cancel);
  if (!permit) {
    context_.metrics.refused.add();
    co_return std::move(permit).error();
  }
  CO_TRY(serving());  // it may have waited long
  const Time start = context_.loop.now();
  context_.metrics.proposals.add();
  Result<void> done = co_await log_->propose(std::move(entry), *std::move(permit));
  context_.metrics.propose_us.record_us(static_cast<uint64_t>((context_.loop.now() - start).us()));
  co_return done;
}

Task<Result<void>> Group::chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data, CancelToken cancel) {
  const UnderWay under_way(*this);
  CO_TRY(serving());
  engine::Entry entry;
  entry.kind = engine::EntryKind::chunk_write;
  entry.chunk = chunk;
  entry.offset = offset;
  entry.length = static_cast<uint32_t>(data.size());
  entry.payload = std::move(data);
  co_return co_await propose(std::move(entry), mem::Purpose::client, cancel);
}

Task<Result<void>> Group::chunk_delete(engine::ChunkId chunk, CancelToken cancel) {
  const UnderWay under_way(*this);
  CO_TRY(serving());
  engine::Entry entry;
  entry.kind = engine::EntryKind::chunk_delete;
  entry.chunk = chunk;
  co_return co_await propose(std::move(entry), mem::Purpose::internal, cancel);
}

Task<Result<mem::BufChain>> Group::chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                              CancelToken cancel, mem::Purpose purpose) {
  const UnderWay under_way(*this);
  CO_TRY(co_await before_read(cancel));
  co_return co_await context_.shard.read(chunk, offset, length, cancel, purpose);
}

Task<Result<std::vector<engine::ChunkId>>> Group::chunk_list(engine::ChunkId after, size_t limit, CancelToken cancel) {
  // The shard lists the chunks of all its groups: a bounded number at a time, others in between.
  constexpr size_t kStep = 1000;
  const UnderWay under_way(*this);
  CO_TRY(co_await before_read(cancel));
  std::vector<engine::ChunkId> out;
  while (out.size() < limit) {
    const std::vector<engine::ChunkId> step = context_.shard.list(after, kStep);
    for (const engine::ChunkId& chunk : step) {
      const auto stat = context_.shard.stat(chunk);
      if (stat && stat->group == id_ && out.size() < limit) out.push_back(chunk);
    }
    if (step.size() < kStep) break;
    after = step.back();
    co_await context_.loop.yield();
    if (cancel.cancelled()) co_return Error(cancel.reason());
  }
  co_return out;
}

Task<Result<std::optional<std::string>>> Group::kv_get(std::string key, CancelToken cancel) {
  const UnderWay under_way(*this);
  CO_TRY(co_await before_read(cancel));
  co_return co_await kv_->get(std::move(key));
}

Task<Result<kv::ScanResult>> Group::kv_scan(kv::ScanOptions options, CancelToken cancel) {
  const UnderWay under_way(*this);
  CO_TRY(co_await before_read(cancel));
  co_return co_await kv_->scan(std::move(options));
}

Task<Result<void>> Group::kv_batch(kv::Batch batch, mem::Purpose purpose, CancelToken cancel) {
  const UnderWay under_way(*this);
  CO_TRY(co_await before_read(cancel));  // conditions are reads
  const bool changes = !batch.mutations.empty();
  CO_TRY(kv::KvMachine::Admission admission, co_await kv_->admit(std::move(batch), cancel));
  if (!changes) co_return Result<void>{};
  engine::Entry entry;
  entry.kind = engine::EntryKind::kv_batch;
  entry.body = std::move(admission.body);
  co_return co_await propose(std::move(entry), purpose, cancel);
}

Result<LeaseTable*> Group::leases() {
  TRY(open_for_calls());
  return &leases_;
}

}  // namespace cairn::replica
