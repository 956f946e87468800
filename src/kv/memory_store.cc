#include "kv/memory_store.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::kv {

Errc MemoryStore::begin(Operation operation) const {
  if (!powered_) return Errc::closed;
  return fault_hook_ ? fault_hook_(operation) : Errc::ok;
}

Task<Result<void>> MemoryStore::take_time(Duration max) {
  if (loop_ == nullptr || max.ns <= 0) co_return Result<void>{};
  const uint64_t losses = power_losses_;
  const auto delay = static_cast<int64_t>(loop_->rng().below(static_cast<uint64_t>(max.ns) + 1));
  CO_TRY(co_await loop_->sleep(nanoseconds(delay)));
  if (losses != power_losses_) co_return Error(Errc::closed, "the store lost its power");
  co_return Result<void>{};
}

Result<void> MemoryStore::write(std::span<const Mutation> mutations) {
  if (const Errc fault = begin(Operation::write); fault != Errc::ok) return Error(fault, "memory store: write");
  if (unflushed_limit_ != 0 && undo_.size() >= unflushed_limit_) {
    return Error(Errc::busy, "memory store: too many writes wait for a flush");
  }
  Undo undo{.sequence = ++last_sequence_, .before = {}};
  undo.before.reserve(mutations.size());
  for (const Mutation& mutation : mutations) {
    auto found = map_.find(mutation.key);
    if (found == map_.end()) {
      undo.before.push_back({mutation.key, std::nullopt});
      if (mutation.value) map_.emplace(mutation.key, *mutation.value);
    } else if (mutation.value) {
      undo.before.push_back({mutation.key, std::exchange(found->second, *mutation.value)});
    } else {
      undo.before.push_back({mutation.key, std::move(found->second)});
      map_.erase(found);
    }
  }
  std::ranges::reverse(undo.before);
  undo_.push_back(std::move(undo));
  return {};
}

Task<Result<std::optional<std::string>>> MemoryStore::get(std::string_view key) {
  const std::string wanted(key);  // the caller's may be gone after the wait
  if (const Errc fault = begin(Operation::get); fault != Errc::ok) co_return Error(fault, "memory store: get");
  CO_TRY(co_await take_time(latency_.read_max));
  const auto found = map_.find(wanted);
  if (found == map_.end()) co_return std::optional<std::string>();
  co_return std::optional<std::string>(found->second);
}

Task<Result<ScanResult>> MemoryStore::scan(ScanOptions options) {
  if (const Errc fault = begin(Operation::scan); fault != Errc::ok) co_return Error(fault, "memory store: scan");
  CO_TRY(co_await take_time(latency_.read_max));
  ScanResult result;
  size_t bytes = 0;
  for (auto at = map_.lower_bound(options.begin); at != map_.end(); ++at) {
    if (!options.end.empty() && at->first >= options.end) break;
    const size_t size = at->first.size() + (options.keys_only ? 0 : at->second.size());
    const bool full = result.items.size() >= options.max_items || bytes + size > options.max_bytes;
    if (full && !result.items.empty()) {
      result.more = true;
      break;
    }
    bytes += size;
    result.items.push_back({at->first, options.keys_only ? std::string() : at->second});
  }
  co_return result;
}

Task<Result<void>> MemoryStore::flush() {
  if (const Errc fault = begin(Operation::flush); fault != Errc::ok) co_return Error(fault, "memory store: flush");
  const uint64_t covered = last_sequence_;
  CO_TRY(co_await take_time(latency_.flush_max));
  if (lie_about_flush_) co_return Result<void>{};
  while (!undo_.empty() && undo_.front().sequence <= covered) undo_.pop_front();
  co_return Result<void>{};
}

void MemoryStore::power_off(Rng& rng) {
  ASSERT(powered_);
  powered_ = false;
  ++power_losses_;
  const size_t kept = rng.below(undo_.size() + 1);
  while (undo_.size() > kept) {
    for (Mutation& mutation : undo_.back().before) {
      if (mutation.value) {
        map_.insert_or_assign(std::move(mutation.key), std::move(*mutation.value));
      } else {
        map_.erase(mutation.key);
      }
    }
    undo_.pop_back();
  }
  // What survived is on stable storage now.
  undo_.clear();
}

}  // namespace cairn::kv
