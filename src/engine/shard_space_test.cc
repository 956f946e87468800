// A full shard: refuses, deletes, and gives everything back, to the last unit. And what happens under memory pressure.
#include <gtest/gtest.h>

#include "engine/geometry.h"
#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

using test::chunk_id;
using test::pattern;
using test::Rig;

class ShardSpaceTest : public ::testing::Test {
 protected:
  void check_sum() {
    const SpaceUsage usage = rig.shard->usage();
    EXPECT_EQ(usage.total_bytes, usage.free_bytes + usage.used_bytes + usage.pending_bytes + usage.freeing_bytes);
  }
  // Until the shard refuses; returns how many chunks there are then.
  uint64_t fill(uint32_t size, uint64_t first = 1) {
    const auto bytes = pattern(size, 1);
    for (uint64_t i = first;; ++i) {
      const auto written = rig.write(chunk_id(i), 0, bytes);
      check_sum();
      if (!written) {
        EXPECT_EQ(written.code(), Errc::no_space) << written.error().to_string();
        EXPECT_NE(written.error().message().find("delete"), std::string::npos);
        return i - first;
      }
    }
  }
  void wait_for_free_units() { rig.loop.run_for(seconds(1)); }

  Rig rig{{.shard_bytes = 24 * test::kMegabyte, .pool_bytes = 48 * test::kMegabyte}};
};

TEST_F(ShardSpaceTest, FillDeleteRefillAddsUpExactly) {
  rig.start();
  const uint64_t total = rig.shard->usage().total_bytes;
  const uint64_t reserve = rig.shard->usage().reserve_bytes;
  for (const uint32_t size : {65536u, 4096u, 200000u, 1000000u}) {
    SCOPED_TRACE(size);
    const uint64_t units = (size + kUnitBytes - 1) / kUnitBytes;
    const uint64_t expected = (total - reserve) / kUnitBytes / units;
    for (int cycle = 0; cycle < 3; ++cycle) {
      const uint64_t chunks = fill(size);
      EXPECT_EQ(chunks, expected) << cycle;
      EXPECT_EQ(rig.shard->usage().used_bytes, chunks * units * kUnitBytes);
      for (uint64_t i = 1; i <= chunks; ++i) ASSERT_TRUE(rig.remove(chunk_id(i))) << i;
      EXPECT_EQ(rig.shard->usage().used_bytes, 0u);
      ASSERT_TRUE(rig.checkpoint());
      wait_for_free_units();
      EXPECT_EQ(rig.shard->usage().free_bytes, total);
      EXPECT_EQ(rig.shard->usage().freeing_bytes, 0u);
    }
  }
}

// Nobody has to ask for the checkpoint: a write that needs what was deleted waits for it.
TEST_F(ShardSpaceTest, SpaceComesBackByItself) {
  rig.start();
  const uint64_t chunks = fill(300000);
  ASSERT_TRUE(rig.remove(chunk_id(1)));
  EXPECT_TRUE(rig.write(chunk_id(1000), 0, pattern(300000, 2)));
  EXPECT_EQ(rig.write(chunk_id(1001), 0, pattern(300000, 3)).code(), Errc::no_space);
  for (uint64_t i = 2; i <= chunks; ++i) ASSERT_TRUE(rig.remove(chunk_id(i)));
  EXPECT_EQ(fill(300000, 2000), chunks - 1);
}

TEST_F(ShardSpaceTest, AFullShardStillDoesEverythingElse) {
  rig.start();
  const uint64_t chunks = fill(65536);
  // Reads, small overwrites in place, discards, keys, internal writes, deletes, restarts.
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(65536, 1));
  EXPECT_TRUE(rig.write(chunk_id(1), 4096, pattern(4096, 5)));
  EXPECT_TRUE(rig.run(rig.write_entry(chunk_id(9999), 0, pattern(100, 1)), mem::Purpose::internal));
  Entry key = Rig::simple_entry(EntryKind::kv_batch, {});
  key.body = "a=b";
  EXPECT_TRUE(rig.run(std::move(key)));
  EXPECT_EQ(rig.write(chunk_id(5000), 0, pattern(1, 1)).code(), Errc::no_space);
  rig.crash();
  rig.open();
  EXPECT_EQ(rig.read(chunk_id(1), 4096, 4096).value(), pattern(4096, 5));
  EXPECT_EQ(rig.write(chunk_id(5000), 0, pattern(1, 1)).code(), Errc::no_space);
  EXPECT_TRUE(rig.run(Rig::simple_entry(EntryKind::chunk_discard, chunk_id(2), 0, 65536)));
  EXPECT_TRUE(rig.remove(chunk_id(3)));
  EXPECT_TRUE(rig.write(chunk_id(5000), 0, pattern(1, 1)));
  for (uint64_t i = 4; i <= chunks; ++i) ASSERT_TRUE(rig.remove(chunk_id(i)));
  rig.crash();
  rig.open();
  EXPECT_EQ(rig.shard->list({}, 100).size(), 4u);  // 1, 2 (all holes), 5000, 9999
  check_sum();
}

