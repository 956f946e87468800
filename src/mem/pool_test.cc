#include "mem/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "mem/arena.h"
#include "mem/copy.h"
#include "reactor/testing/test_loop.h"

namespace cairn::mem {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class PoolTest : public ::testing::Test {
 protected:
  explicit PoolTest(size_t mib = 4, size_t reserve = 0, size_t requests = 0)
      : arena(*Arena::create(mib * kMiB)), pool(loop, registry, arena.memory(), reserve, requests) {}

  TestLoop loop;
  Registry registry;
  Arena arena;
  Pool pool;
};

TEST_F(PoolTest, GivesTheSmallestClassThatFits) {
  for (const auto& [size, block] : std::vector<std::pair<size_t, size_t>>{
           {1, 4096}, {4096, 4096}, {4097, 16384}, {65536, 65536}, {65537, 262144}, {kMiB, kMiB}}) {
    auto buf = pool.try_alloc(size);
    ASSERT_TRUE(buf);
    EXPECT_EQ(buf->size(), size);
    EXPECT_EQ(buf->size() + buf->tailroom(), block);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buf->data()) % kPage, 0u);
    EXPECT_EQ(pool.free_bytes(), pool.total_bytes() - block);
  }
  EXPECT_EQ(pool.free_bytes(), pool.total_bytes());
}

TEST_F(PoolTest, SplitsAndMergesBackToWholeBlocks) {
  std::vector<Buf> pages;
  while (auto buf = pool.try_alloc(4096)) pages.push_back(std::move(*buf));
  EXPECT_EQ(pages.size(), pool.total_bytes() / 4096);
  EXPECT_EQ(pool.free_bytes(), 0u);
  EXPECT_EQ(pool.try_alloc(1).code(), Errc::busy);
  // Freed in any order they must become 1 MiB blocks again.
  for (size_t i = 0; i < pages.size(); i += 2) pages[i] = Buf();
  EXPECT_EQ(pool.try_alloc(16384).code(), Errc::busy);
  pages.clear();
  std::vector<Buf> whole;
  for (size_t i = 0; i < pool.total_bytes() / kMiB; ++i) whole.push_back(*pool.try_alloc(kMiB));
  EXPECT_EQ(pool.try_alloc(1).code(), Errc::busy);
}

TEST_F(PoolTest, RandomUseNeverOverlapsAndAlwaysMerges) {
  SeededRng rng(99);
  struct Held {
    Buf buf;
    std::byte mark;
  };
  std::vector<Held> held;
  size_t used = 0;
  const auto block_bytes = [](const Buf& buf) { return buf.size() + buf.tailroom(); };
  const auto release = [&](size_t i) {
    for (const std::byte b : held[i].buf.bytes()) ASSERT_EQ(b, held[i].mark);
    used -= block_bytes(held[i].buf);
    std::swap(held[i], held.back());
    held.pop_back();
  };
  for (int step = 0; step < 20'000; ++step) {
    if (rng.chance(11, 20)) {
      const size_t size = 1 + rng.below(rng.chance(1, 10) ? kMiB : 70'000);
      auto buf = pool.try_alloc(size);
      if (!buf) continue;
      const auto mark = static_cast<std::byte>(rng.next());
      // First and last bytes are enough to see an overlap of whole blocks.
      std::ranges::fill(buf->writable_bytes().first(std::min<size_t>(size, 64)), mark);
      std::ranges::fill(buf->writable_bytes().last(std::min<size_t>(size, 64)), mark);
      buf->truncate(std::min<size_t>(size, 64));
      used += block_bytes(*buf);
      held.push_back({std::move(*buf), mark});
    } else if (!held.empty()) {
      release(rng.below(held.size()));
    }
    ASSERT_EQ(pool.free_bytes(), pool.total_bytes() - used);
  }
  while (!held.empty()) release(held.size() - 1);
  for (size_t i = 0; i < pool.total_bytes() / kMiB; ++i) {
    auto whole = pool.try_alloc(kMiB);
    ASSERT_TRUE(whole);
    held.push_back({std::move(*whole), {}});
  }
}

TEST_F(PoolTest, ChainsTakeWholeBlocksAndASmallerLastOne) {
  auto chain = loop.run(&Pool::alloc_chain, &pool, 2 * kMiB + 5000, Purpose::client, CancelToken());
  ASSERT_TRUE(chain);
  ASSERT_EQ(chain->slices().size(), 3u);
  EXPECT_EQ(chain->size(), 2 * kMiB + 5000);
  EXPECT_EQ(chain->slices()[2].size() + chain->slices()[2].tailroom(), 16384u);
  auto nothing = loop.run(&Pool::alloc_chain, &pool, 0u, Purpose::client, CancelToken());
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->empty());
}

