#include "srpc/wire.h"

#include <fmt/format.h>

#include <cstring>

#include "base/assert.h"
#include "base/crc32c.h"

namespace cairn::srpc {
namespace {

// How a connection with TLS begins: a record with a handshake, of any version since SSL 3.
constexpr uint32_t kTlsMagic = 0x0316;

constexpr size_t kCrcOffset = offsetof(WireHeader, crc);
static_assert(kCrcOffset == kHeaderBytes - 4);

size_t metadata_limit(bool names_memory) { return kMaxMetadata + (names_memory ? kMaxMemoryBlock : 0); }

uint16_t flags_of(const Header& header) {
  unsigned flags = header.pad_shift | header.window_shift << 4 | header.extensions << 12;
  if (header.names_memory) flags |= kFlagNamesMemory;
  if (header.elsewhere) flags |= kFlagElsewhere;
  if (header.unchecked) flags |= kFlagUnchecked;
  return static_cast<uint16_t>(flags);
}

// The checksum of an encoded header, over everything in front of the checksum itself.
uint32_t header_crc(std::span<const std::byte> encoded) { return crc32c(encoded.first(kCrcOffset)); }

}  // namespace

void encode_header(const Header& header, std::span<std::byte> out) {
  ASSERT(out.size() >= kHeaderBytes);
  ASSERT(header.metadata_bytes <= metadata_limit(header.names_memory));
  ASSERT(header.data_bytes <= kMaxData);
  ASSERT(header.pad_shift <= kMaxWindowShift && header.window_shift <= kMaxWindowShift);
  WireHeader wire;
  wire.magic = kMagic;
  wire.version = header.version;
  wire.kind = static_cast<uint8_t>(header.kind);
  ASSERT((header.extensions & ~kExtensions) == 0);
  wire.flags = flags_of(header);
  wire.method = header.method.value;
  wire.status = header.status;
  wire.credits = header.credits;
  wire.metadata_bytes = header.metadata_bytes;
  wire.data_bytes = header.data_bytes;
  wire.time_us = header.time_us;
  wire.request_id = header.request_id;
  wire.map_epoch = header.map_epoch;
  wire.batch = header.batch;
  wire.crc = crc32c(&wire, kCrcOffset);
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(out.data(), &wire, sizeof wire);
}

void patch_batch(std::span<std::byte> encoded, uint32_t batch) {
  ASSERT(encoded.size() >= kHeaderBytes);
  const Le32 wire_batch = batch;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(encoded.data() + offsetof(WireHeader, batch), &wire_batch, sizeof wire_batch);
  const Le32 crc = header_crc(encoded);
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(encoded.data() + kCrcOffset, &crc, sizeof crc);
}

Result<Header> decode_header(std::span<const std::byte, kHeaderBytes> in, uint8_t highest_version) {
  WireHeader wire;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&wire, in.data(), sizeof wire);
  // Magic first: what comes from a client of another protocol should be called that, not a checksum error.
  if (wire.magic != kMagic) {
    if ((wire.magic & 0xffff) == kTlsMagic) {
      return Error(Errc::protocol_error, "not SRPC: the other side speaks TLS, this one doesn't");
    }
    return Error(Errc::protocol_error,
                 fmt::format("not SRPC: a message starts with {:08x} instead of {:08x}", wire.magic.get(), kMagic));
  }
  if (wire.crc != header_crc(in)) return Error(Errc::protocol_error, "the header's checksum is wrong");
  if (wire.version < kVersionMin || wire.version > highest_version) {
    return Error(Errc::unsupported,
                 fmt::format("SRPC version {} is not one of {} to {}", wire.version, kVersionMin, highest_version));
  }
  if (wire.kind < static_cast<uint8_t>(Kind::hello) || wire.kind > kLastKind) {
    return Error(Errc::protocol_error, fmt::format("unknown kind of message: {}", wire.kind));
  }
  const bool names_memory = (wire.flags & kFlagNamesMemory) != 0;
  if (const size_t limit = metadata_limit(names_memory); wire.metadata_bytes > limit) {
    return Error(Errc::too_large,
                 fmt::format("{} bytes of metadata, the limit is {}", wire.metadata_bytes.get(), limit));
  }
  if (wire.data_bytes > kMaxData) {
    return Error(Errc::too_large, fmt::format("{} bytes of data, the limit is {}", wire.data_bytes.get(), kMaxData));
  }
  const auto kind = static_cast<Kind>(wire.kind);
  if (wire.data_bytes > 0 && kind != Kind::request && kind != Kind::reply) {
    return Error(Errc::protocol_error, fmt::format("a message of kind {} carries data", wire.kind));
  }
  const auto pad_shift = static_cast<uint8_t>(wire.flags & 0xf);
  const auto window_shift = static_cast<uint8_t>(wire.flags >> 4 & 0xf);
  const bool elsewhere = (wire.flags & kFlagElsewhere) != 0;
  const bool unchecked = (wire.flags & kFlagUnchecked) != 0;
  const auto extensions = static_cast<uint8_t>(wire.flags >> 12);
  const uint8_t may_have = kind == Kind::request ? kExtensions : kind == Kind::notice ? kExtensionTrace : 0;
  if (pad_shift > kMaxWindowShift || window_shift > kMaxWindowShift || (wire.flags & 0x0f00 & ~kFlags) != 0 ||
      (names_memory && kind != Kind::request) || ((elsewhere || unchecked) && wire.data_bytes == 0) ||
      (extensions & ~may_have) != 0) {
    return Error(Errc::protocol_error, fmt::format("impossible flags: {:#06x}", wire.flags.get()));
  }
  Header header;
  header.version = wire.version;
  header.kind = kind;
  header.pad_shift = pad_shift;
  header.window_shift = window_shift;
  header.names_memory = names_memory;
  header.elsewhere = elsewhere;
  header.unchecked = unchecked;
  header.extensions = extensions;
  header.method = MethodId(wire.method);
  header.status = wire.status;
  header.credits = wire.credits;
  header.metadata_bytes = wire.metadata_bytes;
  header.data_bytes = wire.data_bytes;
  header.time_us = wire.time_us;
  header.request_id = wire.request_id;
  header.map_epoch = wire.map_epoch;
  header.batch = wire.batch;
  return header;
}

}  // namespace cairn::srpc
