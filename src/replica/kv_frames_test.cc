#include "replica/kv_frames.h"

#include <gtest/gtest.h>

#include <cstring>

#include "replica/methods.h"

namespace cairn::replica {
namespace {

using Kind = kv::Condition::Kind;

kv::Batch sample() {
  return {.conditions = {{"a", Kind::absent}, {"", Kind::present}, {std::string(100, 'k'), Kind::equals, "value"}},
          .mutations = {{"put", "x"}, {"empty", ""}, {"gone", std::nullopt}}};
}

TEST(KvFrames, BatchesSurvive) {
  const kv::Batch batch = sample();
  const auto bytes = encode_batch_frames(batch);
  ASSERT_TRUE(bytes);
  const auto again = decode_batch_frames(*bytes, 3, 3);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->conditions.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again->conditions[i].key, batch.conditions[i].key);
    EXPECT_EQ(again->conditions[i].kind, batch.conditions[i].kind);
    EXPECT_EQ(again->conditions[i].value, batch.conditions[i].value);
    EXPECT_EQ(again->mutations[i].key, batch.mutations[i].key);
    EXPECT_EQ(again->mutations[i].value, batch.mutations[i].value);
  }
  EXPECT_TRUE(decode_batch_frames("", 0, 0));
}

TEST(KvFrames, WrongCountsAndEveryCutAreRefused) {
  const std::string bytes = *encode_batch_frames(sample());
  EXPECT_EQ(decode_batch_frames(bytes, 2, 4).code(), Errc::invalid_argument);
  EXPECT_EQ(decode_batch_frames(bytes, 3, 2).code(), Errc::invalid_argument);
  EXPECT_EQ(decode_batch_frames(bytes, UINT32_MAX, 3).code(), Errc::invalid_argument);
  EXPECT_EQ(decode_batch_frames(bytes, 3, UINT32_MAX).code(), Errc::invalid_argument);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_batch_frames(bytes.substr(0, size), 3, 3).code(), Errc::invalid_argument) << size;
  }
  EXPECT_EQ(decode_batch_frames(bytes + "x", 3, 3).code(), Errc::invalid_argument);
}

TEST(KvFrames, WrongFieldsAreRefused) {
  const auto with_condition = [](uint16_t kind, uint16_t key_bytes, uint32_t value_bytes) {
    ConditionFrame frame;
    frame.kind = kind;
    frame.key_bytes = key_bytes;
    frame.value_bytes = value_bytes;
    return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + std::string(5000, 'x');
  };
  EXPECT_EQ(decode_batch_frames(with_condition(3, 5000, 0), 1, 0).code(), Errc::invalid_argument) << "unknown kind";
  EXPECT_EQ(decode_batch_frames(with_condition(0, 4999, 1), 1, 0).code(), Errc::invalid_argument) << "value for absent";
  EXPECT_EQ(decode_batch_frames(with_condition(2, 5000, 0), 1, 0).code(), Errc::invalid_argument) << "long key";
  EXPECT_EQ(decode_batch_frames(with_condition(2, 0, UINT32_MAX), 1, 0).code(), Errc::invalid_argument) << "length";
  EXPECT_TRUE(decode_batch_frames(with_condition(2, 1000, 4000), 1, 0));

  MutationFrame frame;
  frame.kind = MutationFrame::kDelete;
  frame.value_bytes = 1u;
  std::string bytes(reinterpret_cast<const char*>(&frame), sizeof frame);
  EXPECT_EQ(decode_batch_frames(bytes + "x", 0, 1).code(), Errc::invalid_argument) << "a delete with a value";
  EXPECT_EQ(
      encode_batch_frames({.conditions = {}, .mutations = {{std::string(methods::kMaxKeyBytes + 1, 'k'), "v"}}}).code(),
      Errc::too_large);
}

TEST(KvFrames, ItemsSurviveAndEveryCutIsRefused) {
  const kv::ScanResult result{.items = {{"a", "1"}, {"", ""}, {"b", std::string(1000, 'v')}}, .more = true};
  const std::string bytes = encode_items(result);
  const auto again = decode_items(bytes, 3);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->items.size(), 3u);
  EXPECT_EQ(again->items[2].value, result.items[2].value);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_items(bytes.substr(0, size), 3).code(), Errc::protocol_error) << size;
  }
  EXPECT_EQ(decode_items(bytes, 2).code(), Errc::protocol_error);
  EXPECT_EQ(decode_items(bytes, UINT32_MAX).code(), Errc::protocol_error);
}

}  // namespace
}  // namespace cairn::replica
