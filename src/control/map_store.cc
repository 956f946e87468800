#include "control/map_store.h"

#include <fmt/core.h>

#include <vector>

namespace cairn::control {

EmbeddedMapStore::EmbeddedMapStore(Loop& loop, kv::OrderedStore& store, std::string key)
    : store_(store), key_(std::move(key)), replacing_(loop, 1), changed_(loop) {}

Task<Result<std::optional<ClusterMap>>> EmbeddedMapStore::load() {
  CO_TRY(const auto bytes, co_await store_.get(key_));
  if (!bytes) co_return std::optional<ClusterMap>();
  CO_TRY(auto map, ClusterMap::decode(*bytes));
  co_return std::optional<ClusterMap>(std::move(map));
}

Task<Result<void>> EmbeddedMapStore::replace(ClusterMap map) {
  CO_TRY(map.check());
  CO_TRY(co_await replacing_.take());
  Result<void> result;
  const auto stored = co_await load();
  const uint64_t epoch = stored && *stored ? (*stored)->epoch : 0;
  if (!stored) {
    result = stored.error();
  } else if (map.epoch != epoch + 1) {
    result = Error(Errc::condition_failed, fmt::format("the cluster map has epoch {}", epoch));
  } else if (*stored && (*stored)->cluster != map.cluster) {
    result = Error(Errc::invalid_argument, "the map of another cluster");
  } else {
    const std::vector<kv::Mutation> mutations{{key_, map.encode()}};
    result = store_.write(mutations);
    if (result) result = co_await store_.flush();
    if (result) {
      changed_.set();
      changed_.reset();
    }
  }
  replacing_.give();
  co_return result;
}

Task<Result<ClusterMap>> EmbeddedMapStore::wait_newer(uint64_t epoch, CancelToken cancel) {
  for (;;) {
    CO_TRY(auto map, co_await load());
    if (map && map->epoch > epoch) co_return *std::move(map);
    CO_TRY(co_await changed_.wait(cancel));
  }
}

}  // namespace cairn::control
