#include "control/cluster_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "control/sealed.h"

namespace cairn::control {
namespace {

constexpr Id128 kCluster{{9}};
constexpr Id128 kNode{{1}};
constexpr Id128 kDeviceA{{2}};
constexpr Id128 kDeviceB{{3}};

ClusterMap two_devices(uint16_t poll_groups) {
  auto map = make_single_node_map(
      kCluster, {.id = kNode, .name = "n", .address = "a:1", .poll_groups = poll_groups},
      {{.id = kDeviceA, .node = kNode, .shards = 3}, {.id = kDeviceB, .node = kNode, .shards = 2}});
  EXPECT_TRUE(map);
  return *map;
}

TEST(ClusterMap, SpreadsGroupsOverShardsAndShardsOverPollGroups) {
  const ClusterMap map = two_devices(2);
  ASSERT_EQ(map.groups.size(), kDefaultGroups);
  struct Case {
    uint32_t group;
    Id128 device;
    uint32_t shard;
    uint16_t poll_group;
  };
  // Shards 0-2 of A are 0-2 of the node, those of B are 3 and 4.
  const Case cases[] = {{0, kDeviceA, 0, 0}, {1, kDeviceA, 1, 1}, {2, kDeviceA, 2, 0},
                        {3, kDeviceB, 0, 1}, {4, kDeviceB, 1, 0}, {5, kDeviceA, 0, 0}};
  for (const Case& c : cases) {
    const auto location = map.locate(engine::GroupId(c.group));
    ASSERT_TRUE(location);
    EXPECT_EQ(location->node, kNode);
    EXPECT_EQ(location->device, c.device) << c.group;
    EXPECT_EQ(location->shard, c.shard) << c.group;
    EXPECT_EQ(location->poll_group, c.poll_group) << c.group;
  }
  EXPECT_FALSE(map.locate(engine::GroupId(16)));
}

TEST(ClusterMap, SurvivesItsEncoding) {
  const ClusterMap map = two_devices(3);
  const auto again = ClusterMap::decode(map.encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, map);
}

TEST(ClusterMap, FindsEveryDamage) {
  const std::string good = two_devices(3).encode();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_EQ(ClusterMap::decode(bad).code(), Errc::corrupt) << i;
    EXPECT_EQ(ClusterMap::decode(good.substr(0, i)).code(), Errc::corrupt) << i;
  }
  const std::string newer = seal(1, 2, "");
  EXPECT_EQ(ClusterMap::decode(newer).code(), Errc::unsupported);
  EXPECT_EQ(ClusterMap::decode(seal(7, 1, "")).code(), Errc::corrupt);
}

TEST(ClusterMap, ChecksWhatItRefersTo) {
  struct Case {
    const char* what;
    void (*breaks)(ClusterMap&);
  };
  const Case cases[] = {
      {"epoch", [](ClusterMap& map) { map.epoch = 0; }},
      {"no node", [](ClusterMap& map) { map.nodes.clear(); }},
      {"no groups", [](ClusterMap& map) { map.groups.clear(); }},
      {"same device", [](ClusterMap& map) { map.devices[1].id = map.devices[0].id; }},
      {"foreign node", [](ClusterMap& map) { map.devices[1].node = kCluster; }},
      {"no poll group", [](ClusterMap& map) { map.nodes[0].poll_groups = 0; }},
      {"no replica", [](ClusterMap& map) { map.groups[3].replicas.clear(); }},
      {"no such shard", [](ClusterMap& map) { map.groups[3].replicas[0].shard = 2; }},
      {"twice", [](ClusterMap& map) { map.groups[3].replicas.push_back(map.groups[3].replicas[0]); }},
      {"future", [](ClusterMap& map) { map.groups[3].epoch = 2; }},
  };
  for (const Case& c : cases) {
    ClusterMap map = two_devices(1);
    c.breaks(map);
    EXPECT_EQ(map.check().code(), Errc::invalid_argument) << c.what;
    EXPECT_EQ(ClusterMap::decode(map.encode()).code(), Errc::corrupt) << c.what;
  }
}

TEST(Placement, IsPartOfTheFormat) {
  // A changed answer means that data written before is not found any more.
  EXPECT_EQ(group_of(Id128{}, 16), engine::GroupId(6));
  EXPECT_EQ(group_of(Id128{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1}}, 16), engine::GroupId(10));
  EXPECT_EQ(group_of(Id128{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 2}}, 200), engine::GroupId(18));
}

TEST(Placement, IsEvenForCountersAndForChunksOfOneObject) {
  for (const size_t counting_byte : {3, 11, 15}) {
    std::vector<int> counts(16);
    for (int i = 0; i < 16'000; ++i) {
      Id128 id{{0, 0, 0, 1}};
      id.bytes[counting_byte] = static_cast<uint8_t>(i);
      id.bytes[counting_byte - 1] = static_cast<uint8_t>(i >> 8);
      ++counts[group_of(id, 16).value];
    }
    for (const int count : counts) EXPECT_NEAR(count, 1000, 150) << counting_byte;
  }
}

}  // namespace
}  // namespace cairn::control
