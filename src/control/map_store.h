// MapStore: where the cluster map lives. On one node that is EmbeddedMapStore; a cluster of several will keep it in
// etcd behind the same interface: one key, changed by compare-and-swap, watched for changes.
#pragma once

#include <optional>
#include <string>

#include "control/cluster_map.h"
#include "kv/ordered_store.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::control {

class MapStore {
 public:
  virtual ~MapStore() = default;

  // None: no cluster has been formed yet. Errors: corrupt, unsupported, the store's.
  virtual Task<Result<std::optional<ClusterMap>>> load() = 0;
  // Durable when it returns ok. `map` is checked, and its epoch follows the stored one's (1 when there is none).
  // Errors: condition_failed when it doesn't (somebody else was faster: load again), invalid_argument, the store's.
  virtual Task<Result<void>> replace(ClusterMap map) = 0;
  // The map as soon as its epoch is greater than `epoch`. Errors: the token's reason, the store's.
  virtual Task<Result<ClusterMap>> wait_newer(uint64_t epoch, CancelToken cancel) = 0;
};

// Keeps the map under one key of an ordered store on this node. The only user of that key.
class EmbeddedMapStore final : public MapStore {
 public:
  static constexpr std::string_view kDefaultKey = "control/map";

  // Loop and store outlive it.
  EmbeddedMapStore(Loop& loop, kv::OrderedStore& store, std::string key = std::string(kDefaultKey));

  Task<Result<std::optional<ClusterMap>>> load() override;
  Task<Result<void>> replace(ClusterMap map) override;
  Task<Result<ClusterMap>> wait_newer(uint64_t epoch, CancelToken cancel) override;

 private:
  kv::OrderedStore& store_;
  std::string key_;
  Semaphore replacing_;  // one at a time
  Event changed_;        // set and reset at each change
};

}  // namespace cairn::control
