// What a request may carry in front of its metadata, each told by a bit of the header, where both ends have the
// feature:
//
//   sequence 40 | trace 24 | the method's metadata
//
// A sequence makes a call one that is executed once however often it is sent (sequence_table.h). Channels number such
// calls from 1; the id is the channel's own, drawn at random, so nobody else can ask for its answers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/endian.h"
#include "base/id.h"
#include "base/status.h"
#include "base/trace.h"
#include "srpc/wire.h"

namespace cairn::srpc {

struct Sequence {
  Id128 channel;
  uint64_t number = 0;
  uint64_t done_below = 0;  // calls with smaller numbers have ended: their answers may be forgotten; <= number
  uint32_t age_ms = 0;      // 0: sent for the first time; else this long ago, rounded up
};

struct Extensions {
  std::optional<Sequence> sequence;
  Trace trace;
};

struct WireSequence {
  std::array<uint8_t, 16> channel{};
  Le64 number;
  Le64 done_below;
  Le32 age_ms;
  Le32 reserved;
};
static_assert(sizeof(WireSequence) == 40 && alignof(WireSequence) == 1);

struct WireTrace {
  std::array<uint8_t, 16> id{};
  std::array<uint8_t, 8> span{};
};
static_assert(sizeof(WireTrace) == 24 && alignof(WireTrace) == 1);

inline constexpr size_t kMaxExtensionBytes = sizeof(WireSequence) + sizeof(WireTrace);

// Writes what is set and sets header.extensions; returns its size. `out` has room for kMaxExtensionBytes.
size_t encode_extensions(const Extensions& extensions, Header& header, std::span<std::byte> out);

// Takes what header.extensions tells off the front of `metadata`. protocol_error: it isn't there whole, or makes no
// sense.
Result<Extensions> take_extensions(const Header& header, std::span<const std::byte>& metadata);

}  // namespace cairn::srpc
