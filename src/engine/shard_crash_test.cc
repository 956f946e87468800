// Crashes, torn batches, rot: what survives, and what is said about what doesn't.
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

class ShardCrashTest : public ::testing::Test {
 protected:
  ShardLayout layout() const { return ShardLayout::of(rig.extent).value(); }
  Superblock superblock() {
    return rig.loop
        .run([](Shard::Context c, ShardExtent e) { return load_superblock(c.device, c.pool, e); }, rig.context(),
             rig.extent)
        .value();
  }
  // Where on the device each batch of the journal begins.
  std::vector<BatchHeader> batches() {
    std::vector<BatchHeader> found;
    for (Lsn at = superblock().tail;;) {
      const auto page = std::span(*rig.contents).subspan(Journal::device_offset(layout(), at), kPageBytes);
      const auto header = parse_batch_header(page, {.device = rig.extent.device, .shard = rig.extent.shard}, at);
      if (!header) return found;
      found.push_back(*header);
      at = header->end();
    }
  }
  uint64_t offset_of(Lsn lsn) { return Journal::device_offset(layout(), lsn); }

  Rig rig;
};

TEST_F(ShardCrashTest, AcknowledgedWritesSurvive) {
  rig.start();
  const auto small = pattern(5000, 1);
  const auto large = pattern(300000, 2);
  ASSERT_TRUE(rig.write(chunk_id(1), 4096, small));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, large));
  ASSERT_TRUE(rig.write(chunk_id(3), 0, small));
  ASSERT_TRUE(rig.remove(chunk_id(3)));
  ASSERT_TRUE(rig.run(Rig::simple_entry(EntryKind::chunk_discard, chunk_id(2), 65536, 8192)));
  for (int round = 0; round < 3; ++round) {
    rig.crash();
    rig.open();
    EXPECT_EQ(rig.read(chunk_id(1), 4096).value(), small);
    auto expected = large;
    std::fill_n(expected.begin() + 65536, 8192, std::byte{0});
    EXPECT_EQ(rig.read(chunk_id(2)).value(), expected);
    EXPECT_EQ(rig.read(chunk_id(3)).code(), Errc::not_found);
    if (round == 1) {
      ASSERT_TRUE(rig.checkpoint());
    }
  }
}

TEST_F(ShardCrashTest, AppendedButNotAppliedIsRecoveredAndNotVisible) {
  rig.start();
  rig.loop.run(
      [](Rig* r) -> Task<void> {
        Entry entry = r->write_entry(chunk_id(1), 0, pattern(70000, 3));
        auto permit = co_await r->shard->admit(entry, mem::Purpose::client);
        entry.index = Index(1);
        EXPECT_TRUE(co_await r->shard->append(std::move(entry), *std::move(permit)));
      },
      &rig);
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::not_found);
  rig.crash();
  ASSERT_TRUE(rig.try_open());
  ASSERT_EQ(rig.shard->recovered().size(), 1u);
  EXPECT_EQ(rig.shard->last_index(GroupId(1)), Index(1));
  EXPECT_EQ(rig.shard->applied_index(GroupId(1)), Index(0));
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::not_found);
  rig.shard->apply(rig.shard->recovered().front());
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(70000, 3));
}

// The last batch, torn in each of its pages in turn: it is cut, and the ones before it stay.
TEST_F(ShardCrashTest, ATornBatchIsCut) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  const auto torn = pattern(3 * 4096, 2);
  ASSERT_TRUE(rig.write(chunk_id(2), 0, torn));
  const BatchHeader last = batches().back();
  const auto image = *rig.contents;
  rig.crash();
  for (Lsn at = last.lsn; at < last.end(); at = at + kPageBytes) {
    SCOPED_TRACE(at - last.lsn);
    *rig.contents = image;
    rig.device->rot(offset_of(at) + 100);
    rig.open();
    ASSERT_TRUE(rig.shard->health());
    EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
    EXPECT_EQ(rig.read(chunk_id(2)).code(), Errc::not_found);
    rig.crash();
  }
}

