#include "sim/trace.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace cairn::sim {

void Trace::mix(uint64_t value) {
  // A multiply-rotate step of the kind wyhash uses: order matters, and every bit spreads.
  hash_ = std::rotl((hash_ ^ value) * 0x9e3779b97f4a7c15, 29) * 0xff51afd7ed558ccd;
}

void Trace::event(std::string_view what, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  ++events_;
  mix(crc32c(what.data(), what.size()));
  mix(static_cast<uint64_t>(clock_.now().ns));
  mix(a);
  mix(b);
  mix(c);
  mix(d);
  if (out_ != nullptr) {
    fmt::print(out_, "{:>14.3f} us  {:<22} {} {} {} {}\n", static_cast<double>(clock_.now().ns) / 1e3, what, a, b, c,
               d);
  }
}

uint64_t Trace::hash_of(std::span<const std::byte> bytes) { return crc32c(bytes); }

}  // namespace cairn::sim
