// The bytes of SRPC. docs/srpc.md shows them one by one.
//
//   message:  header 48 | metadata | CRC32C of metadata 4 | CRC32C per 4 KiB of data 4 x n | padding | data
//
// The metadata CRC is there when there is metadata, the table when there is data. Padding (zeroes) is there for bulk
// messages (>= 4 KiB of data) only, and puts their data at least 256 << pad_shift bytes behind the message's start.
//
// That is how a receiver can read ahead and still never read payload that belongs into a page-aligned buffer of its
// own: whatever comes next, its first 256 bytes are no such payload. Two promises of the sender widen this window:
// `batch` tells how many bytes of messages that aren't bulk follow directly, and `window_shift` that the next bulk
// message is padded to at least 256 << window_shift. A sender that hasn't sent bulk for a while promises 4 KiB, and
// pays for it with one padded message when it does.
//
// Where the server can reach its client's memory (stream/one_sided.h) data may be left out of the stream: a request
// then says where the data lies, and where the reply's data may go, in a memory block at the end of its metadata.
//
// Nothing here is trusted: decode_header checks everything that a length or an index is derived from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/endian.h"
#include "base/id.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/strong.h"

namespace cairn::srpc {

using MethodId = Strong<uint16_t, struct MethodTag>;

inline constexpr uint32_t kMagic = 0x43505253;  // "SRPC" in the order of the bytes
inline constexpr uint8_t kVersionMin = 1;
inline constexpr uint8_t kVersionMax = 1;

inline constexpr size_t kHeaderBytes = 48;
inline constexpr size_t kMaxMetadata = 4096;
inline constexpr size_t kMaxData = size_t{16} << 20;
inline constexpr size_t kCrcPage = 4096;  // one CRC32C for each of these in the data
inline constexpr size_t kBulkBytes = 4096;
inline constexpr size_t kWindow = 256;
inline constexpr uint8_t kMaxWindowShift = 4;
// A memory block: 16 bytes for each piece, those of the data before those for the reply, and how many there are.
inline constexpr size_t kMaxPieces = 64;
inline constexpr size_t kMaxMemoryBlock = 16 * kMaxPieces + 4;
// Everything in front of the data, at its largest.
inline constexpr size_t kMaxPrefix = kHeaderBytes + kMaxMetadata + kMaxMemoryBlock + 4 + 4 * (kMaxData / kCrcPage);

enum class Kind : uint8_t {
  hello = 1,        // client's first message: HelloBody
  hello_reply = 2,  // server's first message: HelloReplyBody, or a status with a text
  request = 3,
  reply = 4,   // metadata is the method's reply, or the text when status != ok
  cancel = 5,  // the client no longer wants request_id; it is still answered
  credit = 6,  // nothing but credits
  ping = 7,    // answered by pong with the same request_id
  pong = 8,
  goodbye = 9,  // status = CloseReason, metadata = text; no request follows from its sender, replies may
  // Between hello and hello reply, if the sides have a key (handshake.h):
  challenge = 10,  // from the server: ChallengeBody
  proof = 11,      // from the client: ProofBody
  notice = 12,  // client's, with kFeatureNotices: a request without an answer; its credit comes back when it was served
  push = 13,    // server's, with kFeaturePush: one that the client isn't asked to answer
  // With kFeatureRdma, from transport to transport, never seen above it (rdma/upgrading_stream.h):
  upgrade_offer = 14,   // client's: rdma::QpAddress
  upgrade_answer = 15,  // server's: rdma::QpAddress, or a status and a text
  upgrade_switch = 16,  // either's: the last message on TCP; client's with a status and a text: the upgrade is given up
};
inline constexpr uint8_t kLastKind = 16;

// What stands in front of a request's metadata, in this order (extensions.h). Counted in metadata_bytes.
enum Extension : uint8_t {
  kExtensionSequence = 1,  // requests, with kFeatureSequences
  kExtensionTrace = 2,     // requests and notices, with kFeatureTrace
  kExtensions = kExtensionSequence | kExtensionTrace,
};

// The header in host order. Fields that a kind doesn't use are zero.
struct Header {
  uint8_t version = kVersionMax;
  Kind kind = Kind::request;
  MethodId method = {};
  uint16_t status = 0;  // Errc of a reply, CloseReason of a goodbye
  uint16_t credits = 0;
  uint16_t metadata_bytes = 0;
  uint32_t data_bytes = 0;
  uint32_t time_us = 0;  // request: what is left until its deadline, 0 = none; reply with status busy: come back after
  uint64_t request_id = 0;
  uint64_t map_epoch = 0;  // of the sender's cluster map, 0 = none
  uint32_t batch = 0;
  // In the low and high half of the low byte of `flags` on the wire.
  uint8_t pad_shift = 0;
  uint8_t window_shift = 0;
  bool names_memory = false;  // request: a memory block ends the metadata
  bool elsewhere = false;     // the data isn't in the stream: the server moves it
  bool unchecked = false;     // the data has no checksums
  uint8_t extensions = 0;     // bits 12 to 15 of `flags`: what stands in front of the metadata (extensions.h)

