#include "control/placement.h"

#include "base/assert.h"
#include "base/endian.h"

namespace cairn::control {
namespace {

// The finalizer of MurmurHash3: every bit of the input changes every bit of the output with a probability near half.
constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

}  // namespace

engine::GroupId group_of(const Id128& id, uint32_t groups) {
  ASSERT(groups > 0);
  struct {
    Le64 low;
    Le64 high;
  } halves;
  static_assert(sizeof halves == sizeof id.bytes);
  std::memcpy(&halves, id.bytes.data(), sizeof halves);
  const uint64_t hash = mix(halves.low ^ mix(halves.high + 0x9e3779b97f4a7c15));
  // The high bits, scaled: no modulo bias to speak of and no division.
  return engine::GroupId(static_cast<uint32_t>((hash >> 32) * groups >> 32));
}

}  // namespace cairn::control
