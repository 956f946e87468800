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

}  // namespace
}  // namespace cairn::engine
