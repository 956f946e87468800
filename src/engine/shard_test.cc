#include "engine/shard.h"

#include <gtest/gtest.h>

#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

using test::chunk_id;
using test::pattern;
using test::Rig;

TEST(ShardTest, ReadsWhatWasWritten) {
  struct Case {
    uint32_t offset;
    uint32_t length;
  };
  const Case cases[] = {{0, 1},         {0, 4096},     {4096, 5000}, {0, 65536},         {65536, 65536}, {0, 65537},
                        {4096, 200000}, {61440, 8192}, {0, 4194304}, {1048576, 1048576}, {4190208, 4096}};
  Rig rig;
  rig.start();
  uint64_t number = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(c.offset) + "+" + std::to_string(c.length));
    const ChunkId chunk = chunk_id(++number);
    const auto bytes = pattern(c.length, number);
    const auto written = rig.write(chunk, c.offset, bytes);
    ASSERT_TRUE(written) << written.error().to_string();
    EXPECT_EQ(rig.shard->stat(chunk)->size, c.offset + c.length);
    auto expected = std::vector<std::byte>(c.offset);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(rig.read(chunk).value(), expected);
    EXPECT_EQ(rig.read(chunk, c.offset, c.length).value(), bytes);
    EXPECT_EQ(rig.read(chunk, c.offset + c.length, 10).value().size(), 0u);
    if (c.length > 5000) {
      const auto middle = std::vector(bytes.begin() + 3333, bytes.begin() + 5000);
      EXPECT_EQ(rig.read(chunk, c.offset + 3333, 5000 - 3333).value(), middle);
    }
  }
  const auto all = rig.shard->list({}, 100);
  EXPECT_EQ(all.size(), std::size(cases));
  // And the same after a checkpoint, and after opening it anew.
  ASSERT_TRUE(rig.checkpoint());
  for (int round = 0; round < 2; ++round) {
    number = 0;
    for (const Case& c : cases) {
      const auto bytes = pattern(c.length, ++number);
      EXPECT_EQ(rig.read(chunk_id(number), c.offset, c.length).value(), bytes) << number;
    }
    rig.reopen();
  }
}

// A read of a hole and of bytes on the device, which answers when the shard has nothing else left to do.
TEST(ShardTest, ClosingWaitsForReads) {
  Rig rig;
  rig.options.shard.cache_bytes = 0;
  rig.start();
  const auto bytes = pattern(65536, 1);
  ASSERT_TRUE(rig.write(chunk_id(1), 131072, bytes));
  ASSERT_TRUE(rig.checkpoint());
  rig.device->max_latency_us = 1'000'000;
  Result<mem::BufChain> data = Error(Errc::unknown);
  Scope scope(rig.loop);
  const auto read = [](Shard* shard, Result<mem::BufChain>* out) -> Task<void> {
    *out = co_await shard->read(chunk_id(1), 0, kChunkBytes);
  };
  scope.spawn(read, rig.shard.get(), &data);
  rig.loop.step();
  ASSERT_EQ(rig.device->under_way(), 1u);
  rig.close();
  EXPECT_EQ(scope.running(), 0u);
  ASSERT_TRUE(data) << data.error().to_string();
  std::vector<std::byte> all(data->size());
  data->copy_metadata_to(all);
  auto expected = std::vector<std::byte>(131072);
  expected.insert(expected.end(), bytes.begin(), bytes.end());
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace cairn::engine
