#include "base/rng.h"

#include <sys/random.h>

#include <bit>
#include <cstring>

#include "base/assert.h"

namespace cairn {

uint64_t Rng::below(uint64_t bound) {
  ASSERT(bound > 0);
  // Multiply-shift with rejection: unbiased and without a division in the common case.
  auto product = static_cast<unsigned __int128>(next()) * bound;
  auto low = static_cast<uint64_t>(product);
  if (low < bound) {
    const uint64_t threshold = -bound % bound;
    while (low < threshold) {
      product = static_cast<unsigned __int128>(next()) * bound;
      low = static_cast<uint64_t>(product);
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

void Rng::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    const uint64_t word = next();
    const size_t n = out.size() < sizeof word ? out.size() : sizeof word;
    std::memcpy(out.data(), &word, n);
    out = out.subspan(n);
  }
}

SeededRng::SeededRng(uint64_t seed) {
  // SplitMix64 spreads a small seed over the whole state, as the generator's authors advise.
  for (auto& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

uint64_t SeededRng::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t SystemRng::next() {
  uint64_t word = 0;
  const ssize_t n = getrandom(&word, sizeof word, 0);
  ASSERT(n == sizeof word);
  return word;
}

}  // namespace cairn
