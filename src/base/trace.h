// Trace: what a call belongs to, for whoever looks for one request across programs. The sizes are those of W3C Trace
// Context, so that it can be taken from and written into a `traceparent`.
//
// A handler that calls others hands its own on: {.trace = context.trace}. Nothing does that by itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/id.h"

namespace cairn {

struct Trace {
  Id128 id;                       // zero: none
  std::array<uint8_t, 8> span{};  // of the caller

  // Of a W3C `traceparent`, "00-<32 hexadecimal digits>-<16>-<2>"; nullopt when it isn't one.
  static std::optional<Trace> from_traceparent(std::string_view text);

  bool is_set() const { return !id.is_zero(); }
  bool operator==(const Trace&) const = default;
};

}  // namespace cairn