  bool is_bulk() const { return data_bytes >= kBulkBytes && !elsewhere; }
  size_t crc_count() const { return unchecked ? 0 : (data_bytes + kCrcPage - 1) / kCrcPage; }
  size_t stream_bytes() const { return elsewhere ? 0 : data_bytes; }  // of the data
  // Where the data starts, counted from the header's first byte.
  size_t prefix_bytes() const {
    const size_t used = kHeaderBytes + (metadata_bytes == 0 ? 0 : metadata_bytes + 4) + 4 * crc_count();
    const size_t padded = kWindow << pad_shift;
    return is_bulk() && used < padded ? padded : used;
  }
  size_t message_bytes() const { return prefix_bytes() + stream_bytes(); }
};

// Bits of `flags` above the two shifts.
enum Flag : uint16_t {
  kFlagNamesMemory = 1 << 8,
  kFlagElsewhere = 1 << 9,
  kFlagUnchecked = 1 << 10,
  kFlags = kFlagNamesMemory | kFlagElsewhere | kFlagUnchecked,
};

// What a memory block ends with.
struct MemoryCounts {
  uint8_t data = 0;
  uint8_t reply = 0;
  Le16 reserved;
};
static_assert(sizeof(MemoryCounts) == 4 && alignof(MemoryCounts) == 1);

struct WireHeader {
  Le32 magic;
  uint8_t version = 0;
  uint8_t kind = 0;
  Le16 flags;
  Le16 method;
  Le16 status;
  Le16 credits;
  Le16 metadata_bytes;
  Le32 data_bytes;
  Le32 time_us;
  Le64 request_id;
  Le64 map_epoch;
  Le32 batch;
  Le32 crc;  // CRC32C of the 44 bytes before
};
static_assert(sizeof(WireHeader) == kHeaderBytes && alignof(WireHeader) == 1);

// Writes the header with its CRC. `out` holds at least kHeaderBytes.
void encode_header(const Header& header, std::span<std::byte> out);
// Sets `batch` of an encoded header and renews its CRC.
void patch_batch(std::span<std::byte> encoded, uint32_t batch);
// protocol_error (not our magic, bad CRC, unknown kind), unsupported (version) or too_large (lengths).
Result<Header> decode_header(std::span<const std::byte, kHeaderBytes> in, uint8_t highest_version = kVersionMax);

// Features of a connection, agreed at connect: those that both sides name.
enum Feature : uint64_t {
  kFeatureNone = 0,
  kFeatureNotices = 1,
  kFeaturePush = 2,
  kFeatureRdma = 4,       // a transport's, which adds it by itself: Endpoint::features()
  kFeatureSequences = 8,  // calls with a sequence are executed once, also when they are repeated (extensions.h)
  kFeatureTrace = 16,     // requests and notices may name a trace
  kFeatures = kFeatureNotices | kFeaturePush | kFeatureSequences | kFeatureTrace,  // of this build
};

// What one side speaks. There to be changed by tests, which let a newer version talk with an older one; and by nobody
// else, because a version is more than its number.
struct Protocol {
  uint8_t version_min = kVersionMin;
  uint8_t version_max = kVersionMax;
  uint64_t features = kFeatures;
};

inline constexpr uint16_t kAnyPollGroup = 0xffff;

using Nonce = std::array<uint8_t, 32>;

enum class Auth : uint8_t {
  none = 0,         // the sender has no key, and talks to those who have none
  hmac_sha256 = 1,  // handshake.h
};

// What the client says first. The layout is frozen in its first 8 bytes; newer versions append. Without a key it ends
// before `auth`.
struct HelloBody {
  uint8_t version_min = 0;
  uint8_t version_max = 0;
  Le16 poll_group;    // the one wanted, or kAnyPollGroup
  Le32 keepalive_ms;  // the client sends something at least this often
  Le64 features;
  std::array<uint8_t, 16> client_id{};
  Le32 max_data;  // largest payload the client takes in a reply
  Le16 max_metadata;
  Le16 reserved;
  uint8_t auth = 0;  // Auth
  std::array<uint8_t, 7> reserved1{};
  Nonce nonce{};  // used for this hello only
};
inline constexpr size_t kOpenHelloBytes = 40;
static_assert(offsetof(HelloBody, auth) == kOpenHelloBytes && sizeof(HelloBody) == 80 && alignof(HelloBody) == 1);

struct ChallengeBody {
  Nonce nonce{};  // used for this challenge only
};
static_assert(sizeof(ChallengeBody) == 32 && alignof(ChallengeBody) == 1);

struct ProofBody {
  Sha256 proof{};
};
static_assert(sizeof(ProofBody) == 32 && alignof(ProofBody) == 1);

// Without a key it ends before `proof`.
struct HelloReplyBody {
  uint8_t version = 0;
  uint8_t reserved0 = 0;
  Le16 poll_groups;  // how many the server has
  Le16 poll_group;   // the one that serves this connection
  Le16 credits;      // messages the client may send before credits come back
  Le64 features;
  Le64 byte_credits;  // payload of unanswered requests at any time
  std::array<uint8_t, 16> server_id{};
  Le32 max_calls;  // unanswered requests at any time
  Le32 max_data;
  Le16 max_metadata;
  Le16 reserved1;
  Le32 idle_timeout_ms;  // the server closes after this long without a byte
  Sha256 proof{};
};
inline constexpr size_t kOpenHelloReplyBytes = 56;
static_assert(offsetof(HelloReplyBody, proof) == kOpenHelloReplyBytes && sizeof(HelloReplyBody) == 88 &&
              alignof(HelloReplyBody) == 1);

}  // namespace cairn::srpc
