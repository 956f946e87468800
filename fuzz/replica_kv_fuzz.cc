// What another process sends as a batch or as scanned items: nothing in it is trusted. What decodes must encode to
// bytes that decode to the same.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/assert.h"
#include "replica/kv_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 8) return 0;
  uint32_t conditions;
  uint32_t mutations;
  std::memcpy(&conditions, data, 4);
  std::memcpy(&mutations, data + 4, 4);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 8, size - 8);
  if (const auto batch = cairn::replica::decode_batch_frames(bytes, conditions, mutations)) {
    ASSERT(batch->conditions.size() == conditions);
    ASSERT(batch->mutations.size() == mutations);
    const auto again = cairn::replica::encode_batch_frames(*batch);
    ASSERT(again);
    ASSERT(again->size() == bytes.size());
    ASSERT(cairn::replica::decode_batch_frames(*again, conditions, mutations));
  }
  if (const auto items = cairn::replica::decode_items(bytes, conditions)) {
    ASSERT(cairn::replica::encode_items(*items) == bytes);
  }
  return 0;
}