// Thousands of crashes on a full device would show a unit that is lost once: here a few dozen, with sums that must
// hold.
TEST_F(ShardSpaceTest, NothingLeaksThroughCrashes) {
  rig.start();
  const uint64_t total = rig.shard->usage().total_bytes;
  std::map<uint64_t, uint32_t> live;
  for (int round = 0; round < 40; ++round) {
    for (uint64_t n = rig.rng.below(30); n > 0; --n) {
      const uint64_t id = 1 + rig.rng.below(40);
      if (live.contains(id) && rig.rng.chance(1, 2)) {
        ASSERT_TRUE(rig.remove(chunk_id(id)));
        live.erase(id);
        continue;
      }
      const auto size = static_cast<uint32_t>(1 + rig.rng.below(400000));
      const auto written = rig.write(chunk_id(id), 0, pattern(size, id));
      if (written) live[id] = std::max(live[id], size);
      if (rig.rng.chance(1, 20)) (void)rig.checkpoint();
    }
    if (rig.rng.chance(1, 2)) {
      rig.crash();
      rig.open();
      ASSERT_TRUE(rig.shard->health());
    } else {
      rig.reopen();
    }
    uint64_t used = 0;
    for (const auto& [id, size] : live) used += (size + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
    ASSERT_EQ(rig.shard->usage().used_bytes, used) << round;
    check_sum();
  }
  for (const auto& [id, size] : live) ASSERT_TRUE(rig.remove(chunk_id(id)));
  ASSERT_TRUE(rig.checkpoint());
  wait_for_free_units();
  EXPECT_EQ(rig.shard->usage().free_bytes, total);
}

// The journal is much smaller than what goes through it: it wraps around again and again.
TEST_F(ShardSpaceTest, TheRingWrapsManyTimes) {
  rig.start();
  uint64_t written = 0;
  for (uint64_t i = 0; written < 10 * rig.extent.journal_bytes; ++i) {
    const auto size = static_cast<uint32_t>(1 + rig.rng.below(60000));
    ASSERT_TRUE(rig.write(chunk_id(1 + i % 20), 0, pattern(size, i)));
    written += size;
    if (i % 500 == 499) {
      rig.crash();
      rig.open();
      ASSERT_TRUE(rig.shard->health());
      EXPECT_EQ(rig.read(chunk_id(1 + i % 20), 0, size).value(), pattern(size, i));
    }
  }
}

TEST_F(ShardSpaceTest, AFullJournalMakesWritersWait) {
  rig.start();
  // Entries that are appended and never applied pin the journal, as a group without a majority would.
  rig.store->set_fault_hook(nullptr);
  std::vector<Errc> results;
  Scope scope(rig.loop);
  const auto append_only = [](Rig* r, uint64_t number, std::vector<Errc>* out) -> Task<void> {
    Entry entry = r->write_entry(chunk_id(number), 0, pattern(60 * 1024, number));
    auto permit = co_await r->shard->admit(entry, mem::Purpose::client);
    if (!permit) {
      out->push_back(permit.error().code());
      co_return;
    }
    entry.index = r->take_index(GroupId(1));
    auto appended = co_await r->shard->append(std::move(entry), *std::move(permit));
    out->push_back(appended.code());
  };
  uint64_t number = 0;
  while (results.empty() || results.back() == Errc::ok) {
    scope.spawn(append_only, &rig, ++number, &results);
    rig.loop.run_until([&] { return scope.running() == 0; });
  }
  // Either the units or the journal ran out; both are said plainly, after a bounded wait.
  EXPECT_TRUE(results.back() == Errc::busy || results.back() == Errc::no_space) << errc_name(results.back());
  // Deletes still go in.
  Entry remove = Rig::simple_entry(EntryKind::chunk_delete, chunk_id(1));
  EXPECT_TRUE(
      rig.loop.run([](Rig* r, Entry* entry) { return r->shard->admit(*entry, mem::Purpose::client); }, &rig, &remove));
  // And as soon as the entries are applied, everything goes on.
  for (uint64_t i = 1; i < number; ++i) rig.shard->apply(GroupId(1), Index(i));
  EXPECT_TRUE(rig.remove(chunk_id(1)));
  EXPECT_TRUE(rig.write(chunk_id(1), 0, pattern(1000, 1)));
}

TEST_F(ShardSpaceTest, CachesGiveMemoryBack) {
  rig.options.shard.cache_bytes = 1000 * test::kMegabyte;  // more than there is
  rig.options.shard.dirty_bytes = 1000 * test::kMegabyte;
  rig.start();
  for (uint64_t i = 1; i <= 60; ++i) ASSERT_TRUE(rig.write(chunk_id(i), 0, pattern(60000, i)));
  for (uint64_t i = 1; i <= 60; ++i) EXPECT_EQ(rig.read(chunk_id(i)).value(), pattern(60000, i));
  // Somebody else wants nearly all of the pool.
  std::vector<mem::BufChain> taken;
  for (int i = 0; i < 9; ++i) {
    auto chain = rig.loop.run([](mem::Pool* pool) { return pool->alloc_chain(4 << 20); }, rig.pool.get());
    ASSERT_TRUE(chain);
    taken.push_back(*std::move(chain));
  }
  // And the small writes are still there: in the journal.
  for (uint64_t i = 1; i <= 60; ++i) EXPECT_EQ(rig.read(chunk_id(i)).value(), pattern(60000, i));
  ASSERT_TRUE(rig.checkpoint());
  for (uint64_t i = 1; i <= 60; ++i) EXPECT_EQ(rig.read(chunk_id(i)).value(), pattern(60000, i));
}

TEST_F(ShardSpaceTest, AStoreInTroubleStopsNothingButTheCheckpoint) {
  rig.start();
  rig.store->set_fault_hook([](kv::MemoryStore::Operation operation) {
    return operation == kv::MemoryStore::Operation::flush ? Errc::io_error : Errc::ok;
  });
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(5000, 1)));
  EXPECT_EQ(rig.checkpoint().code(), Errc::io_error);
  EXPECT_TRUE(rig.shard->health());
  ASSERT_TRUE(rig.write(chunk_id(1), 8192, pattern(5000, 2)));
  EXPECT_EQ(rig.read(chunk_id(1), 0, 5000).value(), pattern(5000, 1));
  rig.store->set_fault_hook(nullptr);
  EXPECT_TRUE(rig.checkpoint());
  rig.crash();
  rig.open();
  EXPECT_EQ(rig.read(chunk_id(1), 0, 5000).value(), pattern(5000, 1));
  EXPECT_EQ(rig.read(chunk_id(1), 8192, 5000).value(), pattern(5000, 2));
}

