// The bytes of a batch in a group's log: what KvMachine puts into an entry's body and applies from it.
//
// The log holds only unconditional batches. Conditions are looked at by the leader before it proposes, under latches
// (latches.h), so that applying is the same everywhere and can't fail half-way.
//
//   0        24 bytes BatchHeader
//   24       count times: 12 bytes MutationHeader, key bytes, value bytes
//
// Little-endian, without padding between mutations. The CRC32C covers the whole encoding with the field `crc` as zero.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/endian.h"
#include "base/status.h"
#include "kv/ordered_store.h"

namespace cairn::kv {

// An entry's body is at most this long.
inline constexpr size_t kMaxBatchBytes = size_t{1} << 20;
inline constexpr size_t kMaxKeyBytes = size_t{64} << 10;

struct BatchHeader {
  static constexpr uint32_t kMagic = 0x4256'4b43;  // "CKVB"
  static constexpr uint16_t kVersion = 1;

  Le32 magic;
  Le16 version;
  Le16 reserved;  // zero
  Le32 count;     // mutations
  Le32 bytes;     // of the whole encoding
  Le32 reserved2;
  Le32 crc;
};
static_assert(sizeof(BatchHeader) == 24);

struct MutationHeader {
  static constexpr uint32_t kPut = 1;
  static constexpr uint32_t kDelete = 2;

  Le32 kind;
  Le32 key_bytes;
  Le32 value_bytes;  // zero for a delete
};
static_assert(sizeof(MutationHeader) == 12);

// Errors: too_large, with what is too large.
Result<std::string> encode_batch(std::span<const Mutation> mutations);
// Errors: corrupt (wrong checksum, or bytes that encode_batch never makes), unsupported (a newer version).
Result<std::vector<Mutation>> decode_batch(std::string_view bytes);

}  // namespace cairn::kv
