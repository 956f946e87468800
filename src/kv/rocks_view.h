// One shard's view of a RocksDB database: see rocks_store.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "kv/ordered_store.h"
#include "kv/rocks_database.h"
#include "reactor/offload.h"
#include "reactor/reactor.h"

namespace cairn::kv {

class RocksView final : public OrderedStore {
 public:
  RocksView(std::shared_ptr<RocksDatabase> database, std::string prefix, OffloadPool& helpers, Reactor& reactor,
            Registry& registry, std::string_view labels);

  Result<void> write(std::span<const Mutation> mutations) override;
  Task<Result<std::optional<std::string>>> get(std::string_view key) override;
  Task<Result<ScanResult>> scan(ScanOptions options) override;
  Task<Result<void>> flush() override;

 private:
  // Coroutines copy the pointer before they wait: the view may be gone when they go on.
  std::shared_ptr<RocksDatabase> database_;
  std::string prefix_;
  OffloadPool& helpers_;
  Reactor& reactor_;
  Counter& writes_;
  Counter& busy_;
  Counter& reads_;
  Counter& reads_offloaded_;
  Counter& flushes_;
};

}  // namespace cairn::kv
