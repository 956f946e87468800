// SimDisk: a BlockDevice in simulated time that fails in the ways disks do.
//
// Fault model (DiskFaults has the rates):
//   slow operations; completions in any order
//   crash: unflushed writes stay, are lost, or are torn at 512 B or 4 KiB, whatever their order; torn sectors garbage
//   EIO on read; on write, with any of its sectors written; on flush, after which what it should have covered is not
//   made durable by a later flush either (what Linux and drives really do: a failed flush must not be retried)
//   bit rot in place; writes that are lost or land elsewhere though acknowledged
//   full: writes to fresh places give no_space
//   discarded ranges read as old bytes, zeroes or garbage
// The code above must survive all of it, in the sense of DESIGN.md: a crash loses nothing acknowledged, everything else
// is found before it is served.
// Left out: reads that change each time, and single sectors (512 B) that are torn inside.
//
// Strict where a kernel is: asserts alignment of offsets, lengths and memory, and that nobody changes a buffer between
// submit and completion. Memory that a read will fill is scribbled over at submit, so that nobody can look too early.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "engine/block_device.h"
#include "sim/disk_faults.h"
#include "sim/disk_image.h"
#include "sim/simulator.h"

namespace cairn::sim {

class SimDisk final : public engine::BlockDevice {
 public:
  struct Options {
    uint64_t size_bytes = 0;
    uint64_t garbage_seed = 0;  // what was on it before: see DiskImage
    DiskFaults faults{};
  };
  struct Stats {
    uint64_t reads = 0, writes = 0, flushes = 0, discards = 0;
    uint64_t slow = 0;
    uint64_t read_errors = 0, write_errors = 0, flush_errors = 0, full_errors = 0;
    uint64_t lost_writes = 0, misdirected_writes = 0, rotten_bits = 0;
    uint64_t lied_pages = 0;                                               // of lost and misdirected writes
    uint64_t crashes = 0, crash_kept = 0, crash_lost = 0, crash_torn = 0;  // the last three: unflushed writes
  };

  SimDisk(SimLoop& loop, Options options);
  // Nothing is in flight.
  ~SimDisk() override;

  void submit(engine::IoRequest& request) override;
  uint64_t size_bytes() const override { return media_.size_bytes(); }
  bool supports_discard() const override { return true; }
  Loop& loop() override { return *loop_; }

  // Power is lost: decides what survives, and answers everything with io_error until power_on(). What is in flight ends
  // with io_error, too, so that whoever used the disk can be torn down in an orderly way without touching what
  // survived.
  void power_off();
  // For a new user, on its loop. Nothing is in flight.
  void power_on(SimLoop& loop);
  void power_on() { power_on(*loop_); }
  // For a new user without a loss of power: a failed flush doesn't spoil later ones any more. What it doomed stays
  // readable, and is still doomed.
  void reopen() { flush_failed_ = false; }

  DiskFaults& faults() { return faults_; }
  const Stats& stats() const { return stats_; }
  size_t in_flight() const { return operations_.size(); }

  // Flips one random bit in a random written page of [begin, end), on the medium and in the cache. The page's offset,
  // or size_bytes() when nothing there has been written.
  uint64_t rot(uint64_t begin, uint64_t end);
  // Content as reads see it, past all faults. For checks and for damage that a test does itself.
  void peek(uint64_t offset, std::span<std::byte> out) const;
  void poke(uint64_t offset, std::span<const std::byte> in);

 private:
  struct Operation;
  // A completed write that no completed flush covers. Also discards, as a write of what they leave behind.
  struct Unflushed {
    uint64_t completion = 0;  // its number in the order of completions
    uint64_t offset = 0;
    std::unique_ptr<std::byte[]> bytes;  // null: zeroes
    size_t size = 0;
    bool doomed = false;  // a failed flush covered it: no later one makes it durable
  };

  static void on_timer(void* operation);
  void finish(Operation& operation);
  Errc perform(Operation& operation);
  Errc perform_read(engine::IoRequest& request);
  Errc perform_write(Operation& operation);
  Errc perform_flush(Operation& operation);
  Errc perform_discard(engine::IoRequest& request);
  Duration draw_latency(const engine::IoRequest& request);
  bool strikes(uint32_t ppm) { return ppm != 0 && rng_.chance(ppm, 1'000'000); }
  bool may_lie(const engine::IoRequest& request) const;
  void add_unflushed(uint64_t offset, std::unique_ptr<std::byte[]> bytes, size_t size);
  static void put(DiskImage& image, uint64_t offset, const std::byte* bytes, size_t size);
  // Puts it on the medium and forgets it in the cache.
  void make_durable(const Unflushed& write);
  void release_cached(uint64_t offset, size_t size);
  // What a crash does to one write.
  void crash_write(uint64_t offset, const std::byte* bytes, size_t size, bool completed);
  void write_some_sectors(uint64_t offset, const std::byte* bytes, size_t size);

  SimLoop* loop_;
  Simulator& simulator_;
  SeededRng rng_;
  DiskFaults faults_;
  Stats stats_;
  bool powered_ = true;
  bool flush_failed_ = false;  // BlockDevice::submit says what that means

  DiskImage media_;  // on stable storage
  // What reads see where it differs from the medium. Invariant: a page is here exactly while cached_[page] > 0, which
  // counts the unflushed writes that cover it.
  DiskImage cache_;
  std::vector<uint32_t> cached_;
  std::vector<bool> written_;         // pages that have ever been written: the others don't exist on a sparse file
  std::vector<Unflushed> unflushed_;  // in the order of completion
  uint64_t completions_ = 0;

  std::map<uint64_t, std::unique_ptr<Operation>> operations_;
  uint64_t next_operation_ = 0;
};

}  // namespace cairn::sim
