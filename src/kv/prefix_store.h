// PrefixStore: the part of another store whose keys begin with a prefix, seen as a store of its own. flush() flushes
// the whole underlying store.
#pragma once

#include <string>
#include <utility>

#include "kv/ordered_store.h"

namespace cairn::kv {

// The first key after all keys that begin with `prefix`; empty when there is none (only 0xff bytes).
std::string prefix_end(std::string_view prefix);

class PrefixStore final : public OrderedStore {
 public:
  // `base` outlives this.
  PrefixStore(OrderedStore& base, std::string prefix) : base_(base), prefix_(std::move(prefix)) {}

  Result<void> write(std::span<const Mutation> mutations) override;
  Task<Result<std::optional<std::string>>> get(std::string_view key) override;
  Task<Result<ScanResult>> scan(ScanOptions options) override;
  Task<Result<void>> flush() override { return base_.flush(); }

 private:
  OrderedStore& base_;
  std::string prefix_;
};

}  // namespace cairn::kv