TEST_F(PoolTest, ChainsUsePiecesWhenNoBlockIsWhole) {
  // One page in each 1 MiB block stays in use.
  std::vector<Buf> pages;
  while (auto buf = pool.try_alloc(4096)) pages.push_back(std::move(*buf));
  std::vector<Buf> pins;
  for (auto& page : pages) {
    if (static_cast<size_t>(page.data() - arena.memory().data()) % kMiB == 40 * 4096) pins.push_back(page);
  }
  pages.clear();
  EXPECT_EQ(pins.size(), 4u);
  EXPECT_EQ(pool.try_alloc(kMiB).code(), Errc::busy);
  const size_t free = pool.free_bytes();
  // All that is free can be had, in pieces that are full except the last.
  auto chain = loop.run(&Pool::alloc_chain, &pool, free - 100, Purpose::client, CancelToken());
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->size(), free - 100);
  for (size_t i = 0; i + 1 < chain->slices().size(); ++i) EXPECT_EQ(chain->slices()[i].tailroom(), 0u);
  EXPECT_EQ(pool.free_bytes(), 0u);
}

TEST_F(PoolTest, WhatCanNeverBeHadIsRefusedAtOnce) {
  EXPECT_EQ(loop.run(&Pool::alloc_chain, &pool, 5 * kMiB, Purpose::client, CancelToken()).code(), Errc::too_large);
  EXPECT_EQ(loop.run(&Pool::alloc_chain, &pool, SIZE_MAX, Purpose::client, CancelToken()).code(), Errc::too_large);
}

class ReservedPoolTest : public PoolTest {
 protected:
  ReservedPoolTest() : PoolTest(4, 512 * 1024) {}
};

TEST_F(ReservedPoolTest, ClientsLeaveTheReserveAlone) {
  std::vector<Buf> held;
  while (auto buf = pool.try_alloc(65536, Purpose::client)) held.push_back(std::move(*buf));
  EXPECT_EQ(pool.free_bytes(), 512u * 1024);
  while (auto buf = pool.try_alloc(65536, Purpose::internal)) held.push_back(std::move(*buf));
  EXPECT_EQ(pool.free_bytes(), 0u);
}

class PurposesTest : public PoolTest {
 protected:
  PurposesTest() : PoolTest(4, kMiB, kMiB) {}
};
TEST_F(PurposesTest, EachLeavesAloneWhatIsForThoseBelow) {
  std::vector<Buf> held;
  const auto take_all = [&](Purpose purpose) {
    while (auto buf = pool.try_alloc(kPage, purpose)) held.push_back(*std::move(buf));
    return pool.free_bytes();
  };
  EXPECT_EQ(take_all(Purpose::client), 2 * kMiB);
  EXPECT_EQ(take_all(Purpose::request), kMiB);
  EXPECT_EQ(take_all(Purpose::client), kMiB);
  EXPECT_EQ(take_all(Purpose::internal), 0U);
  EXPECT_EQ(pool.request_bytes(), kMiB);
}

