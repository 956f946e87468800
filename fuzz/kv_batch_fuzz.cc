// Whatever decodes encodes to the same bytes; nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/crc32c.h"
#include "kv/batch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::kv;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  // Mostly the fuzzer's own bytes; with the last byte odd, under a right checksum, so that it gets past it.
  if (bytes.size() >= sizeof(BatchHeader) && (data[size - 1] & 1) != 0) {
    BatchHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.magic = BatchHeader::kMagic;
    header.version = BatchHeader::kVersion;
    header.bytes = static_cast<uint32_t>(bytes.size());
    header.crc = 0u;
    header.crc = cairn::crc32c(bytes.data() + sizeof header, bytes.size() - sizeof header,
                               cairn::crc32c(&header, sizeof header));
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  const auto mutations = decode_batch(bytes);
  if (!mutations) return 0;
  const auto again = encode_batch(*mutations);
  ASSERT(again.has_value());
  ASSERT(*again == bytes);
  return 0;
}