// What was cut must not come back when later batches happen to end where it began.
TEST_F(ShardCrashTest, CutRecordsNeverComeBack) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, pattern(4096, 2)));  // torn below
  ASSERT_TRUE(rig.write(chunk_id(3), 0, pattern(4096, 3)));  // whole, and cut with it
  auto all = batches();
  ASSERT_EQ(all.size(), 3u);
  const auto image = *rig.contents;
  rig.crash();
  *rig.contents = image;
  rig.device->rot(offset_of(all[1].lsn) + 10);
  // The third one says that the first was durable, not the second.
  ASSERT_LE(all[2].durable, all[1].lsn + all[1].batch_bytes);
  if (all[2].durable > all[1].lsn) {
    // With one write at a time it does say so; take it for what it is then: corruption.
    ASSERT_TRUE(rig.try_open());
    EXPECT_EQ(rig.shard->health().code(), Errc::corrupt);
    return;
  }
  rig.open();
  ASSERT_TRUE(rig.write(chunk_id(4), 0, pattern(4096, 4)));
  rig.crash();
  rig.open();
  EXPECT_EQ(rig.read(chunk_id(2)).code(), Errc::not_found);
  EXPECT_EQ(rig.read(chunk_id(3)).code(), Errc::not_found);
  EXPECT_EQ(rig.read(chunk_id(4)).value(), pattern(4096, 4));
}

// Two entries in flight at once, neither acknowledged when the power goes, the first one torn.
TEST_F(ShardCrashTest, CutRecordsNeverComeBackAfterARealCrash) {
  rig.start();
  int cut = 0;
  for (uint64_t round = 0; round < 60; ++round) {
    const ChunkId a = chunk_id(100 + 3 * round);
    const ChunkId b = chunk_id(101 + 3 * round);
    Scope scope(rig.loop);
    std::vector<Errc> results;
    const auto propose = [](Rig* r, Entry entry, std::vector<Errc>* out) -> Task<void> {
      auto result = co_await Rig::propose(r, std::move(entry), mem::Purpose::client);
      out->push_back(result.code());
    };
    scope.spawn(propose, &rig, rig.write_entry(a, 0, pattern(4096, round)), &results);
    for (uint64_t steps = rig.rng.below(12); steps > 0; --steps) rig.loop.step();
    scope.spawn(propose, &rig, rig.write_entry(b, 0, pattern(4096, round + 1000)), &results);
    for (uint64_t steps = rig.rng.below(12); steps > 0; --steps) rig.loop.step();
    rig.device->power_off();
    rig.store->power_off(rig.rng);
    rig.loop.run_until([&] { return scope.running() == 0; });
    rig.close();
    rig.loop.run_until([&] { return rig.device->under_way() == 0; });
    rig.store->power_on();
    rig.plug_in();
    rig.open();
    ASSERT_TRUE(rig.shard->health()) << rig.shard->health().error().to_string();
    const bool had_a = rig.read(a).has_value();
    const bool had_b = rig.read(b).has_value();
    EXPECT_TRUE(had_a || !had_b) << "the second without the first";
    cut += had_a ? 0 : 1;
    // The same again, with a batch in the place of the cut ones.
    ASSERT_TRUE(rig.write(chunk_id(102 + 3 * round), 0, pattern(4096, 7)));
    rig.crash();
    rig.open();
    ASSERT_EQ(rig.read(a).has_value(), had_a) << round;
    ASSERT_EQ(rig.read(b).has_value(), had_b) << round;
    ASSERT_TRUE(rig.read(chunk_id(102 + 3 * round)));
  }
  EXPECT_GT(cut, 0) << "the test never cut anything";
}