TEST_F(PurposesTest, NobodyStandsBehindThoseWhoWaitForHim) {
  std::vector<Buf> held;
  while (auto buf = pool.try_alloc(kPage, Purpose::client)) held.push_back(*std::move(buf));
  Scope scope(loop);
  std::string served;
  const auto take = +[](Pool* p, Purpose purpose, char name, std::string* out) -> Task<void> {
    auto buf = co_await p->alloc(kPage, purpose);
    EXPECT_TRUE(buf);
    *out += name;
  };
  scope.spawn(take, &pool, Purpose::client, 'c', &served);
  loop.run_ready_only();
  scope.spawn(take, &pool, Purpose::request, 'r', &served);
  loop.run_ready_only();
  scope.spawn(take, &pool, Purpose::internal, 'i', &served);
  loop.run_ready_only();
  EXPECT_EQ(served, "ri");
  held.clear();
  loop.run_ready_only();
  EXPECT_EQ(served, "ric");
}

TEST_F(ReservedPoolTest, TheLastBlockOfAChainIsSmallerWhereItMustBe) {
  // 3 MiB and 300 KiB would like four blocks of 1 MiB, but half of the last one belongs to the reserve.
  const size_t size = 3 * kMiB + 300 * 1024;
  auto chain = loop.run(&Pool::alloc_chain, &pool, size, Purpose::client, CancelToken());
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->size(), size);
  EXPECT_GE(pool.free_bytes(), 512u * 1024);
  EXPECT_EQ(loop.run(&Pool::alloc_chain, &pool, 3 * kMiB + 513 * 1024, Purpose::client, CancelToken()).code(),
            Errc::too_large);
}

class TinyReservedPoolTest : public PoolTest {
 protected:
  TinyReservedPoolTest() : PoolTest(2, 1536 * 1024) {}
};

TEST_F(TinyReservedPoolTest, ABlockThatOnlyRoundingMakesTooLargeIsRefusedNotWaitedFor) {
  EXPECT_EQ(loop.run(&Pool::alloc, &pool, 300u * 1024, Purpose::client, CancelToken()).code(), Errc::too_large);
  EXPECT_TRUE(loop.run(&Pool::alloc, &pool, 300u * 1024, Purpose::internal, CancelToken()));
  EXPECT_TRUE(loop.run(&Pool::alloc, &pool, 256u * 1024, Purpose::client, CancelToken()));
}

Task<void> take(Pool* pool, size_t size, Purpose purpose, char name, std::string* log, std::vector<BufChain>* held,
                CancelToken token) {
  auto chain = co_await pool->alloc_chain(size, purpose, token);
  log->push_back(name);
  if (chain) {
    held->push_back(std::move(*chain));
  } else {
    log->append("!");
  }
}

TEST_F(PoolTest, WaitersAreServedInOrderWhateverTheirSize) {
  std::string log;
  std::vector<BufChain> held;
  Scope scope(loop);
  scope.spawn(&take, &pool, 4 * kMiB, Purpose::client, 'a', &log, &held, CancelToken());
  scope.spawn(&take, &pool, 3 * kMiB, Purpose::client, 'b', &log, &held, CancelToken());
  scope.spawn(&take, &pool, 4096u, Purpose::client, 'c', &log, &held, CancelToken());
  EXPECT_EQ(log, "a");
  EXPECT_TRUE(pool.has_waiters());
  // Part of it back: enough for c, but b was first; and nobody else gets past them.
  held[0].trim_front(2 * kMiB);
  loop.run_ready_only();
  EXPECT_EQ(log, "a");
  EXPECT_EQ(pool.try_alloc(4096).code(), Errc::busy);
  held[0].trim_front(kMiB);
  loop.run_ready_only();
  EXPECT_EQ(log, "ab");
  held.erase(held.begin());
  loop.run_ready_only();
  EXPECT_EQ(log, "abc");
  EXPECT_FALSE(pool.has_waiters());
}

