// What an opening makes of entries that it can't be sure of: devices that lost what they confirmed, failed flushes,
// reads that fail for a while.
#include <gtest/gtest.h>

#include "engine/journal.h"
#include "engine/journal_format.h"
#include "engine/superblock.h"
#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

using test::chunk_id;
using test::pattern;
using test::Rig;

class ShardDoubtTest : public ::testing::Test {
 protected:
  ShardLayout layout() const { return ShardLayout::of(rig.extent).value(); }
  Result<Superblock> superblock() {
    return rig.loop.run([](Shard::Context c, ShardExtent e) { return load_superblock(c.device, c.pool, e); },
                        rig.context(), rig.extent);
  }
  uint64_t offset_of(Lsn lsn) { return Journal::device_offset(layout(), lsn); }
  std::vector<BatchHeader> batches() {
    std::vector<BatchHeader> found;
    for (Lsn at = superblock()->tail;;) {
      const auto page = std::span(*rig.contents).subspan(offset_of(at), kPageBytes);
      const auto header = parse_batch_header(page, {.device = rig.extent.device, .shard = rig.extent.shard}, at);
      if (!header) return found;
      found.push_back(*header);
      at = header->end();
    }
  }
  // Where `bytes` begin in the data area.
  uint64_t place_of(const std::vector<std::byte>& bytes) {
    const auto begin = rig.contents->begin() + static_cast<ptrdiff_t>(layout().data_offset);
    const auto at = std::search(begin, rig.contents->end(), bytes.begin(), bytes.begin() + kPageBytes);
    EXPECT_NE(at, rig.contents->end());
    return static_cast<uint64_t>(at - rig.contents->begin());
  }
  // All that was written stays, and the store's, too.
  void crash_and_keep_everything() {
    ASSERT_TRUE(rig.loop.run([](kv::MemoryStore* store) { return store->flush(); }, rig.store.get()));
    const auto image = *rig.contents;
    rig.crash();
    *rig.contents = image;
  }
  static Task<void> propose(Rig* r, Entry entry, Errc* result) {
    *result = (co_await Rig::propose(r, std::move(entry), mem::Purpose::client)).code();
  }
  uint64_t counter(std::string_view name) {
    const std::string text = Registry::expose({{rig.registry.get(), ""}});
    const size_t at = text.find("\n" + std::string(name) + "{");
    return at == std::string::npos ? 0 : std::stoull(text.substr(text.find(' ', at)));
  }
  void fail_reads_at(uint64_t offset) {
    rig.device->fault = [offset](const IoRequest& request) {
      const bool hit =
          request.op == IoRequest::Op::read && request.offset <= offset && offset < request.offset + request.length;
      return hit ? Errc::io_error : Errc::ok;
    };
  }

  Rig rig;
};

// Nothing on the device can tell this from a crash during the write. But it is counted.
TEST_F(ShardDoubtTest, LostPayloadOfTheVeryLastEntryIsCutAndCounted) {
  rig.start();
  const auto large = pattern(100'000, 2);
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, large));
  const uint64_t place = place_of(large);
  crash_and_keep_everything();
  rig.device->rot(place);
  rig.open();
  ASSERT_TRUE(rig.shard->health());
  EXPECT_EQ(rig.shard->last_index(GroupId(1)), Index(1));
  EXPECT_EQ(counter("engine_cut_entries_total"), 1u);
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
}

