// The bytes of a batch and of scanned items in a message.
//
//   batch   conditions times: 12 bytes ConditionFrame, key, value
//           mutations times:  12 bytes MutationFrame, key, value
//   items   count times:       8 bytes ItemFrame, key, value
//
// Little-endian, no padding. What comes from the other side is checked against what is there: no length, count or kind
// is taken on trust. The message's own checksum covers it.
#pragma once

#include <string>
#include <string_view>

#include "base/endian.h"
#include "base/status.h"
#include "kv/kv_machine.h"
#include "kv/ordered_store.h"

namespace cairn::replica {

struct ConditionFrame {
  Le16 kind;  // kv::Condition::Kind
  Le16 key_bytes;
  Le32 value_bytes;  // zero unless `equals`
  Le32 reserved;
};
static_assert(sizeof(ConditionFrame) == 12);

struct MutationFrame {
  static constexpr uint16_t kPut = 1;
  static constexpr uint16_t kDelete = 2;
  Le16 kind;
  Le16 key_bytes;
  Le32 value_bytes;  // zero for a delete
  Le32 reserved;
};
static_assert(sizeof(MutationFrame) == 12);

struct ItemFrame {
  Le32 key_bytes;
  Le32 value_bytes;
};
static_assert(sizeof(ItemFrame) == 8);

// Errors: too_large (a key over methods::kMaxKeyBytes).
Result<std::string> encode_batch_frames(const kv::Batch& batch);
// Errors: invalid_argument.
Result<kv::Batch> decode_batch_frames(std::string_view bytes, uint32_t conditions, uint32_t mutations);

std::string encode_items(const kv::ScanResult& result);
// Without `more`. Errors: protocol_error.
Result<kv::ScanResult> decode_items(std::string_view bytes, uint32_t count);

}  // namespace cairn::replica
