// Message: what a typed method takes and gives: a fixed struct, an optional short tail, and payload.
//
// A method is a type that both sides include:
//
//   struct ChunkWriteRequest { std::array<uint8_t, 16> chunk; Le32 offset; };
//   struct ChunkWriteReply { Le32 size; };
//   struct ChunkWrite {
//     static constexpr srpc::MethodId kId{0x0101};
//     static constexpr std::string_view kName = "chunk_write";   // label of its metrics
//     using Request = ChunkWriteRequest;
//     using Reply = ChunkWriteReply;
//   };
//
// A method that may be executed twice without harm says `static constexpr bool kIdempotent = true;` and is then sent
// again when the connection is lost on which it was sent.
//
// A method that may not, and must all the same survive a lost connection, says `static constexpr bool kSequenced =
// true;`: its calls carry (channel, number), are sent again, too, and the server executes each once and gives the same
// answer again (sequence_table.h). That holds for one life of the server; a call that a server which has ended since
// may have executed fails with Errc::closed, as others do. With an older server they are calls like any other.
//
// Request and Reply have alignment 1 and no padding (base/endian.h), so that their bytes are their meaning. A method
// with nothing to say uses srpc::None. A struct that must change gets a new method id: a longer one would swallow the
// tail.
#pragma once

#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "mem/buf_chain.h"
#include "srpc/wire.h"

namespace cairn::srpc {

struct None {};

template <typename T>
concept Metadata = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && alignof(T) == 1 &&
                   sizeof(T) <= kMaxMetadata;

template <typename M>
concept Method = Metadata<typename M::Request> && Metadata<typename M::Reply> && requires {
  { M::kId } -> std::convertible_to<MethodId>;
  { M::kName } -> std::convertible_to<std::string_view>;
};

template <Method M>
inline constexpr bool is_idempotent = [] {
  if constexpr (requires { M::kIdempotent; }) return bool{M::kIdempotent};
  return false;
}();

template <Method M>
inline constexpr bool is_sequenced = [] {
  if constexpr (requires { M::kSequenced; }) {
    static_assert(!(M::kSequenced && is_idempotent<M>), "what may be executed twice needs no sequence");
    return bool{M::kSequenced};
  }
  return false;
}();

template <Metadata T>
inline constexpr size_t kMetadataBytes = std::is_empty_v<T> ? 0 : sizeof(T);

template <Metadata T>
struct Message {
  T meta{};
  // Bytes of variable length, such as a key: up to kMaxMetadata - sizeof(T). More belongs into data.
  std::string tail = {};
  // Up to 16 MiB. Slices of a received message are 4 KiB-aligned and full blocks but for the last.
  mem::BufChain data = {};

  size_t metadata_bytes() const { return kMetadataBytes<T> + tail.size(); }
  // `out` has metadata_bytes().
  void encode_metadata(std::span<std::byte> out) const {
    // cairn-allow(memcpy): framing or metadata, never payload
    if constexpr (kMetadataBytes<T> != 0) std::memcpy(out.data(), &meta, sizeof meta);
    // cairn-allow(memcpy): framing or metadata, never payload
    if (!tail.empty()) std::memcpy(out.data() + kMetadataBytes<T>, tail.data(), tail.size());
  }
  // False when `in` is shorter than the struct.
  [[nodiscard]] bool decode_metadata(std::span<const std::byte> in) {
    if (in.size() < kMetadataBytes<T>) return false;
    // cairn-allow(memcpy): framing or metadata, never payload
    if constexpr (kMetadataBytes<T> != 0) std::memcpy(&meta, in.data(), sizeof meta);
    const auto rest = in.subspan(kMetadataBytes<T>);
    if (!rest.empty()) tail.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
    return true;
  }
};

}  // namespace cairn::srpc
