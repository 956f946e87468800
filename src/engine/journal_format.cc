#include "engine/journal_format.h"

#include <algorithm>
#include <cstring>

#include "engine/sealed_block.h"

namespace cairn::engine {
namespace {

bool is_kind(uint8_t kind) {
  return kind >= static_cast<uint8_t>(EntryKind::noop) && kind <= static_cast<uint8_t>(EntryKind::kv_batch);
}

// Reads little-endian words one after the other; the caller has checked that they are there.
class WordReader {
 public:
  explicit WordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint32_t next() {
    const uint32_t word = load<Le32>(bytes_);
    bytes_ = bytes_.subspan(sizeof(Le32));
    return word;
  }

 private:
  std::span<const std::byte> bytes_;
};

// What a record of this kind must look like; `pages` is how many CRCs it carries.
Result<uint32_t> check_fields(const RecordOnDisk& disk) {
  const bool has_chunk = disk.kind == static_cast<uint8_t>(EntryKind::chunk_write) ||
                         disk.kind == static_cast<uint8_t>(EntryKind::chunk_delete) ||
                         disk.kind == static_cast<uint8_t>(EntryKind::chunk_discard);
  const bool is_write = disk.kind == static_cast<uint8_t>(EntryKind::chunk_write);
  const WritePlan plan{.head_pages = disk.head_pages, .unit_count = disk.unit_count, .tail_pages = disk.tail_pages};
  if (!is_kind(disk.kind) || disk.index == 0) return Errc::corrupt;
  if (has_chunk == disk.chunk.is_zero()) return Errc::corrupt;
  if (disk.kind != static_cast<uint8_t>(EntryKind::kv_batch) && disk.body_bytes != 0) return Errc::corrupt;
  if (disk.body_bytes > kMaxBodyBytes) return Errc::corrupt;
  if (!is_write) {
    if (!(plan == WritePlan{})) return Errc::corrupt;
    const bool discard = disk.kind == static_cast<uint8_t>(EntryKind::chunk_discard);
    const bool range_ok = disk.offset % kPageBytes == 0 && disk.length % kPageBytes == 0 &&
                          disk.length <= kChunkBytes && disk.offset <= kChunkBytes - disk.length;
    if (discard ? !range_ok : (disk.offset != 0 || disk.length != 0)) return Errc::corrupt;
    return 0;
  }
  if (!is_possible(plan, disk.offset, disk.length)) return Errc::corrupt;
  return pages_of(disk.length);
}

Result<Record> parse_record(std::span<const std::byte> bytes) {
  const auto disk = load<RecordOnDisk>(bytes);
  TRY(const uint32_t pages, check_fields(disk));
  const uint64_t expected = sizeof(RecordOnDisk) + (uint64_t{disk.unit_count} + pages) * sizeof(Le32) + disk.body_bytes;
  if (disk.record_bytes != expected || expected != bytes.size()) return Errc::corrupt;

  Record record;
  record.group = GroupId(disk.group);
  record.term = Term(disk.term);
  record.index = Index(disk.index);
  record.kind = static_cast<EntryKind>(disk.kind);
  record.chunk = disk.chunk;
  record.offset = disk.offset;
  record.length = disk.length;
  record.plan = {.head_pages = disk.head_pages, .unit_count = disk.unit_count, .tail_pages = disk.tail_pages};
  WordReader words(bytes.subspan(sizeof(RecordOnDisk)));
  record.units.reserve(disk.unit_count);
  for (uint32_t i = 0; i < disk.unit_count; ++i) record.units.emplace_back(words.next());
  record.page_crcs.reserve(pages);
  for (uint32_t i = 0; i < pages; ++i) record.page_crcs.push_back(words.next());
  const auto body = bytes.last(disk.body_bytes);
  record.body.assign(reinterpret_cast<const char*>(body.data()), body.size());
  return record;
}

}  // namespace

uint32_t encoded_bytes(const Record& record) {
  return static_cast<uint32_t>(sizeof(RecordOnDisk) + (record.units.size() + record.page_crcs.size()) * sizeof(Le32) +
                               record.body.size());
}

BatchEncoder::BatchEncoder(Pieces pieces) : pieces_(std::move(pieces)) {
  for (const auto piece : pieces_) size_ += piece.size();
  ASSERT(size_ % kPageBytes == 0 && !pieces_.empty() && pieces_.front().size() >= kPageBytes);
  at_ = put_ = sizeof(BatchHeaderOnDisk);
}

void BatchEncoder::put(std::span<const std::byte> bytes) {
  ASSERT(bytes.size() <= size_ - put_);
  put_ += bytes.size();
  while (!bytes.empty()) {
    const auto room = pieces_[piece_].subspan(at_);
    const size_t n = std::min(room.size(), bytes.size());
    // cairn-allow(memcpy): metadata and key-value batches; payload travels in BufChains
    std::memcpy(room.data(), bytes.data(), n);
    bytes = bytes.subspan(n);
    at_ += n;
    if (n == room.size() && piece_ + 1 < pieces_.size()) {
      ++piece_;
      at_ = 0;
    }
  }
}

void BatchEncoder::add(const Record& record) {
  ASSERT(record.units.size() == record.plan.unit_count);
  ASSERT(record.kind != EntryKind::chunk_write || record.page_crcs.size() == pages_of(record.length));
  RecordOnDisk disk{};
  disk.record_bytes = encoded_bytes(record);
  disk.kind = static_cast<uint8_t>(record.kind);
  disk.head_pages = static_cast<uint8_t>(record.plan.head_pages);
  disk.tail_pages = static_cast<uint8_t>(record.plan.tail_pages);
  disk.unit_count = static_cast<uint8_t>(record.plan.unit_count);
  disk.group = record.group.value;
  disk.term = record.term.value;
  disk.index = record.index.value;
  disk.chunk = record.chunk;
  disk.offset = record.offset;
  disk.length = record.length;
  disk.body_bytes = static_cast<uint32_t>(record.body.size());
  put(std::as_bytes(std::span(&disk, 1)));
  // In memory the arrays are as on disk: little-endian words (endian.h refuses other hosts).
  static_assert(sizeof(Unit) == sizeof(Le32));
  put(std::as_bytes(std::span(record.units)));
  put(std::as_bytes(std::span(record.page_crcs)));
  put(std::as_bytes(std::span(record.body)));
  ++records_;
}

void BatchEncoder::seal(const BatchHeader& header, const JournalIdentity& identity) {
  ASSERT(header.record_count == records_ && header.meta_bytes == size_);
  ASSERT(header.batch_bytes >= header.meta_bytes && header.batch_bytes <= kMaxBatchBytes);
  ASSERT(header.batch_bytes % kPageBytes == 0 && header.lsn.value % kPageBytes == 0);
  ASSERT(header.durable <= header.lsn);
  for (; piece_ < pieces_.size(); ++piece_, at_ = 0) {
    const auto rest = pieces_[piece_].subspan(at_);
    std::memset(rest.data(), 0, rest.size());
  }
  BatchHeaderOnDisk disk{};
  disk.magic = BatchHeaderOnDisk::kMagic;
  disk.version = BatchHeaderOnDisk::kVersion;
  disk.record_count = static_cast<uint16_t>(header.record_count);
  disk.meta_bytes = header.meta_bytes;
  disk.batch_bytes = header.batch_bytes;
  disk.shard = identity.shard;
  disk.lsn = header.lsn.value;
  disk.epoch = header.epoch;
  disk.durable = header.durable.value;
  disk.device = identity.device;
  store(pieces_.front(), disk);
  uint32_t crc = 0;
  for (const auto piece : pieces_) crc = crc32c(piece, crc);
  disk.crc = crc;
  store(pieces_.front(), disk);
}

Result<BatchHeader> parse_batch_header(std::span<const std::byte> page, const JournalIdentity& identity, Lsn lsn) {
  if (page.size() < sizeof(BatchHeaderOnDisk)) return Errc::not_found;
  const auto disk = load<BatchHeaderOnDisk>(page);
  if (disk.magic != BatchHeaderOnDisk::kMagic || disk.device != identity.device || disk.shard != identity.shard ||
      disk.lsn != lsn.value) {
    return Errc::not_found;
  }
  const BatchHeader header{.lsn = lsn,
                           .epoch = disk.epoch,
                           .durable = Lsn(disk.durable),
                           .meta_bytes = disk.meta_bytes,
                           .batch_bytes = disk.batch_bytes,
                           .record_count = disk.record_count};
  if (header.meta_bytes % kPageBytes != 0 || header.batch_bytes % kPageBytes != 0 || header.meta_bytes == 0 ||
      header.meta_bytes > header.batch_bytes || header.batch_bytes > kMaxBatchBytes || header.durable > lsn ||
      header.record_count > kMaxBatchRecords) {
    return Errc::not_found;
  }
  return header;
}

Result<std::vector<Record>> parse_batch(std::span<const std::byte> meta, const BatchHeader& header) {
  if (meta.size() != header.meta_bytes || meta.size() < sizeof(BatchHeaderOnDisk)) return Errc::corrupt;
  const auto disk = load<BatchHeaderOnDisk>(meta);
  if (disk.crc != crc_without_field(meta, offsetof(BatchHeaderOnDisk, crc))) return Errc::corrupt;
  if (disk.version > BatchHeaderOnDisk::kVersion) return Errc::unsupported;
  // From here on the bytes are what was written, so what is odd below was written so: still no reason to trust it.
  std::vector<Record> records;
  records.reserve(std::min<uint64_t>(header.record_count, meta.size() / sizeof(RecordOnDisk)));
  size_t at = sizeof(BatchHeaderOnDisk);
  uint64_t inline_pages = 0;
  for (uint32_t i = 0; i < header.record_count; ++i) {
    if (meta.size() - at < sizeof(RecordOnDisk)) return Errc::corrupt;
    const uint32_t size = load<Le32>(meta.subspan(at));
    if (size < sizeof(RecordOnDisk) || size > meta.size() - at) return Errc::corrupt;
    TRY(auto record, parse_record(meta.subspan(at, size)));
    inline_pages += record.plan.inline_pages();
    records.push_back(std::move(record));
    at += size;
  }
  if (inline_pages != header.payload_pages()) return Errc::corrupt;
  return records;
}

}  // namespace cairn::engine