TEST_F(ShardSpaceTest, RefusesWhatItCouldNeverTake) {
  rig.start();
  struct Case {
    const char* name;
    Entry entry;
    Errc code;
  };
  Entry long_body = Rig::simple_entry(EntryKind::kv_batch, {});
  long_body.body.assign((1 << 20) + 1, 'x');
  const Case cases[] = {
      {"no chunk", Rig::simple_entry(EntryKind::chunk_delete, {}), Errc::invalid_argument},
      {"odd offset", Rig::simple_entry(EntryKind::chunk_write, chunk_id(1), 512, 4096), Errc::invalid_argument},
      {"nothing", Rig::simple_entry(EntryKind::chunk_write, chunk_id(1), 0, 0), Errc::invalid_argument},
      {"too long", Rig::simple_entry(EntryKind::chunk_write, chunk_id(1), 4096, kChunkBytes), Errc::invalid_argument},
      {"overflow", Rig::simple_entry(EntryKind::chunk_write, chunk_id(1), 0xfffff000, 8192), Errc::invalid_argument},
      {"half a page", Rig::simple_entry(EntryKind::chunk_discard, chunk_id(1), 0, 100), Errc::invalid_argument},
      {"body", std::move(long_body), Errc::too_large},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto permit = rig.loop.run(
        [](Rig* r, const Entry* entry) { return r->shard->admit(*entry, mem::Purpose::client); }, &rig, &c.entry);
    EXPECT_EQ(permit.code(), c.code);
  }
}

}  // namespace
}  // namespace cairn::engine
