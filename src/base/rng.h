// Random numbers are handed in, so that one seed repeats a whole run.
#pragma once

#include <cstdint>
#include <span>

namespace cairn {

class Rng {
 public:
  virtual ~Rng() = default;
  virtual uint64_t next() = 0;

  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  // True with probability `part` of `whole`.
  bool chance(uint64_t part, uint64_t whole) { return below(whole) < part; }
  void fill(std::span<std::byte> out);
};

// xoshiro256**: the same numbers on every machine from the same seed. Not for secrets.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(uint64_t seed);
  uint64_t next() override;

 private:
  uint64_t state_[4];
};

// The kernel's generator, good for keys and identifiers.
class SystemRng final : public Rng {
 public:
  uint64_t next() override;
};

}  // namespace cairn
