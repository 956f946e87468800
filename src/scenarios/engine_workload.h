// EngineWorkload: clients that do what clients do to a shard, at random, and check each answer against the model.
#pragma once

#include <cstdint>
#include <memory>

#include "reactor/scope.h"
#include "scenarios/engine_world.h"

namespace cairn::scenarios {

// How often which operation; drawn per seed, some of them 0, so that each seed leans on something else.
struct EngineMix {
  uint32_t small_write = 0;
  uint32_t large_write = 0;    // aligned to units
  uint32_t crooked_write = 0;  // large, unaligned at both ends
  uint32_t append = 0;         // at the chunk's end
  uint32_t discard = 0;
  uint32_t remove = 0;
  uint32_t kv_batch = 0;
  uint32_t noop = 0;
  uint32_t read = 0;
  uint32_t look = 0;  // stat, list, usage, a key
  uint32_t checkpoint = 0;

  uint32_t clients = 1;
  Duration think_max{};

  static EngineMix draw(Rng& rng);
};

class EngineWorkload {
 public:
  EngineWorkload(EngineWorld& world, EngineMix mix);

  // Starts the clients; they go on until stop() or until the check fails.
  void start();
  void stop();
  // Until every client has ended. Runs the simulation.
  void join();

  // One write, delete and so on, for the end of a seed when all must work.
  Task<Result<void>> write(uint32_t chunk, uint32_t offset, uint32_t length, CancelToken cancel);
  Task<Result<void>> remove(uint32_t chunk);

 private:
  using Step = Task<void> (EngineWorkload::*)(SeededRng&);
  static Task<void> client(EngineWorkload* self, uint64_t seed);

  Task<void> small_write(SeededRng& rng);
  Task<void> large_write(SeededRng& rng);
  Task<void> crooked_write(SeededRng& rng);
  Task<void> append(SeededRng& rng);
  Task<void> discard(SeededRng& rng);
  Task<void> random_remove(SeededRng& rng);
  Task<void> kv_batch(SeededRng& rng);
  Task<void> noop(SeededRng& rng);
  Task<void> read(SeededRng& rng);
  Task<void> look(SeededRng& rng);
  Task<void> checkpoint(SeededRng& rng);

  Step pick(SeededRng& rng) const;
  uint32_t random_chunk(SeededRng& rng) const { return static_cast<uint32_t>(rng.below(world_.sizes.chunks)); }
  Task<Result<mem::BufChain>> make_payload(uint32_t offset, uint32_t length, uint64_t version, SeededRng& rng,
                                           CancelToken cancel);
  // What the outcome of a proposal may be.
  void check_outcome(const Result<void>& outcome, engine::EntryKind kind);

  EngineWorld& world_;
  EngineMix mix_;
  Scope scope_;
  std::unique_ptr<CancelSource> stop_;
  uint64_t last_version_ = 0;
};

}  // namespace cairn::scenarios
