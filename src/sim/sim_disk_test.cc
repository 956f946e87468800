#include "sim/sim_disk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "mem/arena.h"
#include "mem/pool.h"

namespace cairn::sim {
namespace {

constexpr uint64_t kDiskBytes = 4 << 20;

struct SimDiskTest : ::testing::Test {
  mem::Arena arena = *mem::Arena::create(8 << 20);
};

// A world with one disk, and blocking-looking helpers for it.
struct World {
  World(mem::Arena& arena, uint64_t seed, DiskFaults faults = {})
      : sim(seed),
        loop(sim),
        pool(loop, registry, arena.memory(), 0),
        disk(loop, {.size_bytes = kDiskBytes, .faults = faults}) {}

  static Task<Result<void>> write_task(World* w, uint64_t offset, size_t size, char fill) {
    CO_TRY(auto chain, co_await w->pool.alloc_chain(size));
    for (mem::Buf buf : chain.slices()) std::memset(buf.writable(), fill, buf.size());
    co_return co_await engine::write(w->disk, offset, std::move(chain));
  }
  static Task<Result<std::string>> read_task(World* w, uint64_t offset, size_t size) {
    CO_TRY(auto chain, co_await w->pool.alloc_chain(size));
    CO_TRY(co_await engine::read(w->disk, offset, chain));
    std::string out;
    chain.for_each(
        [&](std::span<const std::byte> b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); });
    co_return out;
  }
  static Task<Result<void>> flush_task(World* w) { co_return co_await engine::flush(w->disk); }
  static Task<void> write_in_background(World* w, uint64_t offset, size_t size, char fill, Errc* out) {
    *out = (co_await write_task(w, offset, size, fill)).code();
  }

  Result<void> write(uint64_t offset, size_t size, char fill) {
    return sim.run(loop, &World::write_task, this, offset, size, fill);
  }
  Result<std::string> read(uint64_t offset, size_t size) {
    return sim.run(loop, &World::read_task, this, offset, size);
  }
  Result<void> flush() { return sim.run(loop, &World::flush_task, this); }
  void crash() {
    disk.power_off();
    sim.run_for(milliseconds(1));
    disk.power_on();
  }

  Simulator sim;
  SimLoop loop;
  Registry registry;
  mem::Pool pool;
  SimDisk disk;
};

bool all(const std::string& bytes, char c) { return bytes.find_first_not_of(c) == std::string::npos; }

TEST_F(SimDiskTest, ReadsWhatWasWritten) {
  World w(arena, 1);
  ASSERT_TRUE(w.write(8192, 8192, 'a'));
  EXPECT_TRUE(all(*w.read(8192, 8192), 'a'));
  EXPECT_TRUE(all(*w.read(0, 8192), '\0'));
  ASSERT_TRUE(w.flush());
  EXPECT_TRUE(all(*w.read(8192, 8192), 'a'));
}

TEST_F(SimDiskTest, FlushedWritesSurviveEveryCrash) {
  for (const CrashStyle style : {CrashStyle::keep_completed, CrashStyle::lose_unflushed, CrashStyle::mixed}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      World w(arena, seed, {.crash_style = style, .tear_to_garbage = true});
      ASSERT_TRUE(w.write(0, 65536, 'a'));
      ASSERT_TRUE(w.flush());
      ASSERT_TRUE(w.write(65536, 65536, 'b'));
      w.crash();
      EXPECT_TRUE(all(*w.read(0, 65536), 'a'));
    }
  }
}

// What an unflushed overwrite leaves after a crash, over many seeds: per sector the old or the new bytes.
std::set<std::string> outcomes(mem::Arena& arena, DiskFaults faults) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    World w(arena, seed, faults);
    EXPECT_TRUE(w.write(0, 8192, 'a'));
    EXPECT_TRUE(w.flush());
    EXPECT_TRUE(w.write(0, 8192, 'b'));
    w.crash();
    const std::string bytes = *w.read(0, 8192);
    std::string sectors;
    for (size_t at = 0; at < bytes.size(); at += 512) {
      const std::string sector = bytes.substr(at, 512);
      sectors += all(sector, 'a') ? 'a' : all(sector, 'b') ? 'b' : '?';
    }
    seen.insert(sectors);
  }
  return seen;
}

TEST_F(SimDiskTest, MixedCrashKeepsLosesAndTears) {
  const auto seen = outcomes(arena, {.crash_style = CrashStyle::mixed});
  EXPECT_TRUE(seen.contains(std::string(16, 'a')));
  EXPECT_TRUE(seen.contains(std::string(16, 'b')));
  EXPECT_GT(seen.size(), 20u);
  for (const std::string& sectors : seen) EXPECT_EQ(sectors.find('?'), std::string::npos);
}