// The store has an entry of the same batch applied: only durable entries are.
TEST_F(ShardDoubtTest, WhatTheStoreHasAppliedWasDurable) {
  rig.start();
  const auto large = pattern(100'000, 2);
  Entry keys = Rig::simple_entry(EntryKind::kv_batch, {});
  keys.body = "k=v";
  Errc first = Errc::unknown;
  Errc second = Errc::unknown;
  Scope scope(rig.loop);
  scope.spawn(&propose, &rig, rig.write_entry(chunk_id(2), 0, large), &first);
  scope.spawn(&propose, &rig, std::move(keys), &second);
  rig.loop.run_until([&] { return scope.running() == 0; });
  ASSERT_EQ(first, Errc::ok);
  ASSERT_EQ(second, Errc::ok);
  ASSERT_EQ(batches().size(), 1u);
  const uint64_t place = place_of(large);
  crash_and_keep_everything();
  rig.device->rot(place);
  ASSERT_TRUE(rig.try_open());
  ASSERT_TRUE(rig.shard->health()) << rig.shard->health().error().to_string();
  EXPECT_EQ(rig.shard->last_index(GroupId(1)), Index(2));
  rig.shard->apply(rig.shard->recovered().front());
  EXPECT_EQ(rig.read(chunk_id(2)).code(), Errc::corrupt);
  EXPECT_EQ(rig.read(chunk_id(2), 65536, 4096).value(),
            std::vector(large.begin() + 65536, large.begin() + 65536 + 4096));
  EXPECT_EQ(counter("engine_cut_entries_total"), 0u);
}

// A is acknowledged, and then B and C are under way at once. The power goes, B is torn, C is whole and says that A was
// durable.
TEST_F(ShardDoubtTest, ABatchBehindATornOneStillSaysWhatWasDurable) {
  rig.start();
  std::vector<BatchHeader> last;  // of A, B and C
  std::vector<std::byte> large;
  for (uint64_t round = 1; last.empty(); ++round) {
    ASSERT_LT(round, 50u) << "B and C were never under way at once";
    large = pattern(100'000, round);
    ASSERT_TRUE(rig.write(chunk_id(1), 0, large));
    Errc results[2] = {};
    Scope scope(rig.loop);
    scope.spawn(&propose, &rig, rig.write_entry(chunk_id(2), 0, pattern(4096, 3)), &results[0]);
    for (uint64_t i = 0; i < round; ++i) rig.loop.step();
    scope.spawn(&propose, &rig, rig.write_entry(chunk_id(3), 0, pattern(4096, 4)), &results[1]);
    rig.loop.run_until([&] { return scope.running() == 0; });
    const auto all = batches();
    if (all.size() >= 3 && all.back().durable == all[all.size() - 2].lsn) last.assign(all.end() - 3, all.end());
  }
  const Index of_a(rig.shard->last_index(GroupId(1)).value - 2);
  const uint64_t place = place_of(large);
  crash_and_keep_everything();
  rig.device->rot(place);
  rig.device->rot(offset_of(last[1].lsn) + 40);
  rig.open();
  ASSERT_TRUE(rig.shard->health());
  EXPECT_EQ(rig.shard->last_index(GroupId(1)), of_a);
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::corrupt);
}

// After a failed flush the bytes can be read, and no later flush makes them durable. Without a loss of power in
// between, an opening must not take them over.
TEST_F(ShardDoubtTest, WhatAFailedFlushCoveredIsNotTakenOver) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  rig.device->fault = [](const IoRequest& request) {
    return request.op == IoRequest::Op::flush ? Errc::io_error : Errc::ok;
  };
  EXPECT_EQ(rig.write(chunk_id(2), 0, pattern(4096, 2)).code(), Errc::device_fenced);
  ASSERT_EQ(batches().size(), 2u) << "the entry is there to be read";
  rig.close();
  rig.device->fault = nullptr;
  rig.open();
  ASSERT_TRUE(rig.shard->health());
  EXPECT_EQ(rig.shard->last_index(GroupId(1)), Index(1));
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
  // And the place is used again.
  ASSERT_TRUE(rig.write(chunk_id(3), 0, pattern(4096, 3)));
  rig.crash();
  rig.open();
  EXPECT_EQ(rig.read(chunk_id(2)).code(), Errc::not_found);
  EXPECT_EQ(rig.read(chunk_id(3)).value(), pattern(4096, 3));
}

