#include "engine/chunk_record.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "engine/map_image.h"

namespace cairn::engine {
namespace {

Chunk sample() {
  Chunk chunk;
  chunk.group = GroupId(9);
  chunk.size = 300000;
  chunk.last_change = Index(1234);
  for (const uint32_t index : {0u, 2u, 4u}) {
    UnitSlot& slot = chunk.slot(index);
    slot.unit = Unit(10 + index);
    slot.present = index == 4 ? 0x0fff : 0x8001;
    slot.lost = index == 2 ? 0x0010 : 0;
    for (uint32_t page = 0; page < kPagesPerUnit; ++page) {
      if (slot.is_present(page)) slot.crc[page] = index * 100 + page;
    }
  }
  return chunk;
}

TEST(ChunkRecordTest, ComesBackAsItWas) {
  const Chunk chunk = sample();
  const auto back = decode_chunk(encode_chunk(chunk), 100);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->group, chunk.group);
  EXPECT_EQ(back->size, chunk.size);
  EXPECT_EQ(back->last_change, chunk.last_change);
  ASSERT_EQ(back->slots.size(), chunk.slots.size());
  for (size_t i = 0; i < chunk.slots.size(); ++i) {
    EXPECT_EQ(back->slots[i].unit, chunk.slots[i].unit);
    EXPECT_EQ(back->slots[i].present, chunk.slots[i].present);
    EXPECT_EQ(back->slots[i].lost, chunk.slots[i].lost);
    EXPECT_EQ(back->slots[i].crc, chunk.slots[i].crc);
  }
}

TEST(ChunkRecordTest, EveryFlippedBitAndEveryCutIsFound) {
  const std::string value = encode_chunk(sample());
  for (size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string broken = value;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_chunk(broken, 100)) << bit;
  }
  for (size_t size = 0; size < value.size(); ++size) EXPECT_FALSE(decode_chunk(value.substr(0, size), 100));
  EXPECT_FALSE(decode_chunk(value + "x", 100));
  EXPECT_FALSE(decode_chunk(value, 14)) << "a unit beyond the shard";
}

TEST(ChunkRecordTest, KeysSortAndParse) {
  ChunkId a;
  ChunkId b;
  a.bytes[15] = 1;
  b.bytes[0] = 1;
  EXPECT_LT(chunk_key(a), chunk_key(b));
  EXPECT_EQ(parse_chunk_key(chunk_key(b)), b);
  EXPECT_FALSE(parse_chunk_key(chunk_key(b) + "x"));
  EXPECT_LT(mark_key(KeySpace::kv_mark, GroupId(255)), mark_key(KeySpace::kv_mark, GroupId(256)));
  EXPECT_EQ(parse_mark_key(KeySpace::kv_mark, mark_key(KeySpace::kv_mark, GroupId(70000))), GroupId(70000));
  EXPECT_FALSE(parse_mark_key(KeySpace::group_mark, mark_key(KeySpace::kv_mark, GroupId(1))));
  EXPECT_EQ(decode_mark(encode_mark(Index(99))).value(), Index(99));
  const auto identity = decode_identity(encode_identity({.device = a, .shard = 4, .checkpoint = 6}));
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->device, a);
  EXPECT_EQ(identity->shard, 4u);
  EXPECT_EQ(identity->checkpoint, 6u);
}

TEST(MapImageTest, IsTheMapAsItWas) {
  ChunkMap chunks;
  MapImage image(chunks);
  const auto id = [](uint8_t n) { return ChunkId{{n}}; };
  const auto set = [&](uint8_t n, uint32_t size) {
    image.before_change(id(n));
    chunks[id(n)].size = size;
  };
  for (uint8_t n = 1; n <= 5; ++n) set(n, n);
  image.begin();
  // Changes after the beginning don't show, whether their chunk was encoded before or after.
  set(2, 222);
  image.before_change(id(3));
  chunks.erase(id(3));
  set(6, 6);
  std::map<std::string, std::optional<std::string>> store;
  for (;;) {
    const auto part = image.next(1);
    if (part.empty()) break;
    for (const auto& mutation : part) store[mutation.key] = mutation.value;
    set(5, 555);
  }
  ASSERT_EQ(store.size(), 5u);
  for (uint8_t n = 1; n <= 5; ++n) {
    const auto& value = store.at(chunk_key(id(n)));
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(decode_chunk(*value, 1)->size, n);
  }
  image.end();
  // The next image holds exactly what changed since.
  image.begin();
  std::vector<std::string> keys;
  for (auto part = image.next(1 << 20); !part.empty(); part = image.next(1 << 20)) {
    for (const auto& mutation : part) {
      keys.push_back(mutation.key);
      if (mutation.key == chunk_key(id(3))) {
        EXPECT_FALSE(mutation.value.has_value());
      }
    }
  }
  EXPECT_EQ(keys, (std::vector{chunk_key(id(2)), chunk_key(id(3)), chunk_key(id(5)), chunk_key(id(6))}));
  // A failed checkpoint forgets nothing.
  image.abort();
  EXPECT_EQ(image.changes(), 4u);
}

}  // namespace
}  // namespace cairn::engine