TEST_F(SimDiskTest, TearsAtTheGranularityAskedFor) {
  const auto seen = outcomes(arena, {.crash_style = CrashStyle::mixed, .tear_bytes = 4096});
  const std::string a(8, 'a'), b(8, 'b');
  EXPECT_EQ(seen, (std::set{a + a, a + b, b + a, b + b}));
}

TEST_F(SimDiskTest, TornSectorsMayBeGarbage) {
  size_t garbage = 0;
  for (const std::string& sectors : outcomes(arena, {.crash_style = CrashStyle::mixed, .tear_to_garbage = true})) {
    garbage += sectors.find('?') != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(garbage, 5u);
}

TEST_F(SimDiskTest, ProtectedDrivesKeepAndUnprotectedOnesLose) {
  EXPECT_EQ(outcomes(arena, {.crash_style = CrashStyle::keep_completed}), std::set{std::string(16, 'b')});
  EXPECT_EQ(outcomes(arena, {.crash_style = CrashStyle::lose_unflushed}), std::set{std::string(16, 'a')});
}

TEST_F(SimDiskTest, LaterWritesMaySurviveEarlierOnes) {
  bool later_only = false;
  for (uint64_t seed = 0; seed < 100 && !later_only; ++seed) {
    World w(arena, seed);
    ASSERT_TRUE(w.write(0, 4096, 'a'));
    ASSERT_TRUE(w.write(4096, 4096, 'b'));
    w.crash();
    later_only = !all(*w.read(0, 4096), 'a') && all(*w.read(4096, 4096), 'b');
  }
  EXPECT_TRUE(later_only);
}

TEST_F(SimDiskTest, AWriteCompletedDuringAFlushIsNotCoveredByIt) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    World w(arena, seed, {.crash_style = CrashStyle::lose_unflushed});
    Errc flushed = Errc::unknown;
    Errc written = Errc::unknown;
    struct Flush {
      static Task<void> run(World* world, Errc* out) { *out = (co_await World::flush_task(world)).code(); }
    };
    Scope scope(w.loop);
    w.disk.faults().latency_min = milliseconds(1);
    w.disk.faults().latency_max = milliseconds(1);
    scope.spawn(&Flush::run, &w, &flushed);
    w.disk.faults().latency_min = w.disk.faults().latency_max = microseconds(1);
    scope.spawn(&World::write_in_background, &w, uint64_t{0}, size_t{4096}, 'a', &written);
    w.sim.run(w.loop, &Scope::join, &scope);
    EXPECT_EQ(flushed, Errc::ok);
    EXPECT_EQ(written, Errc::ok);
    w.crash();
    EXPECT_FALSE(all(*w.read(0, 4096), 'a'));
  }
}

TEST_F(SimDiskTest, PowerOffFailsWhatIsInFlightAndEverythingAfter) {
  World w(arena, 3);
  Errc written = Errc::ok;
  Scope scope(w.loop);
  scope.spawn(&World::write_in_background, &w, uint64_t{0}, size_t{4096}, 'a', &written);
  w.disk.power_off();
  w.sim.run(w.loop, &Scope::join, &scope);
  EXPECT_EQ(written, Errc::io_error);
  EXPECT_EQ(w.read(0, 4096).code(), Errc::io_error);
  EXPECT_EQ(w.write(0, 4096, 'a').code(), Errc::io_error);
  EXPECT_EQ(w.flush().code(), Errc::io_error);
  w.disk.power_on();
  EXPECT_TRUE(w.read(0, 4096));
}

TEST_F(SimDiskTest, ErrorsAreReportedAndLeaveNeighboursAlone) {
  World w(arena, 4);
  ASSERT_TRUE(w.write(0, 12288, 'a'));
  ASSERT_TRUE(w.flush());
  w.disk.faults().write_error_ppm = 1'000'000;
  EXPECT_EQ(w.write(4096, 4096, 'b').code(), Errc::io_error);
  w.disk.faults().write_error_ppm = 0;
  EXPECT_TRUE(all(*w.read(0, 4096), 'a'));
  EXPECT_TRUE(all(*w.read(8192, 4096), 'a'));
  w.disk.faults().read_error_ppm = 1'000'000;
  EXPECT_EQ(w.read(0, 4096).code(), Errc::io_error);
}

