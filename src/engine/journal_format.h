// The journal's batch: what one commit writes to the ring.
//
//   lsn                     + meta_bytes                         + batch_bytes
//   | header | records ... 0 | inline payload, whole pages ...    |            all parts multiples of 4 KiB
//
// The header's CRC covers everything up to the payload; each payload page has its CRC in its record. Positions (Lsn)
// count bytes from the shard's beginning and never repeat for anything acknowledged; a batch lies at lsn modulo the
// ring's size and may wrap around its end.
//
// parse_batch() is handed whatever the device returned and takes no length on trust (fuzz/journal_fuzz.cc).
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/endian.h"
#include "base/id.h"
#include "base/status.h"
#include "engine/geometry.h"
#include "engine/types.h"
#include "engine/write_plan.h"

namespace cairn::engine {

struct BatchHeaderOnDisk {
  static constexpr std::array<char, 4> kMagic = {'C', 'J', 'B', '1'};
  static constexpr uint16_t kVersion = 1;

  // Magic, version, CRC and meta_bytes stay where they are in all versions.
  std::array<char, 4> magic;
  Le16 version;
  Le16 record_count;
  Le32 crc;  // of meta_bytes bytes, this field as zero
  Le32 meta_bytes;
  Le32 batch_bytes;
  Le32 shard;
  Le64 lsn;
  Le64 epoch;
  Le64 durable;  // the journal below this was durable when the batch was written
  Id128 device;
};
static_assert(sizeof(BatchHeaderOnDisk) == 64);
static_assert(offsetof(BatchHeaderOnDisk, crc) == 8 && offsetof(BatchHeaderOnDisk, lsn) == 24);

// Followed by Le32 units[unit_count], Le32 page_crcs[pages of length], body[body_bytes].
struct RecordOnDisk {
  Le32 record_bytes;  // with what follows
  uint8_t kind;
  uint8_t head_pages;  // inline pages before the units
  uint8_t tail_pages;  // inline pages behind them
  uint8_t unit_count;
  Le32 group;
  Le32 reserved;
  Le64 term;
  Le64 index;
  Id128 chunk;
  Le32 offset;
  Le32 length;
  Le32 body_bytes;
  Le32 reserved2;
};
static_assert(sizeof(RecordOnDisk) == 64);
static_assert(offsetof(RecordOnDisk, chunk) == 32 && offsetof(RecordOnDisk, offset) == 48);

inline constexpr uint32_t kMaxBodyBytes = 1 << 20;
inline constexpr uint32_t kMaxRecordBytes =
    sizeof(RecordOnDisk) + (kUnitsPerChunk + kPagesPerChunk) * sizeof(Le32) + kMaxBodyBytes;
// A batch is closed when the next record would take it beyond kBatchGoalBytes, so one record of the largest kind still
// fits into kMaxBatchBytes.
inline constexpr uint32_t kBatchGoalBytes = 1 << 20;
inline constexpr uint32_t kMaxBatchBytes = 4 << 20;
inline constexpr uint32_t kMaxBatchRecords = 4096;
static_assert(kMaxBatchBytes <= kMinJournalBytes / 4);
static_assert(kMaxRecordBytes + 2 * kUnitBytes + 2 * kPageBytes + kBatchGoalBytes <= kMaxBatchBytes);

// One entry's description, payload apart.
struct Record {
  GroupId group;
  Term term;
  Index index;
  EntryKind kind = EntryKind::noop;
  ChunkId chunk;
  uint32_t offset = 0;
  uint32_t length = 0;
  WritePlan plan;                   // chunk_write
  std::vector<Unit> units;          // plan.units of them
  std::vector<uint32_t> page_crcs;  // of all pages of the write, in order
  std::string body;                 // kv_batch
};

uint32_t encoded_bytes(const Record& record);

// Which journal a batch belongs to.
struct JournalIdentity {
  Id128 device;
  uint32_t shard = 0;
};

struct BatchHeader {
  Lsn lsn{};
  uint64_t epoch = 0;
  Lsn durable{};
  uint32_t meta_bytes = 0;
  uint32_t batch_bytes = 0;
  uint32_t record_count = 0;

  Lsn end() const { return lsn + batch_bytes; }
  uint32_t payload_pages() const { return (batch_bytes - meta_bytes) / kPageBytes; }
};

// Encodes into `pieces`, memory of exactly meta_bytes altogether, the first piece at least a page: add() each record,
// then seal().
class BatchEncoder {
 public:
  using Pieces = boost::container::small_vector<std::span<std::byte>, 2>;
  explicit BatchEncoder(Pieces pieces);
  void add(const Record& record);
  // `header.record_count` must be the number of add()s.
  void seal(const BatchHeader& header, const JournalIdentity& identity);

 private:
  void put(std::span<const std::byte> bytes);

  Pieces pieces_;
  size_t piece_ = 0;  // where the next byte goes
  size_t at_ = 0;
  uint64_t size_ = 0;
  uint64_t put_ = 0;
  uint32_t records_ = 0;
};
// Of a batch with records that encode to `record_bytes` altogether.
constexpr uint32_t meta_bytes_for(uint64_t record_bytes) {
  return static_cast<uint32_t>(round_up(sizeof(BatchHeaderOnDisk) + record_bytes, kPageBytes));
}

// The first page of a batch: is it the header of a batch of this journal at `lsn`, and of plausible sizes? Version and
// CRC aren't checked: that needs the whole meta part. not_found: it is something else.
Result<BatchHeader> parse_batch_header(std::span<const std::byte> page, const JournalIdentity& identity, Lsn lsn);
// `meta` is header.meta_bytes long. Errors: corrupt, unsupported (whole, and of a newer version).
Result<std::vector<Record>> parse_batch(std::span<const std::byte> meta, const BatchHeader& header);

}  // namespace cairn::engine
