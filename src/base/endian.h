// Little-endian integers of fixed size and alignment 1, for structures that leave memory (disk, wire).
//
//   struct Record { Le32 length; Le64 lsn; };
//   static_assert(sizeof(Record) == 12);
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace cairn {

static_assert(std::endian::native == std::endian::little, "big-endian hosts need byte swaps here");

template <std::unsigned_integral Int>
class Le {
 public:
  constexpr Le() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): reads and writes like the integer it holds
  Le(Int value) { std::memcpy(bytes_, &value, sizeof value); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator Int() const { return get(); }
  Int get() const {
    Int value;
    std::memcpy(&value, bytes_, sizeof value);
    return value;
  }

 private:
  uint8_t bytes_[sizeof(Int)] = {};
};

using Le16 = Le<uint16_t>;
using Le32 = Le<uint32_t>;
using Le64 = Le<uint64_t>;
static_assert(sizeof(Le16) == 2 && sizeof(Le32) == 4 && sizeof(Le64) == 8 && alignof(Le64) == 1);

}  // namespace cairn
