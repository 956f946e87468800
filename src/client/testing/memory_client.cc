#include "client/testing/memory_client.h"

#include <algorithm>

namespace cairn::client {
namespace {

uint64_t pages_of(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

MemoryClient::MemoryClient(Loop& loop, mem::Pool& pool, Options options)
    : loop_(loop), pool_(pool), options_(options), groups_(options.groups), powered_since_(loop.now()) {}

engine::GroupId MemoryClient::group_of_chunk(engine::ChunkId chunk) const {
  return engine::GroupId(static_cast<uint32_t>(std::hash<Id128>()(chunk) % options_.groups));
}
engine::GroupId MemoryClient::group_of_key(Id128 salt) const { return group_of_chunk(salt); }

std::vector<engine::GroupId> MemoryClient::all_groups() const {
  std::vector<engine::GroupId> all;
  all.reserve(options_.groups);
  for (uint32_t i = 0; i < options_.groups; ++i) all.emplace_back(i);
  return all;
}

Task<void> MemoryClient::take_time() {
  if (options_.latency_max.ns == 0) co_return;
  const auto time = static_cast<int64_t>(loop_.rng().below(static_cast<uint64_t>(options_.latency_max.ns)));
  (void)co_await loop_.sleep(nanoseconds(time));
}

Task<Result<void>> MemoryClient::before(Operation operation, Passage& passage, CallContext context) {
  ++calls_[static_cast<size_t>(operation)];
  passage.power_losses = power_losses_;
  if (fault_hook_) passage.fault = fault_hook_(operation);
  if (context.cancel.cancelled()) co_return Error(context.cancel.reason());
  co_await take_time();
  if (!powered_ || power_losses_ != passage.power_losses) co_return Error(Errc::closed, "the cluster is down");
  if (context.deadline <= loop_.now()) co_return Error(Errc::timed_out);
  if (passage.fault == Fault::refuse) co_return Error(Errc::unavailable, "refused on demand");
  if (passage.fault == Fault::lose_call) co_return Error(Errc::closed, "lost on demand, without effect");
  co_return Result<void>{};
}

Task<Result<void>> MemoryClient::after(Passage passage) {
  co_await take_time();
  if (power_losses_ != passage.power_losses) co_return Error(Errc::closed, "the cluster went down");
  if (passage.fault == Fault::lose_reply) co_return Error(Errc::closed, "lost on demand, with its effect");
  co_return Result<void>{};
}

void MemoryClient::power_on() {
  powered_ = true;
  powered_since_ = loop_.now();
  for (Group& group : groups_) group.leases.clear();
}

Task<Result<void>> MemoryClient::chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data,
                                             CallContext context) {
  ASSERT(offset % engine::kPageBytes == 0);
  ASSERT(offset + data.size() <= engine::kChunkBytes);
  for (size_t i = 0; i < data.slices().size(); ++i) {
    const mem::Buf& slice = data.slices()[i];
    ASSERT(reinterpret_cast<uintptr_t>(slice.data()) % engine::kPageBytes == 0);
    ASSERT(i + 1 == data.slices().size() || slice.size() % engine::kPageBytes == 0);
  }
  Passage passage;
  CO_TRY(co_await before(Operation::chunk_write, passage, context));
  const auto found = chunks_.find(chunk);
  const uint64_t old_size = found == chunks_.end() ? 0 : found->second.bytes.size();
  const uint64_t new_size = std::max<uint64_t>(old_size, offset + data.size());
  const uint64_t growth = pages_of(new_size) - pages_of(old_size);
  if (used_ + growth > options_.capacity) co_return Error(Errc::no_space, "the test's cluster is full");
  used_ += growth;
  Chunk& target = chunks_[chunk];
  target.bytes.resize(new_size);
  size_t at = offset;
  data.for_each([&](std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, target.bytes.begin() + static_cast<ptrdiff_t>(at));
    at += bytes.size();
  });
  data.clear();
  CO_TRY(co_await after(passage));
  co_return Result<void>{};
}

Task<Result<mem::BufChain>> MemoryClient::chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                                     CallContext context) {
  Passage passage;
  CO_TRY(co_await before(Operation::chunk_read, passage, context));
  auto found = chunks_.find(chunk);
  if (found == chunks_.end()) co_return Error(Errc::not_found, "no such chunk");
  if (found->second.damaged) co_return Error(Errc::corrupt, "damaged on demand");
  const size_t size = found->second.bytes.size();
  if (offset >= size) co_return mem::BufChain();
  const size_t wanted = std::min<size_t>(length, size - offset);
  CO_TRY(mem::BufChain out, co_await pool_.alloc_chain(wanted));
  // It may have gone while memory was waited for.
  found = chunks_.find(chunk);
  if (found == chunks_.end()) co_return Error(Errc::not_found, "no such chunk");
  size_t at = offset;
  for (const mem::Buf& slice : out.slices()) {
    mem::Buf writable = slice;
    std::ranges::copy(std::span(found->second.bytes).subspan(at, slice.size()), writable.writable());
    at += slice.size();
  }
  CO_TRY(co_await after(passage));
  co_return out;
}

