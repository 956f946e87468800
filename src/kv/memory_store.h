// MemoryStore: an OrderedStore for tests and for the simulator.
//
// Fault model. At a crash it forgets what a real store with its write-ahead log off forgets: a random suffix of the
// writes that no completed flush covers, never part of one write, never a write before one that stays. Flushes take
// time (when it has a loop), so crashes hit the middle of them. A hook may make any operation fail. Left out: a store
// that breaks its promise (RocksDB is tested by real crashes in rocks_store_test.cc), except on demand for tests that
// check their checkers (lie_about_flush).
//
// Deterministic: the same calls with the same Rng give the same contents.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "kv/ordered_store.h"
#include "reactor/loop.h"

namespace cairn::kv {

class MemoryStore final : public OrderedStore {
 public:
  enum class Operation : uint8_t { write, get, scan, flush };

  // How long an operation takes: uniform in [0, max], drawn from the loop's Rng.
  struct Latency {
    Duration read_max{};
    Duration flush_max{};
  };

  // Everything completes at once.
  MemoryStore() = default;
  MemoryStore(Loop& loop, Latency latency) : loop_(&loop), latency_(latency) {}

  Result<void> write(std::span<const Mutation> mutations) override;
  Task<Result<std::optional<std::string>>> get(std::string_view key) override;
  Task<Result<ScanResult>> scan(ScanOptions options) override;
  Task<Result<void>> flush() override;

  // Power is lost: keeps a random prefix of the writes that covers everything flushed, and answers everything with
  // Errc::closed until power_on(). Operations in flight end with that error too, so that whoever used the store can be
  // torn down in an orderly way without touching what survived.
  void power_off(Rng& rng);
  void power_on() { powered_ = true; }
  // Both: what a new user of the store finds after the crash.
  void crash(Rng& rng) {
    power_off(rng);
    power_on();
  }

  // Asked before each operation; anything but Errc::ok is its result, and it has no effect. An empty function: no
  // faults.
  void set_fault_hook(std::function<Errc(Operation)> hook) { fault_hook_ = std::move(hook); }
  // Writes are refused with Errc::busy while this many wait for a flush. 0: no limit.
  void set_unflushed_limit(size_t writes) { unflushed_limit_ = writes; }
  // Breaks the contract: flush() succeeds and makes nothing durable.
  void lie_about_flush(bool lie) { lie_about_flush_ = lie; }

  size_t unflushed_writes() const { return undo_.size(); }
  size_t size() const { return map_.size(); }
  const std::map<std::string, std::string, std::less<>>& contents() const { return map_; }

 private:
  // What to put back to take one write away again.
  struct Undo {
    uint64_t sequence = 0;
    std::vector<Mutation> before;  // in reverse order of the write's mutations
  };

  Errc begin(Operation operation) const;
  // An error when the power went off meanwhile.
  Task<Result<void>> take_time(Duration max);

  Loop* loop_ = nullptr;
  Latency latency_;
  std::map<std::string, std::string, std::less<>> map_;
  // Invariant: sequences ascend without gaps up to last_sequence_; exactly the writes that no flush covers.
  std::deque<Undo> undo_;
  uint64_t last_sequence_ = 0;
  uint64_t power_losses_ = 0;
  bool powered_ = true;
  std::function<Errc(Operation)> fault_hook_;
  size_t unflushed_limit_ = 0;
  bool lie_about_flush_ = false;
};

}  // namespace cairn::kv
