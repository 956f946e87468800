#include "object/records.h"

#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/rng.h"
#include "kv/batch.h"
#include "object/layout.h"

namespace cairn::object {
namespace {

std::string random_md5(Rng& rng) {
  std::array<std::byte, 16> md5;
  rng.fill(md5);
  return to_hex(md5);
}

PartTable many_parts(uint32_t count, bool checksums) {
  SeededRng rng(1);
  PartTable table;
  for (uint32_t i = 1; i <= count; ++i) {
    TablePart part{.number = i, .data = {DataId::make(3, i), rng.below(uint64_t{5} << 30)}, .etag = random_md5(rng)};
    if (checksums) part.checksum = Checksum{.algorithm = "SHA256", .value = std::string(44, 'Q'), .full_object = false};
    table.parts.push_back(std::move(part));
  }
  return table;
}

void expect_equal(const PartTable& a, const PartTable& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (size_t i = 0; i < a.parts.size(); ++i) {
    EXPECT_EQ(a.parts[i].number, b.parts[i].number);
    EXPECT_EQ(a.parts[i].data, b.parts[i].data);
    EXPECT_EQ(a.parts[i].etag, b.parts[i].etag);
    ASSERT_EQ(a.parts[i].checksum.has_value(), b.parts[i].checksum.has_value());
    if (a.parts[i].checksum) EXPECT_EQ(a.parts[i].checksum->value, b.parts[i].checksum->value);
  }
}

TEST(Records, ObjectsSurvive) {
  const ObjectRecord record{
      .data = {DataId::make(1, 2), 12'345},
      .etag = "etag",
      .modified_unix_ns = 1'780'000'000'000'000'001,
      .attributes = {.content_type = "a/b", .headers = {{"x", "\xff"}}, .user_metadata = {{"k", "v"}}},
      .checksum = Checksum{.algorithm = "CRC32", .value = "DUoRhQ==", .full_object = true},
      .part_count = 7,
      .upload = Id128{{5}}};
  const auto again = ObjectRecord::decode(record.encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->data, record.data);
  EXPECT_EQ(again->etag, record.etag);
  EXPECT_EQ(again->modified_unix_ns, record.modified_unix_ns);
  EXPECT_EQ(again->attributes.content_type, "a/b");
  EXPECT_EQ(again->attributes.headers, record.attributes.headers);
  EXPECT_EQ(again->attributes.user_metadata, record.attributes.user_metadata);
  EXPECT_EQ(again->checksum->value, "DUoRhQ==");
  EXPECT_EQ(again->part_count, 7u);
  EXPECT_EQ(again->upload, record.upload);
}

TEST(Records, EveryDamageIsFound) {
  const std::string good = ObjectRecord{.data = {DataId::make(1, 2), 5}, .etag = "e"}.encode();
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      EXPECT_FALSE(ObjectRecord::decode(bad)) << i;
    }
    EXPECT_FALSE(ObjectRecord::decode(good.substr(0, i))) << i;
  }
}

TEST(Records, OneKindIsntReadAsAnother) {
  EXPECT_EQ(PartRecord::decode(ObjectRecord{}.encode()).code(), Errc::corrupt);
  EXPECT_EQ(ObjectRecord::decode(GarbageRecord{}.encode()).code(), Errc::corrupt);
  EXPECT_EQ(decode_session_counter(BucketRecord{}.encode()).code(), Errc::corrupt);
  EXPECT_EQ(*decode_session_counter(encode_session_counter(77)), 77u);
}

TEST(Records, PartTablesSurviveWhateverTheColumns) {
  PartTable mixed = many_parts(20, true);
  mixed.parts[3].checksum.reset();
  mixed.parts[4].etag = "no md5";
  mixed.parts[5].checksum->value = "short";
  PartTable upper = many_parts(3, false);
  upper.parts[0].etag[0] = 'A';  // would come back in lower case
  for (const PartTable& table : {PartTable{}, many_parts(1, false), many_parts(50, true), mixed, upper}) {
    const auto bytes = table.encode();
    ASSERT_TRUE(bytes);
    const auto again = PartTable::decode(*bytes);
    ASSERT_TRUE(again) << again.error().to_string();
    expect_equal(table, *again);
  }
  mixed.parts[6].checksum->algorithm = "CRC32";
  EXPECT_EQ(mixed.encode().code(), Errc::invalid_argument);
}

TEST(Records, TenThousandPartsFitOneBatch) {
  const PartTable table = many_parts(10'000, true);
  const auto bytes = table.encode();
  ASSERT_TRUE(bytes);
  // With the object's record, which may have 16 KiB of metadata, and the delete queue's.
  EXPECT_LT(bytes->size() + 200'000, kv::kMaxBatchBytes);
  const auto again = PartTable::decode(*bytes);
  ASSERT_TRUE(again);
  expect_equal(table, *again);
  // And as many left over in one item of the delete queue.
  GarbageRecord garbage;
  for (const TablePart& part : table.parts) garbage.data.push_back(part.data);
  EXPECT_LT(garbage.encode().size(), 300'000u);
  EXPECT_EQ(GarbageRecord::decode(garbage.encode())->data.size(), 10'000u);
}

TEST(Records, GarbageSurvives) {
  GarbageRecord garbage{.data = {{DataId::make(1, 1), 5}},
                        .bucket = Id128{{1}},
                        .table = DataId::make(2, 2),
                        .upload = Id128{{3}},
                        .upload_data = true,
                        .bucket_uploads = true};
  const auto again = GarbageRecord::decode(garbage.encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->data, garbage.data);
  EXPECT_EQ(again->bucket, garbage.bucket);
  EXPECT_EQ(again->table, garbage.table);
  EXPECT_EQ(again->upload, garbage.upload);
  EXPECT_TRUE(again->upload_data);
  EXPECT_TRUE(again->bucket_uploads);
  EXPECT_FALSE(GarbageRecord::decode(GarbageRecord{}.encode())->table);
}

TEST(DataIds, NameChunksInOrder) {
  const DataId id = DataId::make(0x01020304, 0x05060708090a0b0c);
  EXPECT_EQ(id.session(), 0x01020304u);
  EXPECT_EQ(id.chunk(0x0d0e0f10).to_string(), "0102030405060708090a0b0c0d0e0f10");
  EXPECT_EQ(DataId::of_chunk(id.chunk(77)), id);
  EXPECT_LT(id.chunk(255), id.chunk(256));
  EXPECT_LT(DataId::make(1, UINT64_MAX).chunk(UINT32_MAX), DataId::make(2, 0).chunk(0));
  EXPECT_EQ((DataRef{id, 0}).chunk_count(), 0u);
  EXPECT_EQ((DataRef{id, 1}).chunk_count(), 1u);
  EXPECT_EQ((DataRef{id, 4 << 20}).chunk_count(), 1u);
  EXPECT_EQ((DataRef{id, (4 << 20) + 1}).chunk_count(), 2u);
}

// Every byte of an object is in exactly one piece, and pieces never cross a chunk's or a part's end.
TEST(Layout, PiecesCoverEverything) {
  const uint64_t sizes[] = {5, 0, 4 << 20, (1 << 20) + 3, (9 << 20) + 1, 4096};
  PartTable table;
  uint64_t total = 0;
  for (const uint64_t size : sizes) {
    table.parts.push_back({.number = static_cast<uint32_t>(table.parts.size() + 1),
                           .data = {DataId::make(1, table.parts.size() + 1), size},
                           .etag = {},
                           .checksum = {}});
    total += size;
  }
  const Layout layout(table);
  ASSERT_EQ(layout.size(), total);
  SeededRng rng(4);
  for (int round = 0; round < 200; ++round) {
    const uint64_t begin = rng.below(total);
    const uint64_t end = begin + 1 + rng.below(total - begin);
    for (uint64_t at = begin; at < end;) {
      const Piece piece = layout.at(at, end);
      ASSERT_GT(piece.length, 0u);
      ASSERT_LE(piece.length, kPieceBytes);
      ASSERT_LE(piece.offset + piece.length, engine::kChunkBytes);
      // Whose byte is it, counted by hand?
      uint64_t part_begin = 0;
      size_t part = 0;
      while (at >= part_begin + sizes[part]) part_begin += sizes[part++];
      EXPECT_EQ(DataId::of_chunk(piece.chunk), table.parts[part].data.id);
      EXPECT_EQ(piece.chunk, table.parts[part].data.id.chunk(static_cast<uint32_t>((at - part_begin) >> 22)));
      EXPECT_EQ(piece.offset, (at - part_begin) & ((4 << 20) - 1));
      EXPECT_LE(at + piece.length, part_begin + sizes[part]);
      at += piece.length;
      ASSERT_LE(at, end);
    }
  }
}

}  // namespace
}  // namespace cairn::object