Task<Result<void>> MemoryClient::chunk_delete(engine::ChunkId chunk, CallContext context) {
  Passage passage;
  CO_TRY(co_await before(Operation::chunk_delete, passage, context));
  if (const auto found = chunks_.find(chunk); found != chunks_.end()) {
    used_ -= pages_of(found->second.bytes.size());
    chunks_.erase(found);
  }
  CO_TRY(co_await after(passage));
  co_return Result<void>{};
}

Task<Result<std::vector<engine::ChunkId>>> MemoryClient::chunk_list(engine::GroupId group, engine::ChunkId after_id,
                                                                    size_t limit, CallContext context) {
  Passage passage;
  CO_TRY(co_await before(Operation::chunk_list, passage, context));
  std::vector<engine::ChunkId> out;
  for (auto at = chunks_.upper_bound(after_id); at != chunks_.end() && out.size() < limit; ++at) {
    if (group_of_chunk(at->first) == group) out.push_back(at->first);
  }
  CO_TRY(co_await after(passage));
  co_return out;
}

Task<Result<std::optional<std::string>>> MemoryClient::kv_get(engine::GroupId group, std::string key,
                                                              CallContext context) {
  ASSERT(key.size() <= kMaxKeyBytes);
  Passage passage;
  CO_TRY(co_await before(Operation::kv_get, passage, context));
  const Map& map = groups_[group.value].map;
  std::optional<std::string> value;
  if (const auto found = map.find(key); found != map.end()) value = found->second;
  CO_TRY(co_await after(passage));
  co_return value;
}

Task<Result<kv::ScanResult>> MemoryClient::kv_scan(engine::GroupId group, kv::ScanOptions options,
                                                   CallContext context) {
  Passage passage;
  CO_TRY(co_await before(Operation::kv_scan, passage, context));
  const Map& map = groups_[group.value].map;
  kv::ScanResult result;
  size_t bytes = 0;
  for (auto at = map.lower_bound(options.begin); at != map.end(); ++at) {
    if (!options.end.empty() && at->first >= options.end) break;
    const size_t size = at->first.size() + (options.keys_only ? 0 : at->second.size());
    if (result.items.size() >= options.max_items || (!result.items.empty() && bytes + size > options.max_bytes)) {
      result.more = true;
      break;
    }
    bytes += size;
    result.items.push_back({at->first, options.keys_only ? std::string() : at->second});
  }
  CO_TRY(co_await after(passage));
  co_return result;
}

bool MemoryClient::holds(const Map& map, const kv::Condition& condition) {
  const auto found = map.find(condition.key);
  switch (condition.kind) {
    case kv::Condition::Kind::absent:
      return found == map.end();
    case kv::Condition::Kind::present:
      return found != map.end();
    case kv::Condition::Kind::equals:
      return found != map.end() && found->second == condition.value;
  }
  return false;
}

Task<Result<void>> MemoryClient::kv_batch(engine::GroupId group, kv::Batch batch, mem::Purpose /*purpose*/,
                                          CallContext context) {
  CO_TRY(kv::encode_batch(batch.mutations));  // its limits
  for (const kv::Mutation& mutation : batch.mutations) ASSERT(mutation.key.size() <= kMaxKeyBytes);
  Passage passage;
  CO_TRY(co_await before(Operation::kv_batch, passage, context));
  Map& map = groups_[group.value].map;
  for (size_t i = 0; i < batch.conditions.size(); ++i) {
    if (!holds(map, batch.conditions[i])) co_return Error(Errc::condition_failed, std::to_string(i));
  }
  for (kv::Mutation& mutation : batch.mutations) {
    if (mutation.value) {
      map.insert_or_assign(std::move(mutation.key), *std::move(mutation.value));
    } else {
      map.erase(mutation.key);
    }
  }
  CO_TRY(co_await after(passage));
  co_return Result<void>{};
}

Task<Result<void>> MemoryClient::lease_renew(engine::GroupId group, Id128 what, Duration ttl, CallContext context) {
  ASSERT(ttl <= kMaxLease);
  Passage passage;
  CO_TRY(co_await before(Operation::lease, passage, context));
  Time& until = groups_[group.value].leases[what];
  until = std::max(until, loop_.now() + ttl);
  CO_TRY(co_await after(passage));
  co_return Result<void>{};
}

Task<Result<Client::LeaseCheck>> MemoryClient::lease_check(engine::GroupId group, std::vector<Id128> what,
                                                           CallContext context) {
  Passage passage;
  CO_TRY(co_await before(Operation::lease, passage, context));
  LeaseCheck check;
  check.memory = loop_.now() - powered_since_;
  for (const Id128& id : what) {
    const auto found = groups_[group.value].leases.find(id);
    check.held.push_back(found != groups_[group.value].leases.end() && found->second > loop_.now());
  }
  CO_TRY(co_await after(passage));
  co_return check;
}

std::vector<engine::ChunkId> MemoryClient::chunks() const {
  std::vector<engine::ChunkId> out;
  out.reserve(chunks_.size());
  for (const auto& [id, chunk] : chunks_) out.push_back(id);
  return out;
}

}  // namespace cairn::client