// A large write and a small one into the same unit, in one batch, so that nothing in the journal says yet that they
// were durable. The checkpoint writes the small one home, into the unit of the large one; then the power goes, at every
// moment of the checkpoint in turn. The replay must not take the changed unit for a torn write.
TEST_F(ShardCrashTest, PagesGoHomeOnlyIntoUnitsThatNoReplayChecks) {
  for (uint64_t steps = 0;; ++steps) {
    SCOPED_TRACE(steps);
    Rig own{{.seed = 5 + steps}};
    own.start();
    std::vector<Errc> results;
    Scope scope(own.loop);
    const auto propose = [](Rig* r, Entry entry, std::vector<Errc>* out) -> Task<void> {
      auto result = co_await Rig::propose(r, std::move(entry), mem::Purpose::client);
      out->push_back(result.code());
    };
    scope.spawn(propose, &own, own.write_entry(chunk_id(1), 0, pattern(65536, 1)), &results);
    scope.spawn(propose, &own, own.write_entry(chunk_id(1), 8192, pattern(4096, 2)), &results);
    own.loop.run_until([&] { return scope.running() == 0; });
    ASSERT_EQ(results, (std::vector{Errc::ok, Errc::ok}));
    bool done = false;
    const auto checkpoint = [](Rig* r, bool* end) -> Task<void> {
      *end = (co_await r->shard->checkpoint()).has_value();
    };
    scope.spawn(checkpoint, &own, &done);
    for (uint64_t i = 0; i < steps && !done; ++i) own.loop.step();
    const bool was_done = done;
    own.crash();
    own.loop.run_until([&] { return scope.running() == 0; });
    own.open();
    ASSERT_TRUE(own.shard->health());
    auto expected = pattern(65536, 1);
    std::ranges::copy(pattern(4096, 2), expected.begin() + 8192);
    ASSERT_EQ(own.read(chunk_id(1)).value(), expected);
    if (was_done) break;
  }
}

TEST_F(ShardCrashTest, RotInAHeaderBelowTheMarkIsDamage) {
  rig.start();
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(rig.write(chunk_id(i), 0, pattern(4096, i)));
  const auto all = batches();
  const auto image = *rig.contents;
  rig.crash();
  *rig.contents = image;
  rig.device->rot(offset_of(all[1].lsn) + 77);
  ASSERT_TRUE(rig.try_open());
  const auto health = rig.shard->health();
  EXPECT_EQ(health.code(), Errc::corrupt);
  EXPECT_NE(health.error().message().find(std::to_string(all[1].lsn.value)), std::string::npos);
  EXPECT_TRUE(rig.shard->recovered().empty());
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::corrupt);
  EXPECT_EQ(rig.write(chunk_id(9), 0, pattern(10, 1)).code(), Errc::corrupt);
  EXPECT_EQ(rig.checkpoint().code(), Errc::corrupt);
  rig.close();
  // Nothing was written: with the bit put right, everything is there.
  rig.device->rot(offset_of(all[1].lsn) + 77);
  EXPECT_TRUE(*rig.contents == image);
  rig.open();
  for (uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(rig.read(chunk_id(i)).value(), pattern(4096, i));
}

TEST_F(ShardCrashTest, RotInInlinePayloadBelowTheMarkLosesThatPageOnly) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4 * 4096, 1)));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, pattern(4096, 2)));
  ASSERT_TRUE(rig.write(chunk_id(3), 0, pattern(4096, 3)));
  const auto all = batches();
  const auto image = *rig.contents;
  rig.crash();
  *rig.contents = image;
  rig.device->rot(offset_of(all[0].lsn + all[0].meta_bytes + 2 * 4096) + 5);
  rig.open();
  ASSERT_TRUE(rig.shard->health());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::corrupt);
    EXPECT_EQ(rig.read(chunk_id(1), 8192, 4096).code(), Errc::corrupt);
    EXPECT_EQ(rig.read(chunk_id(1), 0, 8192).value(), pattern(8192, 1));
    EXPECT_EQ(rig.read(chunk_id(2)).value(), pattern(4096, 2));
    // It stays lost through checkpoints and restarts.
    if (round == 0) {
      ASSERT_TRUE(rig.checkpoint());
    }
    rig.reopen();
  }
  // Writing it again heals it.
  ASSERT_TRUE(rig.write(chunk_id(1), 8192, pattern(4096, 9)));
  EXPECT_EQ(rig.read(chunk_id(1), 8192, 4096).value(), pattern(4096, 9));
}