TEST_F(PoolTest, CancellingWaitersLetsTheNextOnesThrough) {
  std::string log;
  std::vector<BufChain> held;
  CancelSource first, second;
  Scope scope(loop);
  scope.spawn(&take, &pool, 3 * kMiB, Purpose::client, 'a', &log, &held, CancelToken());
  scope.spawn(&take, &pool, 2 * kMiB, Purpose::client, 'b', &log, &held, CancelToken(first));   // has its turn
  scope.spawn(&take, &pool, 2 * kMiB, Purpose::client, 'c', &log, &held, CancelToken(second));  // waits for it
  scope.spawn(&take, &pool, kMiB, Purpose::client, 'd', &log, &held, CancelToken());
  second.cancel();
  loop.run_ready_only();
  EXPECT_EQ(log, "ac!");
  first.cancel();
  loop.run_ready_only();
  EXPECT_EQ(log, "ac!b!d");
}

class WaitingReserveTest : public PoolTest {
 protected:
  WaitingReserveTest() : PoolTest(4, kMiB) {}
};

TEST_F(WaitingReserveTest, InternalWorkDoesNotStandBehindClients) {
  std::string log;
  std::vector<BufChain> held;
  Scope scope(loop);
  scope.spawn(&take, &pool, 3 * kMiB, Purpose::client, 'a', &log, &held, CancelToken());
  scope.spawn(&take, &pool, kMiB, Purpose::client, 'b', &log, &held, CancelToken());
  scope.spawn(&take, &pool, kMiB, Purpose::internal, 'i', &log, &held, CancelToken());
  EXPECT_EQ(log, "ai");
  held.clear();
  loop.run_ready_only();
  EXPECT_EQ(log, "aib");
}

// A cache that holds pages until somebody needs the memory.
class Cache final : public Reclaimer {
 public:
  bool reclaim(size_t bytes) noexcept override {
    ++asked;
    if (pages.empty()) return false;
    for (size_t given = 0; given < bytes && !pages.empty(); given += 4096) pages.pop_back();
    return true;
  }
  std::vector<Buf> pages;
  int asked = 0;
};

TEST_F(PoolTest, CachesGiveWayBeforeAnybodyWaits) {
  Cache cache;
  pool.add_reclaimer(cache);
  while (auto buf = pool.try_alloc(4096)) {
    if (cache.asked > 0) break;
    cache.pages.push_back(std::move(*buf));
  }
  const size_t before = cache.pages.size();
  auto buf = pool.try_alloc(16384);
  ASSERT_TRUE(buf);
  EXPECT_LT(cache.pages.size(), before);
  auto chain = loop.run(&Pool::alloc_chain, &pool, 2 * kMiB, Purpose::client, CancelToken());
  EXPECT_TRUE(chain);
  pool.remove_reclaimer(cache);
  cache.pages.clear();
}

TEST_F(PoolTest, CountsWhatIsCopied) {
  auto from = *pool.try_alloc(100);
  auto to = *pool.try_alloc(100);
  std::ranges::fill(from.writable_bytes(), std::byte{7});
  copy_payload(pool.copied(), to.writable_bytes(), from.bytes());
  EXPECT_EQ(to.data()[99], std::byte{7});
  copy_payload(pool.copied(), {}, {});
  EXPECT_NE(Registry::expose({{&registry, ""}}).find("\nmem_payload_bytes_copied_total 100\n"), std::string::npos);
}

TEST(Arena, MapsWhatWasAskedForAndDividesIt) {
  auto arena = Arena::create(5 * kMiB);
  ASSERT_TRUE(arena);
  EXPECT_EQ(arena->memory().size(), 6 * kMiB);  // whole huge pages
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->memory().data()) % (2 * kMiB), 0u);
  EXPECT_EQ(arena->part(0, 2).size(), 3 * kMiB);
  EXPECT_EQ(arena->part(1, 2).data(), arena->memory().data() + 3 * kMiB);
  EXPECT_EQ(arena->part(3, 4).size(), kMiB);  // parts are whole MiB; the rest is nobody's
  Arena moved = std::move(*arena);
  EXPECT_TRUE(arena->memory().empty());
  moved.memory().back() = std::byte{1};
  EXPECT_EQ(Arena::create(0).code(), Errc::invalid_argument);
  EXPECT_EQ(Arena::create(size_t{1} << 46).code(), Errc::busy);
}

}  // namespace
}  // namespace cairn::mem