TEST_F(SimDiskTest, AFailedFlushSpoilsThoseThatEndLater) {
  World w(arena, 1);
  ASSERT_TRUE(w.write(0, 4096, 'a'));
  w.disk.faults().flush_error_ppm = 1'000'000;
  EXPECT_EQ(w.flush().code(), Errc::io_error);
  w.disk.faults().flush_error_ppm = 0;
  EXPECT_EQ(w.flush().code(), Errc::io_error);
  w.disk.reopen();
  EXPECT_TRUE(w.flush());
}

TEST_F(SimDiskTest, AFailedFlushIsNotHealedByALaterOne) {
  bool lost = false;
  for (uint64_t seed = 0; seed < 50 && !lost; ++seed) {
    World w(arena, seed);
    ASSERT_TRUE(w.write(0, 4096, 'a'));
    w.disk.faults().flush_error_ppm = 1'000'000;
    EXPECT_EQ(w.flush().code(), Errc::io_error);
    w.disk.faults().flush_error_ppm = 0;
    w.disk.reopen();
    EXPECT_TRUE(w.flush());
    EXPECT_TRUE(all(*w.read(0, 4096), 'a')) << "still readable, which is what makes it dangerous";
    w.crash();
    lost = !all(*w.read(0, 4096), 'a');
  }
  EXPECT_TRUE(lost);
}

TEST_F(SimDiskTest, WhatAFailedFlushCoveredDoesNotComeBackOverLaterDurableWrites) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    World w(arena, seed);
    ASSERT_TRUE(w.write(0, 8192, 'a'));
    w.disk.faults().flush_error_ppm = 1'000'000;
    EXPECT_EQ(w.flush().code(), Errc::io_error);
    w.disk.faults().flush_error_ppm = 0;
    w.disk.reopen();
    ASSERT_TRUE(w.write(4096, 4096, 'b'));
    ASSERT_TRUE(w.flush());
    w.crash();
    EXPECT_TRUE(all(*w.read(4096, 4096), 'b'));
  }
}

TEST_F(SimDiskTest, FullRefusesFreshPlacesOnly) {
  World w(arena, 5);
  ASSERT_TRUE(w.write(0, 4096, 'a'));
  w.disk.faults().full = true;
  EXPECT_EQ(w.write(4096, 4096, 'b').code(), Errc::no_space);
  EXPECT_TRUE(w.write(0, 4096, 'b'));
}

TEST_F(SimDiskTest, LiesOnlyWithinItsRange) {
  World w(arena, 6, {.lost_write_ppm = 1'000'000, .lie_begin = 65536, .lie_end = 131072});
  ASSERT_TRUE(w.write(0, 4096, 'a'));
  EXPECT_TRUE(all(*w.read(0, 4096), 'a'));
  ASSERT_TRUE(w.write(65536, 4096, 'a'));
  EXPECT_FALSE(all(*w.read(65536, 4096), 'a'));
  EXPECT_EQ(w.disk.stats().lost_writes, 1u);
}

TEST_F(SimDiskTest, RotFlipsOneBitOfAWrittenPage) {
  World w(arena, 7);
  EXPECT_EQ(w.disk.rot(0, kDiskBytes), kDiskBytes) << "nothing is written yet";
  ASSERT_TRUE(w.write(65536, 4096, 'a'));
  ASSERT_TRUE(w.flush());
  EXPECT_EQ(w.disk.rot(0, kDiskBytes), 65536u);
  const std::string bytes = *w.read(65536, 4096);
  int flipped = 0;
  for (char c : bytes) flipped += std::popcount(static_cast<unsigned>(static_cast<unsigned char>(c ^ 'a')));
  EXPECT_EQ(flipped, 1);
}

TEST_F(SimDiskTest, LyingAboutFlushLosesFlushedWrites) {
  bool lost = false;
  for (uint64_t seed = 0; seed < 20 && !lost; ++seed) {
    World w(arena, seed, {.lie_about_flush = true});
    ASSERT_TRUE(w.write(0, 4096, 'a'));
    ASSERT_TRUE(w.flush());
    w.crash();
    lost = !all(*w.read(0, 4096), 'a');
  }
  EXPECT_TRUE(lost);
}

TEST_F(SimDiskTest, SameSeedSameTrace) {
  const auto run = [&](uint64_t seed) {
    World w(arena, seed);
    for (uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(w.write(i * 4096, 4096, static_cast<char>('a' + i)));
    w.crash();
    EXPECT_TRUE(w.read(0, 65536));
    return w.sim.trace().hash();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace cairn::sim
