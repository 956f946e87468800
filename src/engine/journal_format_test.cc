#include "engine/journal_format.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "engine/sealed_block.h"

namespace cairn::engine {
namespace {

const JournalIdentity kIdentity{.device = {{1, 2, 3}}, .shard = 7};

Record write_record(uint32_t offset, uint32_t length, bool extends) {
  Record record;
  record.group = GroupId(5);
  record.term = Term(2);
  record.index = Index(77);
  record.kind = EntryKind::chunk_write;
  record.chunk.bytes[3] = 9;
  record.offset = offset;
  record.length = length;
  record.plan = plan_write(offset, length, extends);
  for (uint32_t i = 0; i < record.plan.unit_count; ++i) record.units.emplace_back(100 + i);
  for (uint32_t i = 0; i < pages_of(length); ++i) record.page_crcs.push_back(0xabc0 + i);
  return record;
}

Record kv_record(size_t body) {
  Record record;
  record.group = GroupId(5);
  record.index = Index(78);
  record.kind = EntryKind::kv_batch;
  record.body.assign(body, 'x');
  return record;
}

struct Encoded {
  BatchHeader header;
  std::vector<std::byte> meta;
};

// In pieces of the sizes given, the last one whatever is left.
Encoded encode(const std::vector<Record>& records, size_t first_piece = SIZE_MAX) {
  uint64_t bytes = 0;
  uint32_t pages = 0;
  for (const Record& record : records) {
    bytes += encoded_bytes(record);
    pages += record.plan.inline_pages();
  }
  Encoded out;
  out.header = {.lsn = Lsn(8192),
                .epoch = 3,
                .durable = Lsn(4096),
                .meta_bytes = meta_bytes_for(bytes),
                .batch_bytes = meta_bytes_for(bytes) + pages * kPageBytes,
                .record_count = static_cast<uint32_t>(records.size())};
  out.meta.assign(out.header.meta_bytes, std::byte{0xee});
  const size_t first = std::min(first_piece, out.meta.size());
  const std::span all(out.meta);
  BatchEncoder::Pieces pieces{all.first(first)};
  if (first < all.size()) pieces.push_back(all.subspan(first));
  BatchEncoder encoder(pieces);
  for (const Record& record : records) encoder.add(record);
  encoder.seal(out.header, kIdentity);
  return out;
}

TEST(JournalFormatTest, ComesBackAsItWas) {
  const std::vector<Record> records = {write_record(4096, 300000, true), kv_record(10000), write_record(0, 100, false),
                                       kv_record(0)};
  for (const size_t piece : {size_t{4096}, size_t{8192}, SIZE_MAX}) {
    const Encoded batch = encode(records, piece);
    const auto header = parse_batch_header(batch.meta, kIdentity, Lsn(8192));
    ASSERT_TRUE(header);
    EXPECT_EQ(header->epoch, 3u);
    EXPECT_EQ(header->durable, Lsn(4096));
    EXPECT_EQ(header->end(), batch.header.end());
    const auto parsed = parse_batch(batch.meta, *header);
    ASSERT_TRUE(parsed);
    ASSERT_EQ(parsed->size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      const Record& a = (*parsed)[i];
      const Record& b = records[i];
      EXPECT_EQ(a.group, b.group);
      EXPECT_EQ(a.term, b.term);
      EXPECT_EQ(a.index, b.index);
      EXPECT_EQ(a.kind, b.kind);
      EXPECT_EQ(a.chunk, b.chunk);
      EXPECT_EQ(a.offset, b.offset);
      EXPECT_EQ(a.length, b.length);
      EXPECT_EQ(a.plan, b.plan);
      EXPECT_EQ(a.units, b.units);
      EXPECT_EQ(a.page_crcs, b.page_crcs);
      EXPECT_EQ(a.body, b.body);
    }
  }
}

TEST(JournalFormatTest, TheLargestRecordFits) {
  const Encoded batch = encode({kv_record(kMaxBodyBytes)}, 1 << 20);
  EXPECT_TRUE(parse_batch(batch.meta, batch.header));
  EXPECT_LE(batch.header.batch_bytes, kMaxBatchBytes);
}

TEST(JournalFormatTest, IsOfThisJournalAndPositionOnly) {
  const Encoded batch = encode({kv_record(5)});
  EXPECT_EQ(parse_batch_header(batch.meta, kIdentity, Lsn(4096)).code(), Errc::not_found);
  EXPECT_EQ(parse_batch_header(batch.meta, {.device = kIdentity.device, .shard = 8}, Lsn(8192)).code(),
            Errc::not_found);
  EXPECT_EQ(parse_batch_header(batch.meta, {.device = {}, .shard = 7}, Lsn(8192)).code(), Errc::not_found);
  EXPECT_EQ(parse_batch_header(std::span(batch.meta).first(10), kIdentity, Lsn(8192)).code(), Errc::not_found);
}

TEST(JournalFormatTest, ANewerVersionIsNotTakenForRot) {
  Encoded batch = encode({kv_record(5)});
  auto disk = load<BatchHeaderOnDisk>(batch.meta);
  disk.version = BatchHeaderOnDisk::kVersion + 1;
  store(std::span(batch.meta), disk);
  EXPECT_EQ(parse_batch(batch.meta, batch.header).code(), Errc::corrupt);
  disk.crc = crc_without_field(batch.meta, offsetof(BatchHeaderOnDisk, crc));
  store(std::span(batch.meta), disk);
  EXPECT_EQ(parse_batch(batch.meta, batch.header).code(), Errc::unsupported);
}

TEST(JournalFormatTest, EveryFlippedBitIsFound) {
  const Encoded batch = encode({write_record(4096, 70000, false), kv_record(50)});
  for (size_t bit = 0; bit < batch.meta.size() * 8; ++bit) {
    auto broken = batch.meta;
    broken[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto header = parse_batch_header(broken, kIdentity, Lsn(8192));
    if (!header || header->meta_bytes != broken.size()) continue;
    ASSERT_EQ(parse_batch(broken, *header).code(), Errc::corrupt) << "bit " << bit;
  }
}

// Lengths that lie, under a checksum that is right.
TEST(JournalFormatTest, TrustsNoLength) {
  SeededRng rng(3);
  const Encoded good = encode({write_record(4096, 70000, false), kv_record(50), write_record(0, 65536, true)});
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good.meta;
    for (uint64_t n = rng.below(4) + 1; n > 0; --n) {
      const size_t at = sizeof(BatchHeaderOnDisk) + rng.below(900);
      bytes[at] = static_cast<std::byte>(rng.below(3) == 0 ? 0xff : rng.below(256));
    }
    auto disk = load<BatchHeaderOnDisk>(bytes);
    disk.record_count = static_cast<uint16_t>(rng.below(6));
    disk.crc = 0;
    store(std::span(bytes), disk);
    disk.crc = crc_without_field(bytes, offsetof(BatchHeaderOnDisk, crc));
    store(std::span(bytes), disk);
    const auto header = parse_batch_header(bytes, kIdentity, Lsn(8192));
    if (header && parse_batch(bytes, *header)) ++accepted;
  }
  EXPECT_LT(accepted, 20000);
}

}  // namespace
}  // namespace cairn::engine
