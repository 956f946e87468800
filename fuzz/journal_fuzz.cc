// Everything the engine reads from a disk: batches of the journal, superblocks, device headers, and the values it keeps
// in the store. The first byte says which; with its top bit set the rest gets a right magic and checksum, so that it
// gets past them. What a parser accepts must be within the format's limits and come back from the encoder as it was.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "engine/chunk_record.h"
#include "engine/device_header.h"
#include "engine/journal_format.h"
#include "engine/sealed_block.h"
#include "engine/superblock.h"
#include "engine/write_plan.h"

namespace {

using namespace cairn;
using namespace cairn::engine;

constexpr Lsn kLsn{uint64_t{1} << 30};
const JournalIdentity kIdentity{.device = {{7}}, .shard = 1};

void check_record(const Record& record) {
  ASSERT(record.body.size() <= kMaxBodyBytes);
  ASSERT(record.units.size() == record.plan.unit_count && record.units.size() <= kUnitsPerChunk);
  if (record.kind != EntryKind::chunk_write) {
    ASSERT(record.page_crcs.empty() && record.plan.inline_pages() == 0);
    return;
  }
  ASSERT(record.page_crcs.size() == pages_of(record.length));
  ASSERT(is_possible(record.plan, record.offset, record.length));
  ASSERT(uint64_t{record.offset} + record.length <= kChunkBytes);
}

void fuzz_batch(std::vector<std::byte> meta, bool seal_it) {
  meta.resize(round_up(std::max<size_t>(meta.size(), 1), kPageBytes));
  if (seal_it) {
    auto disk = load<BatchHeaderOnDisk>(meta);
    disk.magic = BatchHeaderOnDisk::kMagic;
    disk.version = BatchHeaderOnDisk::kVersion;
    disk.meta_bytes = static_cast<uint32_t>(meta.size());
    disk.batch_bytes = disk.meta_bytes + disk.batch_bytes % 256 * kPageBytes;
    disk.device = kIdentity.device;
    disk.shard = kIdentity.shard;
    disk.lsn = kLsn.value;
    disk.durable = disk.durable % (kLsn.value + 1);
    store(std::span(meta), disk);
    disk.crc = crc_without_field(meta, offsetof(BatchHeaderOnDisk, crc));
    store(std::span(meta), disk);
  }
  const auto header = parse_batch_header(meta, kIdentity, kLsn);
  if (!header) return;
  ASSERT(header->batch_bytes <= kMaxBatchBytes && header->meta_bytes <= header->batch_bytes);
  if (header->meta_bytes > meta.size()) return;
  const auto records = parse_batch(std::span(meta).first(header->meta_bytes), *header);
  if (!records) return;
  uint64_t bytes = 0;
  uint64_t pages = 0;
  for (const Record& record : *records) {
    check_record(record);
    bytes += encoded_bytes(record);
    pages += record.plan.inline_pages();
  }
  ASSERT(pages == header->payload_pages());
  // The encoder writes no more than what was read.
  ASSERT(meta_bytes_for(bytes) <= header->meta_bytes);
  std::vector<std::byte> again(header->meta_bytes);
  BatchEncoder encoder({std::span(again)});
  for (const Record& record : *records) encoder.add(record);
  encoder.seal(*header, kIdentity);
  const auto back = parse_batch(again, *header);
  ASSERT(back.has_value() && back->size() == records->size());
}

void fuzz_value(std::string value, bool seal_it) {
  if (seal_it && value.size() >= 8) {
    value[0] = 1;
    value[1] = 0;
    const auto bytes = std::as_bytes(std::span(value));
    const Le32 crc(crc_without_field(bytes, 4));
    value.replace(4, sizeof crc, reinterpret_cast<const char*>(&crc), sizeof crc);
  }
  (void)decode_mark(value);
  (void)decode_identity(value);
  const auto chunk = decode_chunk(value, 1000);
  if (!chunk) return;
  ASSERT(chunk->slots.size() <= kUnitsPerChunk && chunk->size <= kChunkBytes);
  const auto again = decode_chunk(encode_chunk(*chunk), 1000);
  ASSERT(again.has_value() && again->slots.size() == chunk->slots.size());
}

void fuzz_block(std::vector<std::byte> bytes, bool seal_it) {
  bytes.resize(kPageBytes);
  const std::span<std::byte, kPageBytes> block(bytes.data(), kPageBytes);
  const ShardExtent extent{
      .device = kIdentity.device, .shard = 1, .offset = kMiB, .length = 64 * kMiB, .journal_bytes = 16 * kMiB};
  if (seal_it) {
    auto header = load<DeviceHeader>(block);
    header.magic = DeviceHeader::kMagic;
    header.version = DeviceHeader::kVersion;
    seal(header);
    store(std::span(bytes), header);
  }
  if (classify(block) == HeaderKind::valid) {
    const auto geometry = geometry_of(load<DeviceHeader>(block), uint64_t{1} << 40);
    ASSERT(!geometry || geometry->end() <= uint64_t{1} << 40);
  }
  if (seal_it) {
    auto superblock = load<SuperblockOnDisk>(block);
    superblock.magic = SuperblockOnDisk::kMagic;
    superblock.version = SuperblockOnDisk::kVersion;
    superblock.device = extent.device;
    superblock.shard = extent.shard;
    superblock.shard_offset = extent.offset;
    superblock.shard_bytes = extent.length;
    superblock.journal_bytes = extent.journal_bytes;
    superblock.crc = crc_without_field(std::as_bytes(std::span(&superblock, 1)), offsetof(SuperblockOnDisk, crc));
    store(std::span(bytes), superblock);
  }
  const auto superblock = decode(block, extent);
  if (superblock) {
    ASSERT(superblock->tail.value % kPageBytes == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool seal_it = (data[0] & 0x80) != 0;
  const auto rest = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 4) {
    case 0:
    case 1:
      fuzz_batch({rest.begin(), rest.end()}, seal_it);
      break;
    case 2:
      fuzz_value({reinterpret_cast<const char*>(rest.data()), rest.size()}, seal_it);
      break;
    case 3:
      fuzz_block({rest.begin(), rest.end()}, seal_it);
      break;
  }
  return 0;
}
