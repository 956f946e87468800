#include "gateway/s3/checksum.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/rng.h"
#include "gateway/s3/crc64nvme.h"

namespace cairn::s3 {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string of(ChecksumKind kind, std::string_view text) {
  const auto stream = ChecksumStream::create(kind);
  stream->update(bytes_of(text));
  return stream->finish();
}

std::string hex_of(std::string_view base64) {
  const auto raw = from_base64(base64);
  return raw ? to_hex(bytes_of(*raw)) : "not base64";
}

TEST(Checksum, KnownAnswers) {
  EXPECT_EQ(hex_of(of(ChecksumKind::crc32, "123456789")), "cbf43926");
  EXPECT_EQ(hex_of(of(ChecksumKind::crc32c, "123456789")), "e3069283");
  EXPECT_EQ(hex_of(of(ChecksumKind::crc64nvme, "123456789")), "ae8b14860a799888");
  EXPECT_EQ(hex_of(of(ChecksumKind::sha1, "abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex_of(of(ChecksumKind::sha256, "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of(ChecksumKind::crc32, "hello world"), "DUoRhQ==");
}

// NVM Command Set specification, 64-bit guard examples: 4 KiB of zeroes, of ones, rising bytes.
TEST(Checksum, Crc64NvmeOfPages) {
  EXPECT_EQ(crc64nvme(bytes_of(std::string(4096, '\0'))), 0x6482d367eb22b64eu);
  EXPECT_EQ(crc64nvme(bytes_of(std::string(4096, '\xff'))), 0xc0ddba7302eca3acu);
}

TEST(Checksum, Crc64NvmeFoldsLikeTheTable) {
  SeededRng rng(1);
  std::string data(5000, '\0');
  rng.fill(std::as_writable_bytes(std::span(data)));
  for (size_t size = 0; size < 700; ++size) {
    for (const size_t start : {size_t{0}, size_t{3}}) {
      const auto bytes = bytes_of(std::string_view(data).substr(start, size));
      uint64_t one_by_one = 0;  // fewer than 128 bytes at a time take the table
      for (const std::byte& b : bytes) one_by_one = crc64nvme({&b, 1}, one_by_one);
      ASSERT_EQ(crc64nvme(bytes), one_by_one) << size;
      ASSERT_EQ(crc64nvme(bytes.subspan(size / 3), crc64nvme(bytes.first(size / 3))), one_by_one) << size;
    }
  }
}

TEST(Checksum, PiecesAddUp) {
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (const auto& info : all_checksums()) {
    const auto stream = ChecksumStream::create(info.kind);
    for (const char& c : text) stream->update(std::as_bytes(std::span(&c, 1)));
    EXPECT_EQ(stream->finish(), of(info.kind, text)) << info.name;
  }
}

TEST(Checksum, FullObjectFollowsFromParts) {
  SeededRng rng(2);
  std::string data(100'000, '\0');
  rng.fill(std::as_writable_bytes(std::span(data)));
  for (const auto& info : all_checksums()) {
    if (!info.combines) continue;
    std::vector<PartChecksum> parts;
    const std::string_view view = data;
    for (const auto& [at, size] : {std::pair<size_t, size_t>{0, 1}, {1, 65'535}, {65'536, 0}, {65'536, 34'464}}) {
      parts.push_back({of(info.kind, view.substr(at, size)), size});
    }
    EXPECT_EQ(combine_full_object(info.kind, parts), of(info.kind, data)) << info.name;
  }
}

TEST(Checksum, CompositeIsTheChecksumOfChecksums) {
  const std::vector<PartChecksum> parts = {{of(ChecksumKind::sha256, "a"), 1}, {of(ChecksumKind::sha256, "b"), 1}};
  const std::string raw = *from_base64(parts[0].base64) + *from_base64(parts[1].base64);
  EXPECT_EQ(combine_composite(ChecksumKind::sha256, parts), of(ChecksumKind::sha256, raw) + "-2");
  EXPECT_EQ(combine_composite(ChecksumKind::sha256, std::vector<PartChecksum>{{"nonsense", 1}}), std::nullopt);
}

TEST(Checksum, NamesAndValues) {
  EXPECT_EQ(checksum_by_name("crc64nvme"), ChecksumKind::crc64nvme);
  EXPECT_EQ(checksum_by_name("MD5"), std::nullopt);
  EXPECT_EQ(checksum_by_header("x-amz-checksum-sha1"), ChecksumKind::sha1);
  EXPECT_EQ(checksum_by_header("x-amz-checksum-type"), std::nullopt);
  EXPECT_TRUE(is_checksum_value(ChecksumKind::crc32, "DUoRhQ=="));
  EXPECT_FALSE(is_checksum_value(ChecksumKind::crc32, "DUoRhQ"));    // unpadded
  EXPECT_FALSE(is_checksum_value(ChecksumKind::crc32, "0d4a1185"));  // hexadecimal: right form, wrong size
  EXPECT_FALSE(is_checksum_value(ChecksumKind::sha256, "DUoRhQ=="));
}

}  // namespace
}  // namespace cairn::s3
