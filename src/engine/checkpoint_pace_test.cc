#include "engine/checkpoint_pace.h"

#include <gtest/gtest.h>

#include "engine/geometry.h"
#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

using test::chunk_id;
using test::pattern;
using test::Rig;

TEST(CheckpointPaceTest, GivesOutTheGrantAsPagesGetHome) {
  CheckpointPace pace;
  EXPECT_EQ(pace.held_back(), 0u);
  pace.begin(1000, 800, 100);
  // A quarter of the grant at once.
  EXPECT_EQ(1000 - pace.held_back(), 200u);
  pace.pages_home(50);
  EXPECT_EQ(1000 - pace.held_back(), 500u);
  pace.pages_home(49);
  EXPECT_EQ(1000 - pace.held_back(), 794u);
  // With the last page everything, also what wasn't granted.
  pace.pages_home(1);
  EXPECT_EQ(pace.held_back(), 0u);
}

TEST(CheckpointPaceTest, HoldsNothingBackWithoutPages) {
  CheckpointPace pace;
  pace.begin(1000, 800, 0);
  EXPECT_EQ(pace.held_back(), 0u);
  pace.begin(1000, 5000, 10);  // no more can be granted than there is
  EXPECT_EQ(pace.held_back(), 750u);
  pace.end();
  EXPECT_EQ(pace.held_back(), 0u);
}

TEST(CheckpointPaceTest, TakesMoreOfTheDeviceTheFurtherWritersAreAhead) {
  CheckpointPace pace;
  pace.begin(1000, 800, 100);
  EXPECT_EQ(pace.writes(1000), CheckpointPace::kLeastWrites);
  const size_t some = pace.writes(900);
  EXPECT_GT(some, CheckpointPace::kLeastWrites);
  EXPECT_LT(some, CheckpointPace::kMostWrites);
  EXPECT_EQ(pace.writes(800), CheckpointPace::kMostWrites);
  pace.pages_home(25);  // as far as they are
  EXPECT_EQ(pace.writes(800), CheckpointPace::kLeastWrites);
  // Without any room, writers wait for nothing else.
  pace.begin(0, 800, 100);
  EXPECT_EQ(pace.writes(0), CheckpointPace::kMostWrites);
}

TEST(CheckpointPaceTest, TellsWritersNowAndThen) {
  CheckpointPace pace;
  pace.begin(1000, 800, 1000);
  size_t told = 0;
  for (int i = 0; i < 1000; ++i) told += pace.pages_home(1) ? 1 : 0;
  EXPECT_GT(told, 20u);
  EXPECT_LT(told, 200u);
  pace.begin(1000, 800, 3);
  EXPECT_FALSE(pace.pages_home(2));
  EXPECT_TRUE(pace.pages_home(1));
}

// Small writes from many sides, faster than they can go home.
class SteadyWritesTest : public ::testing::Test {
 protected:
  static constexpr size_t kWriters = 256;
  static constexpr uint64_t kChunks = 12;
  static constexpr uint32_t kPages = 1000;  // of each chunk

  static Task<void> writer(Rig* rig, uint64_t seed, Time until, Duration* longest) {
    SeededRng rng(seed);
    while (rig->loop.now() < until) {
      const Time began = rig->loop.now();
      const auto at = static_cast<uint32_t>(rng.below(kPages) * kPageBytes);
      const auto bytes = pattern(kPageBytes, rng.next());
      const auto done = co_await Rig::propose(rig, rig->write_entry(chunk_id(1 + rng.below(kChunks)), at, bytes),
                                              mem::Purpose::client);
      EXPECT_TRUE(done.has_value());
      *longest = std::max(*longest, rig->loop.now() - began);
    }
  }
  // Returns the longest wait of a write.
  Duration write_for(Duration duration) {
    rig.start();
    for (uint64_t i = 1; i <= kChunks; ++i) EXPECT_TRUE(rig.write(chunk_id(i), 0, pattern(kPages * kPageBytes, i)));
    EXPECT_TRUE(rig.checkpoint());
    rig.device->max_latency_us = 1000;
    reads_before = rig.device->counts[static_cast<size_t>(IoRequest::Op::read)];
    Duration longest;
    Scope scope(rig.loop);
    const Time until = rig.loop.now() + duration;
    for (size_t i = 0; i < kWriters; ++i) scope.spawn(&SteadyWritesTest::writer, &rig, i, until, &longest);
    rig.loop.run_until([&] { return scope.running() == 0; });
    return longest;
  }
  uint64_t counter(std::string_view name) {
    const std::string text = Registry::expose({{rig.registry.get(), ""}});
    const size_t at = text.find("\n" + std::string(name) + "{");
    return at == std::string::npos ? 0 : std::stoull(text.substr(text.find(' ', at)));
  }

  uint64_t reads_before = 0;
  Rig rig{{.shard_bytes = 128 * test::kMegabyte,
           .journal_bytes = 64 * test::kMegabyte,
           .pool_bytes = 128 * test::kMegabyte,
           .shard = {.cache_bytes = 0, .dirty_bytes = 64 * test::kMegabyte, .checkpoint_interval = seconds(1000)}}};
};

// Some five thousand pages go home at each checkpoint, half a millisecond each, 32 at a time: 80 ms, half of which
// nobody would be answered if the journal were full by then. All times are the loop's.
TEST_F(SteadyWritesTest, NobodyWaitsForAWholeCheckpoint) {
  const Duration longest = write_for(seconds(3));
  EXPECT_GT(counter("engine_checkpoints_total"), 3u);
  EXPECT_LT(longest, milliseconds(15)) << longest.us() << " us";
}

// Pages go home out of memory: a checkpoint begins while its pages are there, and those that come meanwhile fit, too.
TEST_F(SteadyWritesTest, NothingIsReadBackFromTheJournal) {
  rig.options.shard.dirty_bytes = 32 * test::kMegabyte;
  (void)write_for(seconds(3));
  EXPECT_GT(counter("engine_checkpoints_total"), 3u);
  EXPECT_EQ(rig.device->counts[static_cast<size_t>(IoRequest::Op::read)] - reads_before, 0u);
}

}  // namespace
}  // namespace cairn::engine
