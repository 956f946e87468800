// The methods of a storage node, all of them, with their metadata. docs/srpc.md has the frame around it. Numbers and
// structures are on the wire: what must change gets a new number.
//
//   method        request: struct | tail           | data        reply: struct | tail   | data
//   chunk_write   ChunkWrite                       | payload     -
//   chunk_read    ChunkRead                                      -                      | payload
//   chunk_delete  ChunkDelete                                    -
//   chunk_list    ChunkList                                      Count                  | ids of 16 bytes
//   kv_get        KvGet          | key                           KvValue       | value  | or value
//   kv_scan       KvScan         | begin, end                    KvItems       | items  | or items
//   kv_batch      KvBatch        | frames          | or frames   -
//   lease_renew   LeaseRenew                                     -
//   lease_check   LeaseCheck     | ids of 16 bytes               LeaseMemory   | a byte for each id: 1 = held
//   group_status  GroupOnly                                      Status        | text of its health
//
// A value, items or frames of up to kSmallBytes stand in the tail, larger ones in the data (small_or_data.h). Errors
// with stale_epoch carry the newer cluster map in their data.
#pragma once

#include <string_view>

#include "base/endian.h"
#include "base/id.h"
#include "srpc/message.h"

namespace cairn::replica::methods {

// Of a key. Both ends of a scan's range fit one message's metadata.
inline constexpr size_t kMaxKeyBytes = 1'900;
inline constexpr size_t kSmallBytes = 3'500;
// Of a message's metadata together with its largest struct.
inline constexpr size_t kMaxTail = srpc::kMaxMetadata - 64;

struct ChunkWriteRequest {
  Le32 group;
  Id128 chunk;
  Le32 offset;
};
struct ChunkWrite {
  static constexpr srpc::MethodId kId{0x0101};
  static constexpr std::string_view kName = "chunk_write";
  using Request = ChunkWriteRequest;
  using Reply = srpc::None;
};

struct ChunkReadRequest {
  Le32 group;
  Id128 chunk;
  Le32 offset;
  Le32 length;
};
struct ChunkRead {
  static constexpr srpc::MethodId kId{0x0102};
  static constexpr std::string_view kName = "chunk_read";
  using Request = ChunkReadRequest;
  using Reply = srpc::None;
};

struct ChunkDeleteRequest {
  Le32 group;
  Id128 chunk;
};
struct ChunkDelete {
  static constexpr srpc::MethodId kId{0x0103};
  static constexpr std::string_view kName = "chunk_delete";
  using Request = ChunkDeleteRequest;
  using Reply = srpc::None;
};

struct ChunkListRequest {
  Le32 group;
  Id128 after;
  Le32 limit;
};
struct CountReply {
  Le32 count;
};
struct ChunkList {
  static constexpr srpc::MethodId kId{0x0104};
  static constexpr std::string_view kName = "chunk_list";
  using Request = ChunkListRequest;
  using Reply = CountReply;
};

struct GroupOnly {
  Le32 group;
};
struct KvValueReply {
  uint8_t found = 0;
  uint8_t reserved[3] = {};
  Le32 bytes;
};
struct KvGet {
  static constexpr srpc::MethodId kId{0x0201};
  static constexpr std::string_view kName = "kv_get";
  using Request = GroupOnly;
  using Reply = KvValueReply;
};

struct KvScanRequest {
  Le32 group;
  Le32 max_items;
  Le32 max_bytes;
  Le16 begin_bytes;  // of the tail; the rest is the end
  uint8_t keys_only = 0;
  uint8_t reserved = 0;
};
struct KvItemsReply {
  Le32 count;
  Le32 bytes;
  uint8_t more = 0;
  uint8_t reserved[3] = {};
};
struct KvScan {
  static constexpr srpc::MethodId kId{0x0202};
  static constexpr std::string_view kName = "kv_scan";
  using Request = KvScanRequest;
  using Reply = KvItemsReply;
};

struct KvBatchRequest {
  Le32 group;
  Le32 conditions;
  Le32 mutations;
  uint8_t purpose = 0;  // mem::Purpose: 0 client, 1 internal
  uint8_t reserved[3] = {};
};
struct KvBatch {
  static constexpr srpc::MethodId kId{0x0203};
  static constexpr std::string_view kName = "kv_batch";
  using Request = KvBatchRequest;
  using Reply = srpc::None;
};

struct LeaseRenewRequest {
  Le32 group;
  Id128 what;
  Le32 milliseconds;
};
struct LeaseRenew {
  static constexpr srpc::MethodId kId{0x0301};
  static constexpr std::string_view kName = "lease_renew";
  using Request = LeaseRenewRequest;
  using Reply = srpc::None;
};

struct LeaseMemoryReply {
  Le64 milliseconds;
};
struct LeaseCheck {
  static constexpr srpc::MethodId kId{0x0302};
  static constexpr std::string_view kName = "lease_check";
  static constexpr size_t kMaxIds = kMaxTail / sizeof(Id128);
  using Request = GroupOnly;
  using Reply = LeaseMemoryReply;
};

struct StatusReply {
  Le64 term;
  Le64 last_index;
  Le64 applied_index;
  Le16 health;  // Errc
  uint8_t leads = 0;
  uint8_t reserved[5] = {};
};
struct GroupStatusMethod {
  static constexpr srpc::MethodId kId{0x0401};
  static constexpr std::string_view kName = "group_status";
  using Request = GroupOnly;
  using Reply = StatusReply;
};

static_assert(sizeof(ChunkWriteRequest) == 24 && sizeof(ChunkReadRequest) == 28 && sizeof(ChunkDeleteRequest) == 20);
static_assert(sizeof(ChunkListRequest) == 24 && sizeof(CountReply) == 4 && sizeof(GroupOnly) == 4);
static_assert(sizeof(KvValueReply) == 8 && sizeof(KvScanRequest) == 16 && sizeof(KvItemsReply) == 12);
static_assert(sizeof(KvBatchRequest) == 16 && sizeof(LeaseRenewRequest) == 24 && sizeof(LeaseMemoryReply) == 8);
static_assert(sizeof(StatusReply) == 32);
static_assert(sizeof(KvScanRequest) + 2 * kMaxKeyBytes <= srpc::kMaxMetadata);
static_assert(kSmallBytes <= kMaxTail);

}  // namespace cairn::replica::methods
