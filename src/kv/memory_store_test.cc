#include "kv/memory_store.h"

#include <gtest/gtest.h>

#include "kv/prefix_store.h"
#include "kv/test_loop.h"

namespace cairn::kv {
namespace {

Mutation put(std::string key, std::string value) { return {std::move(key), std::move(value)}; }
Mutation erase(std::string key) { return {std::move(key), std::nullopt}; }
void must_write(OrderedStore& store, std::vector<Mutation> mutations) { ASSERT_TRUE(store.write(mutations)); }

TEST(MemoryStore, ReadsItsWrites) {
  TestLoop loop;
  MemoryStore store;
  must_write(store, {put("a", "1"), put("b", "2"), erase("a"), put("c", "3")});
  EXPECT_EQ(**loop.run(&MemoryStore::get, &store, "b"), "2");
  EXPECT_FALSE(loop.run(&MemoryStore::get, &store, "a")->has_value());
}

TEST(MemoryStore, ScansRangesWithLimits) {
  TestLoop loop;
  MemoryStore store;
  for (char c = 'a'; c <= 'j'; ++c) must_write(store, {put(std::string(1, c), "value")});
  auto page = *loop.run(&MemoryStore::scan, &store, ScanOptions{.begin = "b", .end = "h", .max_items = 3});
  ASSERT_EQ(page.items.size(), 3u);
  EXPECT_EQ(page.items[0].key, "b");
  EXPECT_EQ(page.items[2].key, "d");
  EXPECT_TRUE(page.more);
  page = *loop.run(&MemoryStore::scan, &store, ScanOptions{.begin = "e", .end = "h", .max_items = 3});
  EXPECT_EQ(page.items.back().key, "g");
  EXPECT_FALSE(page.more) << "h is outside the range";
  page = *loop.run(&MemoryStore::scan, &store, ScanOptions{.begin = "b", .max_bytes = 1, .keys_only = true});
  ASSERT_EQ(page.items.size(), 1u);
  EXPECT_EQ(page.items[0].value, "");
  page = *loop.run(&MemoryStore::scan, &store, ScanOptions{.begin = "h", .end = "b"});
  EXPECT_TRUE(page.items.empty());
}

// The first n writes survive for some n that covers the flushed ones, and over many crashes every such n occurs.
TEST(MemoryStore, CrashKeepsAPrefixThatCoversTheFlush) {
  TestLoop loop;
  SeededRng rng(7);
  std::vector<int> seen(11, 0);
  for (int round = 0; round < 500; ++round) {
    MemoryStore store;
    for (int i = 1; i <= 10; ++i) {
      must_write(store, {put("counter", std::to_string(i)), put("k" + std::to_string(i), "x"),
                         erase("k" + std::to_string(i - 1))});
      if (i == 4) {
        ASSERT_TRUE(loop.run(&MemoryStore::flush, &store));
      }
    }
    store.crash(rng);
    const std::string counter = store.contents().at("counter");
    ++seen[std::stoul(counter)];
    EXPECT_EQ(store.size(), 2u) << "each write is there whole or not at all";
    EXPECT_TRUE(store.contents().contains("k" + counter));
  }
  for (int n = 0; n <= 10; ++n) EXPECT_EQ(seen[static_cast<size_t>(n)] > 0, n >= 4) << n;
}

Task<void> flush_into(MemoryStore* store, Result<void>* out) { *out = co_await store->flush(); }

TEST(MemoryStore, CrashDuringAFlushFailsItAndMayLoseItsWrites) {
  SeededRng rng(3);
  bool lost = false;
  bool kept = false;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    TestLoop loop(seed);
    MemoryStore store(loop, {.flush_max = milliseconds(5)});
    must_write(store, {put("a", "1")});
    Scope scope(loop);
    Result<void> flushed;
    scope.spawn(&flush_into, &store, &flushed);
    store.crash(rng);
    loop.run_until_idle();
    EXPECT_EQ(flushed.code(), Errc::closed);
    (store.contents().contains("a") ? kept : lost) = true;
  }
  EXPECT_TRUE(lost && kept);
}

TEST(MemoryStore, PoweredOffAnswersClosed) {
  TestLoop loop;
  SeededRng rng(1);
  MemoryStore store;
  store.power_off(rng);
  EXPECT_EQ(store.write({}).code(), Errc::closed);
  EXPECT_EQ(loop.run(&MemoryStore::get, &store, "a").code(), Errc::closed);
  EXPECT_EQ(loop.run(&MemoryStore::scan, &store, ScanOptions{}).code(), Errc::closed);
  EXPECT_EQ(loop.run(&MemoryStore::flush, &store).code(), Errc::closed);
  store.power_on();
  EXPECT_TRUE(store.write({}));
}

TEST(MemoryStore, InjectedFaultsHaveNoEffect) {
  TestLoop loop;
  MemoryStore store;
  store.set_fault_hook([](MemoryStore::Operation operation) {
    return operation == MemoryStore::Operation::write ? Errc::no_space : Errc::io_error;
  });
  const Mutation mutation = put("a", "1");
  EXPECT_EQ(store.write({&mutation, 1}).code(), Errc::no_space);
  EXPECT_EQ(loop.run(&MemoryStore::flush, &store).code(), Errc::io_error);
  EXPECT_EQ(store.size(), 0u);
}

TEST(MemoryStore, IsBusyUntilFlushed) {
  TestLoop loop;
  MemoryStore store;
  store.set_unflushed_limit(2);
  const Mutation mutation = put("a", "1");
  EXPECT_TRUE(store.write({&mutation, 1}));
  EXPECT_TRUE(store.write({&mutation, 1}));
  EXPECT_EQ(store.write({&mutation, 1}).code(), Errc::busy);
  EXPECT_TRUE(loop.run(&MemoryStore::flush, &store));
  EXPECT_TRUE(store.write({&mutation, 1}));
}

TEST(PrefixStore, SeesOnlyItsKeys) {
  TestLoop loop;
  MemoryStore base;
  PrefixStore a(base, "a/");
  PrefixStore b(base, "b/");
  must_write(base, {put("a", "outside"), put("a0", "outside"), put("c", "outside")});
  must_write(a, {put("x", "ax"), put("y", "ay")});
  must_write(b, {put("x", "bx")});
  EXPECT_EQ(**loop.run(&PrefixStore::get, &a, "x"), "ax");
  EXPECT_EQ(**loop.run(&PrefixStore::get, &b, "x"), "bx");
  EXPECT_FALSE(loop.run(&PrefixStore::get, &b, "y")->has_value());
  const auto all = *loop.run(&PrefixStore::scan, &a, ScanOptions{});
  ASSERT_EQ(all.items.size(), 2u);
  EXPECT_EQ(all.items[0].key, "x");
  EXPECT_EQ(all.items[1].key, "y");
  EXPECT_FALSE(all.more);
}

TEST(PrefixStore, EndOfPrefix) {
  EXPECT_EQ(prefix_end("a"), "b");
  EXPECT_EQ(prefix_end("a\xff"), "b");
  EXPECT_EQ(prefix_end("\xff\xff"), "");
  EXPECT_EQ(prefix_end(""), "");
  EXPECT_EQ(prefix_end("a\x7f"), "a\x80");
}

}  // namespace
}  // namespace cairn::kv