TEST_F(ShardCrashTest, RotInTheDataAreaIsReportedAndNeverServed) {
  rig.options.shard.cache_bytes = 0;
  rig.start();
  const auto bytes = pattern(200000, 1);
  ASSERT_TRUE(rig.write(chunk_id(1), 0, bytes));
  ASSERT_TRUE(rig.checkpoint());
  // Find the chunk's second unit on the device by its bytes.
  const auto place =
      std::search(rig.contents->begin(), rig.contents->end(), bytes.begin() + 65536, bytes.begin() + 65536 + 4096);
  ASSERT_NE(place, rig.contents->end());
  rig.device->rot(static_cast<uint64_t>(place - rig.contents->begin()) + 4000);
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::corrupt);
  EXPECT_EQ(rig.read(chunk_id(1), 0, 65536).value(), std::vector(bytes.begin(), bytes.begin() + 65536));
  EXPECT_EQ(rig.read(chunk_id(1), 65536, 1).code(), Errc::corrupt);
  EXPECT_EQ(rig.read(chunk_id(1), 65536 + 4096, 4096).value(),
            std::vector(bytes.begin() + 69632, bytes.begin() + 73728));
  EXPECT_TRUE(rig.shard->health());
  EXPECT_TRUE(rig.write(chunk_id(2), 0, bytes));
}

// A write put in the wrong place has a right checksum of its own; the one in the map finds it.
TEST_F(ShardCrashTest, AMisplacedWriteIsFound) {
  rig.options.shard.cache_bytes = 0;
  rig.start();
  const auto a = pattern(65536, 1);
  const auto b = pattern(65536, 2);
  ASSERT_TRUE(rig.write(chunk_id(1), 0, a));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, b));
  const auto at = std::search(rig.contents->begin(), rig.contents->end(), a.begin(), a.begin() + 4096);
  std::copy(b.begin(), b.end(), at);
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::corrupt);
  EXPECT_EQ(rig.read(chunk_id(2)).value(), b);
}

TEST_F(ShardCrashTest, ADiskThatLiesAboutFlushesIsFoundOut) {
  rig.start();
  rig.device->lie_about_flush = true;
  int found = 0;
  int lost = 0;
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 1; i <= 20; ++i) ASSERT_TRUE(rig.write(chunk_id(i), 0, pattern(4096, i)));
    (void)rig.checkpoint();
    rig.crash();
    if (!rig.try_open()) {
      ++found;
      break;
    }
    if (!rig.shard->health()) {
      ++found;
      break;
    }
    rig.close();
    rig.open();
    for (uint64_t i = 1; i <= 20; ++i) lost += rig.read(chunk_id(i)).has_value() ? 0 : 1;
    rig.device->lie_about_flush = true;
  }
  EXPECT_GT(found + lost, 0);
}

TEST_F(ShardCrashTest, AFailedWriteFencesAndReadsGoOn) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  ASSERT_TRUE(rig.write(chunk_id(2), 0, pattern(100000, 2)));
  struct Case {
    IoRequest::Op op;
    size_t size;
  };
  for (const Case& c : {Case{IoRequest::Op::write, 4096}, Case{IoRequest::Op::write, 100000},
                        Case{IoRequest::Op::flush, 4096}, Case{IoRequest::Op::flush, 100000}}) {
    int failures = 0;
    rig.device->fault = [&](const IoRequest& request) {
      if (request.op != c.op) return Errc::ok;
      ++failures;
      return Errc::io_error;
    };
    EXPECT_EQ(rig.write(chunk_id(3), 0, pattern(c.size, 3)).code(), Errc::device_fenced);
    rig.device->fault = nullptr;
    const int failed_once = failures;
    EXPECT_EQ(rig.shard->health().code(), Errc::device_fenced);
    EXPECT_EQ(rig.write(chunk_id(4), 0, pattern(c.size, 3)).code(), Errc::device_fenced);
    EXPECT_EQ(rig.checkpoint().code(), Errc::device_fenced);
    EXPECT_EQ(failures, failed_once) << "it tried again";
    EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
    EXPECT_EQ(rig.read(chunk_id(2)).value(), pattern(100000, 2));
    rig.reopen();
    EXPECT_TRUE(rig.shard->health());
    EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(4096, 1));
  }
}

