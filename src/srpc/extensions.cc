#include "srpc/extensions.h"

#include <fmt/format.h>

#include <cstring>

#include "base/assert.h"

namespace cairn::srpc {
namespace {

template <typename Body>
size_t put(std::span<std::byte> out, size_t at, const Body& body) {
  ASSERT(at + sizeof body <= out.size());
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(out.data() + at, &body, sizeof body);
  return at + sizeof body;
}

template <typename Body>
std::optional<Body> take(std::span<const std::byte>& in) {
  Body body;
  if (in.size() < sizeof body) return std::nullopt;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&body, in.data(), sizeof body);
  in = in.subspan(sizeof body);
  return body;
}

}  // namespace

size_t encode_extensions(const Extensions& extensions, Header& header, std::span<std::byte> out) {
  size_t at = 0;
  if (extensions.sequence) {
    header.extensions |= kExtensionSequence;
    const Sequence& from = *extensions.sequence;
    WireSequence wire;
    wire.channel = from.channel.bytes;
    wire.number = from.number;
    wire.done_below = from.done_below;
    wire.age_ms = from.age_ms;
    at = put(out, at, wire);
  }
  if (extensions.trace.is_set()) {
    header.extensions |= kExtensionTrace;
    at = put(out, at, WireTrace{extensions.trace.id.bytes, extensions.trace.span});
  }
  return at;
}

Result<Extensions> take_extensions(const Header& header, std::span<const std::byte>& metadata) {
  Extensions extensions;
  if ((header.extensions & kExtensionSequence) != 0) {
    const auto wire = take<WireSequence>(metadata);
    if (!wire) return Error(Errc::protocol_error, fmt::format("a sequence in {} bytes", metadata.size()));
    const Sequence sequence{{wire->channel}, wire->number, wire->done_below, wire->age_ms};
    // The last number has none behind it.
    if (sequence.channel.is_zero() || sequence.number == 0 || sequence.number == UINT64_MAX ||
        sequence.done_below > sequence.number) {
      return Error(Errc::protocol_error,
                   fmt::format("an impossible sequence: {}, all below {} done", sequence.number, sequence.done_below));
    }
    extensions.sequence = sequence;
  }
  if ((header.extensions & kExtensionTrace) != 0) {
    const auto wire = take<WireTrace>(metadata);
    if (!wire) return Error(Errc::protocol_error, fmt::format("a trace in {} bytes", metadata.size()));
    extensions.trace = {{wire->id}, wire->span};
  }
  return extensions;
}

}  // namespace cairn::srpc
