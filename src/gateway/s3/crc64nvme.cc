#include "gateway/s3/crc64nvme.h"

#include <emmintrin.h>
#include <wmmintrin.h>

#include <array>
#include <cstring>

// Reflected arithmetic: bit i of a 64-bit word stands for x^(63-i). PCLMULQDQ of two such words gives a 128-bit
// register that stands for their product times x, so a factor x^n is stored as x^(n-1) mod P.
//
// A 16-byte register holds (first 8 bytes) * x^64 + (last 8 bytes). Moving it forward by D bits in the message
// multiplies it by x^D, that is: first * x^(64+D) + last * x^D, two multiplications; the result is congruent and fits
// 128 bits again.

namespace cairn::s3 {
namespace {

constexpr uint64_t kPolynomial = 0x9a6c9329ac4bc9b5;  // reflected

constexpr uint64_t x_to_the(unsigned n) {
  uint64_t value = uint64_t{1} << 63;
  for (unsigned i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return value;
}

constexpr std::array<uint64_t, 256> kTable = [] {
  std::array<uint64_t, 256> table{};
  for (uint64_t i = 0; i < 256; ++i) {
    uint64_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}();

uint64_t by_table(const std::byte* p, size_t n, uint64_t state) {
  for (; n > 0; ++p, --n) state = kTable[(state ^ std::to_integer<uint64_t>(*p)) & 0xff] ^ (state >> 8);
  return state;
}

template <unsigned Bits>
__m128i forward(__m128i value) {
  const __m128i factors =
      _mm_set_epi64x(static_cast<int64_t>(x_to_the(Bits - 1)), static_cast<int64_t>(x_to_the(Bits + 63)));
  return _mm_xor_si128(_mm_clmulepi64_si128(value, factors, 0x00), _mm_clmulepi64_si128(value, factors, 0x11));
}

__m128i load(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

}  // namespace

uint64_t crc64nvme(std::span<const std::byte> bytes, uint64_t previous) noexcept {
  const std::byte* p = bytes.data();
  size_t n = bytes.size();
  uint64_t state = ~previous;
  if (n >= 128) {
    __m128i lanes[4];
    for (int i = 0; i < 4; ++i) lanes[i] = load(p + 16 * i);
    // The state so far enters as if XORed onto the next eight bytes.
    lanes[0] = _mm_xor_si128(lanes[0], _mm_set_epi64x(0, static_cast<int64_t>(state)));
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
      for (int i = 0; i < 4; ++i) lanes[i] = _mm_xor_si128(forward<512>(lanes[i]), load(p + 16 * i));
    }
    __m128i sum = lanes[0];
    for (int i = 1; i < 4; ++i) sum = _mm_xor_si128(forward<128>(sum), lanes[i]);
    std::array<std::byte, 16> rest;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rest.data()), sum);
    state = by_table(rest.data(), rest.size(), 0);
  }
  return ~by_table(p, n, state);
}

}  // namespace cairn::s3