TEST_F(ShardCrashTest, AReadErrorIsNoCorruption) {
  rig.options.shard.cache_bytes = 0;
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(100000, 1)));
  rig.device->fault = [](const IoRequest& request) {
    return request.op == IoRequest::Op::read ? Errc::io_error : Errc::ok;
  };
  EXPECT_EQ(rig.read(chunk_id(1)).code(), Errc::io_error);
  rig.device->fault = nullptr;
  EXPECT_EQ(rig.read(chunk_id(1)).value(), pattern(100000, 1));
  EXPECT_TRUE(rig.shard->health());
}

// A sector that the device can't read at the end of the journal is no torn batch: it may hold acknowledged entries.
TEST_F(ShardCrashTest, AnUnreadableJournalIsNeverCut) {
  rig.start();
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(rig.write(chunk_id(i), 0, pattern(4096, i)));
  const Lsn last = batches().back().lsn;
  const auto image = *rig.contents;
  rig.crash();
  *rig.contents = image;
  rig.device->fault = [this, last](const IoRequest& request) {
    const uint64_t at = offset_of(last);
    const bool hit = request.op == IoRequest::Op::read && request.offset <= at && at < request.offset + request.length;
    return hit ? Errc::io_error : Errc::ok;
  };
  ASSERT_TRUE(rig.try_open());
  EXPECT_EQ(rig.shard->health().code(), Errc::corrupt);
  rig.close();
  rig.device->fault = nullptr;
  rig.open();
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(rig.read(chunk_id(i)).value(), pattern(4096, i));
}

TEST_F(ShardCrashTest, TheStoreBelongsToTheDevice) {
  rig.start();
  ASSERT_TRUE(rig.write(chunk_id(1), 0, pattern(4096, 1)));
  ASSERT_TRUE(rig.checkpoint());
  rig.close();
  auto store = std::move(rig.store);
  rig.store = std::make_unique<kv::MemoryStore>();
  const auto lost = rig.try_open();
  EXPECT_EQ(lost.code(), Errc::corrupt);
  EXPECT_NE(lost.error().message().find("directory"), std::string::npos);
  rig.store = std::move(store);
  rig.open();
  rig.close();
  // Another device with this store.
  rig.extent.device = Id128{{77}};
  rig.format();
  EXPECT_EQ(rig.try_open().code(), Errc::invalid_argument);
}

TEST_F(ShardCrashTest, KeysAreAppliedOnceEach) {
  rig.start();
  const auto put = [&](const std::string& body) {
    Entry entry = Rig::simple_entry(EntryKind::kv_batch, {});
    entry.body = body;
    return rig.run(std::move(entry));
  };
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(put("k" + std::to_string(i) + "=" + std::to_string(i)));
    ASSERT_TRUE(rig.write(chunk_id(i + 1u), 0, pattern(4096, i + 1u)));
  }
  for (int round = 0; round < 4; ++round) {
    // Some of the store's writes survive; the journal has the rest, each after those before it.
    rig.crash();
    ASSERT_TRUE(rig.try_open());
    Index last{};
    for (const Entry& entry : rig.shard->recovered()) {
      EXPECT_GT(entry.index, last);
      last = entry.index;
      if (entry.kind == EntryKind::kv_batch) {
        EXPECT_FALSE(rig.store->contents().contains("kv/" + entry.body.substr(0, 2))) << entry.body;
        rig.apply_kv(entry);
      }
      rig.shard->apply(entry);
    }
    rig.next_index.clear();
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(rig.store->contents().at("kv/k" + std::to_string(i)), std::to_string(i));
      EXPECT_EQ(rig.read(chunk_id(i + 1u)).value(), pattern(4096, i + 1u));
    }
    if (round == 2) {
      ASSERT_TRUE(rig.checkpoint());
    }
  }
}

}  // namespace
}  // namespace cairn::engine
