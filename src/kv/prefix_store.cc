#include "kv/prefix_store.h"

#include "base/assert.h"

namespace cairn::kv {

std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

Result<void> PrefixStore::write(std::span<const Mutation> mutations) {
  std::vector<Mutation> prefixed;
  prefixed.reserve(mutations.size());
  for (const Mutation& mutation : mutations) prefixed.push_back({prefix_ + mutation.key, mutation.value});
  return base_.write(prefixed);
}

Task<Result<std::optional<std::string>>> PrefixStore::get(std::string_view key) {
  const std::string prefixed = prefix_ + std::string(key);
  co_return co_await base_.get(prefixed);
}

Task<Result<ScanResult>> PrefixStore::scan(ScanOptions options) {
  options.begin.insert(0, prefix_);
  options.end = options.end.empty() ? prefix_end(prefix_) : prefix_ + options.end;
  CO_TRY(auto result, co_await base_.scan(std::move(options)));
  for (KeyValue& item : result.items) {
    ASSERT(item.key.starts_with(prefix_));
    item.key.erase(0, prefix_.size());
  }
  co_return result;
}

}  // namespace cairn::kv
