#include "kv/batch.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/rng.h"

namespace cairn::kv {
namespace {

bool same(const std::vector<Mutation>& a, const std::vector<Mutation>& b) {
  return std::ranges::equal(a, b,
                            [](const Mutation& x, const Mutation& y) { return x.key == y.key && x.value == y.value; });
}

// Puts a right checksum over whatever the bytes have become.
std::string resealed(std::string bytes) {
  BatchHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.bytes = static_cast<uint32_t>(bytes.size());
  header.crc = 0u;
  header.crc = crc32c(bytes.data() + sizeof header, bytes.size() - sizeof header, crc32c(&header, sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST(Batch, RoundTrip) {
  const std::vector<Mutation> mutations = {
      {"key", "value"}, {"gone", std::nullopt}, {"", ""}, {std::string("\0\xff", 2), std::string(100'000, 'x')}};
  const auto bytes = encode_batch(mutations);
  ASSERT_TRUE(bytes);
  const auto decoded = decode_batch(*bytes);
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(same(*decoded, mutations));
  EXPECT_TRUE(decode_batch(*encode_batch({}))->empty());
}

TEST(Batch, LimitsAreErrorsOfTheCaller) {
  const Mutation long_key{std::string(kMaxKeyBytes + 1, 'k'), "v"};
  EXPECT_EQ(encode_batch({&long_key, 1}).code(), Errc::too_large);
  const Mutation long_value{"k", std::string(kMaxBatchBytes, 'v')};
  EXPECT_EQ(encode_batch({&long_value, 1}).code(), Errc::too_large);
  const Mutation fits{"k", std::string(kMaxBatchBytes - sizeof(BatchHeader) - sizeof(MutationHeader) - 1, 'v')};
  const auto bytes = encode_batch({&fits, 1});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), kMaxBatchBytes);
  EXPECT_TRUE(decode_batch(*bytes));
}

TEST(Batch, EveryFlippedBitIsFound) {
  const std::vector<Mutation> mutations = {{"key", "value"}, {"gone", std::nullopt}};
  const std::string bytes = *encode_batch(mutations);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string broken = bytes;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_batch(broken)) << bit;
  }
}

TEST(Batch, EveryShorterPieceIsRefusedEvenWithARightChecksum) {
  const std::vector<Mutation> mutations = {{"key", "value"}, {"gone", std::nullopt}};
  const std::string bytes = *encode_batch(mutations);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_batch(bytes.substr(0, size)).code(), Errc::corrupt) << size;
    if (size >= sizeof(BatchHeader)) {
      EXPECT_EQ(decode_batch(resealed(bytes.substr(0, size))).code(), Errc::corrupt);
    }
  }
  EXPECT_EQ(decode_batch(resealed(bytes + "x")).code(), Errc::corrupt);
}

TEST(Batch, LengthsAreNotTrusted) {
  const Mutation mutation{"key", "value"};
  const std::string bytes = *encode_batch({&mutation, 1});
  const auto with = [&](size_t offset, uint32_t value) {
    std::string broken = bytes;
    std::memcpy(broken.data() + offset, &value, sizeof value);
    return decode_batch(resealed(std::move(broken))).code();
  };
  EXPECT_EQ(with(offsetof(BatchHeader, count), UINT32_MAX), Errc::corrupt);
  EXPECT_EQ(with(offsetof(BatchHeader, count), 0), Errc::corrupt);
  EXPECT_EQ(with(sizeof(BatchHeader) + offsetof(MutationHeader, kind), 9), Errc::corrupt);
  EXPECT_EQ(with(sizeof(BatchHeader) + offsetof(MutationHeader, kind), MutationHeader::kDelete), Errc::corrupt);
  EXPECT_EQ(with(sizeof(BatchHeader) + offsetof(MutationHeader, key_bytes), UINT32_MAX), Errc::corrupt);
  EXPECT_EQ(with(sizeof(BatchHeader) + offsetof(MutationHeader, key_bytes), 9), Errc::corrupt);
  EXPECT_EQ(with(sizeof(BatchHeader) + offsetof(MutationHeader, value_bytes), UINT32_MAX), Errc::corrupt);
}

TEST(Batch, ANewerVersionSaysSo) {
  std::string bytes = *encode_batch({});
  bytes[offsetof(BatchHeader, version)] = 2;
  EXPECT_EQ(decode_batch(resealed(bytes)).code(), Errc::unsupported);
}

}  // namespace
}  // namespace cairn::kv