TEST_F(ShardDoubtTest, InlinePagesThatCantBeReadAtOpeningAreNotLost) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, pattern(4096, 2)));
  const BatchHeader first = batches().front();
  crash_and_keep_everything();
  fail_reads_at(offset_of(first.lsn + first.meta_bytes));
  rig.open();
  ASSERT_TRUE(rig.shard->health());
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::io_error);
  EXPECT_EQ(rig.read(chunk_id(2)).value(), pattern(4096, 2));
  // A checkpoint would free the only copy.
  EXPECT_EQ(rig.checkpoint().code(), Errc::io_error);
  rig.device->fault = nullptr;
  EXPECT_TRUE(rig.checkpoint());
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
  rig.reopen();
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
}

// One bad sector must not stop checkpoints for good.
TEST_F(ShardDoubtTest, AnInlinePageThatCanNeverBeReadIsGivenUp) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(8192, 1)));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, pattern(4096, 2)));  // says that the first one was durable
  const BatchHeader first = batches().front();
  crash_and_keep_everything();
  fail_reads_at(offset_of(first.lsn + first.meta_bytes));
  rig.open();
  int tries = 0;
  for (Errc code = Errc::unknown; code != Errc::ok && tries < 1000; ++tries) {
    code = rig.checkpoint().code();
    ASSERT_TRUE(code == Errc::ok || code == Errc::io_error) << errc_name(code);
  }
  EXPECT_GT(tries, 10);
  EXPECT_LT(tries, 1000);
  rig.device->fault = nullptr;
  EXPECT_EQ(rig.read(chunk_id(1), 0, 4096).code(), Errc::corrupt);
  const auto whole = pattern(8192, 1);
  EXPECT_EQ(rig.read(chunk_id(1), 4096, 4096).value(), std::vector(whole.begin() + 4096, whole.end()));
}

// With one copy of the newest superblock rotten, the other one is needed: an older generation won't do.
TEST_F(ShardDoubtTest, TheOnlyWholeCopyOfASuperblockMustBeReadable) {
  rig.start();
  const uint64_t generation = superblock()->generation;
  rig.device->rot(layout().superblock_offset(superblock_slot(generation, 0)) + 50);
  EXPECT_EQ(superblock()->generation, generation);
  fail_reads_at(layout().superblock_offset(superblock_slot(generation, 1)));
  EXPECT_EQ(superblock().code(), Errc::io_error);
  rig.device->fault = nullptr;
  EXPECT_EQ(superblock()->generation, generation);
}

// A checkpoint that was cut off leaves a chunk's map ahead of its group's mark: the chunk's entries are covered, and
// the units that they gave up look free. Then the chunk is deleted, and the next checkpoint is cut off just as early:
// nothing covers those entries any more. Their units must not be in other hands by then.
TEST_F(ShardDoubtTest, UnitsOfCoveredEntriesAreNotGivenAwayWhileTheJournalHasThem) {
  rig.start();
  const auto cut_off_checkpoint = [&] {
    int writes = 0;
    rig.store->set_fault_hook([&writes](kv::MemoryStore::Operation operation) {
      if (operation != kv::MemoryStore::Operation::write) return Errc::ok;
      return ++writes > 1 ? Errc::io_error : Errc::ok;  // the maps, and not the marks
    });
    EXPECT_EQ(rig.checkpoint().code(), Errc::io_error);
    rig.store->set_fault_hook({});
  };
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(65536, 1)));
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(65536, 2)));
  cut_off_checkpoint();
  crash_and_keep_everything();
  rig.open();
  ASSERT_TRUE(rig.remove(chunk_id(1)));
  for (uint64_t i = 2; i < 6; ++i) ASSERT_TRUE(rig.write(chunk_id(i), 0, pattern(65536, i)));
  cut_off_checkpoint();
  crash_and_keep_everything();
  rig.open();
  ASSERT_TRUE(rig.shard->health()) << rig.shard->health().error().to_string();
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::not_found);
  for (uint64_t i = 2; i < 6; ++i) EXPECT_EQ(rig.read(chunk_id(i)).value(), pattern(65536, i));
  // With the next checkpoint they are free.
  ASSERT_TRUE(rig.checkpoint());
  EXPECT_EQ(rig.shard->usage().used_bytes, 4u * 65536);
  EXPECT_EQ(rig.shard->usage().pending_bytes, 0u);
}

}  // namespace
}  // namespace cairn::engine
