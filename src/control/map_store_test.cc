#include "control/map_store.h"

#include <gtest/gtest.h>

#include "kv/memory_store.h"
#include "kv/test_loop.h"

namespace cairn::control {
namespace {

struct MapStoreTest : ::testing::Test {
  kv::TestLoop loop;
  kv::MemoryStore store{loop, {.read_max = microseconds(50), .flush_max = microseconds(500)}};
  EmbeddedMapStore maps{loop, store};

  static ClusterMap map_of(uint64_t epoch) {
    ClusterMap map = *make_single_node_map(Id128{{9}}, {.id = Id128{{1}}, .name = "n", .address = "a:1"},
                                           {{.id = Id128{{2}}, .node = Id128{{1}}, .shards = 4}});
    map.epoch = epoch;
    return map;
  }
  Result<void> replace(ClusterMap map) { return loop.run(&MapStore::replace, &maps, std::move(map)); }
  Result<std::optional<ClusterMap>> load() { return loop.run(&MapStore::load, &maps); }
};

TEST_F(MapStoreTest, StartsEmpty) {
  const auto map = load();
  ASSERT_TRUE(map);
  EXPECT_FALSE(*map);
}

TEST_F(MapStoreTest, ReplacesInOrderOnly) {
  EXPECT_EQ(replace(map_of(2)).code(), Errc::condition_failed);
  ASSERT_TRUE(replace(map_of(1)));
  EXPECT_EQ(replace(map_of(1)).code(), Errc::condition_failed);
  EXPECT_EQ(replace(map_of(3)).code(), Errc::condition_failed);
  ASSERT_TRUE(replace(map_of(2)));
  ClusterMap foreign = map_of(3);
  foreign.cluster = Id128{{8}};
  EXPECT_EQ(replace(foreign).code(), Errc::invalid_argument);
  EXPECT_EQ((*load())->epoch, 2u);
}

TEST_F(MapStoreTest, IsDurable) {
  for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
    ASSERT_TRUE(replace(map_of(epoch)));
    store.crash(loop.rng());
    EXPECT_EQ((*load())->epoch, epoch);
  }
}

TEST_F(MapStoreTest, OnlyOneOfTwoWins) {
  std::vector<Errc> codes;
  Scope scope(loop);
  struct Racer {
    static Task<void> run(MapStore* maps, ClusterMap map, std::vector<Errc>* out) {
      out->push_back((co_await maps->replace(std::move(map))).code());
    }
  };
  scope.spawn(&Racer::run, &maps, map_of(1), &codes);
  scope.spawn(&Racer::run, &maps, map_of(1), &codes);
  loop.run_until_idle();
  EXPECT_EQ(codes, (std::vector{Errc::ok, Errc::condition_failed}));
}

TEST_F(MapStoreTest, WakesWatchers) {
  uint64_t seen = 0;
  Scope scope(loop);
  struct Watcher {
    static Task<void> run(MapStore* maps, uint64_t* seen) {
      const auto map = co_await maps->wait_newer(1, {});
      *seen = map ? map->epoch : 99;
    }
  };
  ASSERT_TRUE(replace(map_of(1)));
  scope.spawn(&Watcher::run, &maps, &seen);
  loop.run_until_idle();
  EXPECT_EQ(seen, 0u);
  ASSERT_TRUE(replace(map_of(2)));
  EXPECT_EQ(seen, 2u);
}

TEST_F(MapStoreTest, SaysThatTheMapIsDamaged) {
  ASSERT_TRUE(replace(map_of(1)));
  const std::vector<kv::Mutation> damage{{std::string(EmbeddedMapStore::kDefaultKey), "nonsense"}};
  ASSERT_TRUE(store.write(damage));
  EXPECT_EQ(load().code(), Errc::corrupt);
  EXPECT_EQ(replace(map_of(2)).code(), Errc::corrupt);
}

}  // namespace
}  // namespace cairn::control
