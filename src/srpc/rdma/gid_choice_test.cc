#include "srpc/rdma/gid_choice.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::srpc::rdma {
namespace {

using ::testing::HasSubstr;

Gid gid(uint32_t index, GidType type, const char* text) {
  Gid entry{.index = index, .type = type, .netdev = "eth2"};
  EXPECT_EQ(::inet_pton(AF_INET6, text, entry.bytes.data()), 1) << text;
  return entry;
}

// What a healthy port of a ConnectX shows with one IPv4 and one IPv6 address.
PortFacts healthy() {
  return {.device = "mlx5_0",
          .port = 1,
          .state = PortState::active,
          .physical_state = "LinkUp",
          .link_layer = LinkLayer::ethernet,
          .active_mtu_bytes = 4096,
          .max_mtu_bytes = 4096,
          .netdev = "eth2",
          .netdev_mtu_bytes = 9000,
          .gids = {gid(0, GidType::roce_v1, "fe80::1"), gid(1, GidType::roce_v2, "fe80::1"),
                   gid(2, GidType::roce_v1, "fd00::7"), gid(3, GidType::roce_v2, "fd00::7"),
                   gid(4, GidType::roce_v1, "::ffff:10.0.0.7"), gid(5, GidType::roce_v2, "::ffff:10.0.0.7")}};
}

void keep_only(PortFacts& facts, GidType type) {
  std::erase_if(facts.gids, [type](const Gid& entry) { return entry.type != type; });
}

Address address(const char* text) {
  auto parsed = Address::parse(text);
  EXPECT_TRUE(parsed) << text;
  return *parsed;
}

NoGid refused(const PortFacts& facts, const Address& wanted = {}) {
  auto choice = choose_gid(facts, wanted);
  EXPECT_FALSE(choice) << choice->why;
  return choice ? NoGid{} : choice.error();
}

TEST(GidChoice, PrefersRoceV2WithIpv4) {
  const auto choice = choose_gid(healthy());
  ASSERT_TRUE(choice) << choice.error().to_string();
  EXPECT_EQ(choice->index, 5U);
  EXPECT_EQ(choice->type, GidType::roce_v2);
  EXPECT_EQ(choice->path_mtu_bytes, 4096U);
  EXPECT_EQ(choice->why, "RoCEv2 with the IPv4 address 10.0.0.7");
  EXPECT_EQ(choice->note, "");
}

TEST(GidChoice, ThenGlobalIpv6ThenLinkLocal) {
  PortFacts facts = healthy();
  facts.gids.resize(4);
  auto choice = choose_gid(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->index, 3U);
  facts.gids.resize(2);
  choice = choose_gid(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->index, 1U);
  EXPECT_THAT(choice->why, HasSubstr("link-local"));
  EXPECT_THAT(choice->note, HasSubstr("ip address add ADDRESS/PREFIX dev eth2"));
}

TEST(GidChoice, TakesTheWantedAddressOrNone) {
  PortFacts facts = healthy();
  facts.gids.push_back(gid(7, GidType::roce_v2, "::ffff:10.0.1.7"));
  EXPECT_EQ(choose_gid(facts, address("10.0.1.7:7400"))->index, 7U);
  EXPECT_EQ(choose_gid(facts, address("[fd00::7]:7400"))->index, 3U);
  // Everywhere is anywhere.
  EXPECT_EQ(choose_gid(facts, address("0.0.0.0:7400"))->index, 5U);
  EXPECT_EQ(choose_gid(facts, address("[::]:7400"))->index, 5U);
  const NoGid problem = refused(facts, address("10.9.9.9:7400"));
  EXPECT_EQ(problem.problem, GidProblem::wrong_address);
  EXPECT_THAT(problem.to_string(), HasSubstr("no RoCEv2 GID has the address 10.9.9.9"));
}

TEST(GidChoice, RefusesAPortThatIsDown) {
  PortFacts facts = healthy();
  facts.physical_state = "Disabled";
  for (const PortState state : {PortState::no_port, PortState::down, PortState::init, PortState::armed}) {
    facts.state = state;
    const NoGid problem = refused(facts);
    EXPECT_EQ(problem.problem, GidProblem::port_down);
    EXPECT_THAT(problem.text, HasSubstr("mlx5_0 port 1 ("));
    EXPECT_THAT(problem.text, HasSubstr(std::string(port_state_name(state))));
    EXPECT_THAT(problem.fix, HasSubstr("ip link set eth2 up"));
  }
  facts.link_layer = LinkLayer::infiniband;
  EXPECT_THAT(refused(facts).fix, HasSubstr("subnet manager"));
}

TEST(GidChoice, RefusesRoceV1) {
  PortFacts facts = healthy();
  keep_only(facts, GidType::roce_v1);
  const NoGid problem = refused(facts);
  EXPECT_EQ(problem.problem, GidProblem::only_roce_v1);
  EXPECT_THAT(problem.text, HasSubstr("GID 4 RoCEv1 10.0.0.7"));
  EXPECT_THAT(problem.fix, HasSubstr("cma_roce_mode -d mlx5_0 -p 1 -m 2"));
  // Not even for the address that is asked for.
  EXPECT_EQ(refused(facts, address("10.0.0.7:7400")).problem, GidProblem::only_roce_v1);
}

TEST(GidChoice, SaysWhenTheInterfaceIsElsewhere) {
  PortFacts facts = healthy();
  facts.netdev.clear();
  // A bond's port may have no interface of its own, while its GIDs name the bond.
  for (Gid& entry : facts.gids) entry.netdev = "bond0";
  EXPECT_TRUE(choose_gid(facts));
  for (Gid& entry : facts.gids) entry.netdev.clear();
  const NoGid problem = refused(facts);
  EXPECT_EQ(problem.problem, GidProblem::no_netdev);
  EXPECT_THAT(problem.fix, HasSubstr("rdma dev set mlx5_0 netns"));
}

TEST(GidChoice, SaysWhenThereIsNoAddress) {
  PortFacts facts = healthy();
  facts.gids.clear();
  EXPECT_EQ(refused(facts).problem, GidProblem::no_gid);
  facts.gids.push_back({.index = 0, .type = GidType::roce_v2, .netdev = "eth2"});  // zeroes are no address
  EXPECT_EQ(refused(facts).problem, GidProblem::no_gid);
}

TEST(GidChoice, FitsTheMtuToTheInterface) {
  struct Case {
    uint32_t netdev;
    uint32_t fits;
  };
  for (const Case& c : {Case{9000, 4096}, Case{4192, 4096}, Case{4191, 2048}, Case{1500, 1024}, Case{1280, 1024},
                        Case{1119, 512}, Case{352, 256}, Case{351, 0}, Case{0, 0}}) {
    EXPECT_EQ(roce_mtu_for(c.netdev), c.fits) << c.netdev;
  }
  PortFacts facts = healthy();
  facts.netdev_mtu_bytes = 1500;
  const auto choice = choose_gid(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->path_mtu_bytes, 1024U);
  EXPECT_THAT(choice->note, HasSubstr("ip link set eth2 mtu 4200"));
  // What isn't known is left to the device.
  facts.netdev_mtu_bytes = 0;
  facts.active_mtu_bytes = 2048;
  EXPECT_EQ(choose_gid(facts)->path_mtu_bytes, 2048U);
}

TEST(GidChoice, TakesInfinibandAndIwarpAsTheyAre) {
  PortFacts facts = healthy();
  facts.link_layer = LinkLayer::infiniband;
  facts.netdev.clear();
  facts.gids = {gid(0, GidType::infiniband, "fe80::aa")};
  auto choice = choose_gid(facts);
  ASSERT_TRUE(choice) << choice.error().to_string();
  EXPECT_EQ(choice->type, GidType::infiniband);
  EXPECT_EQ(choice->path_mtu_bytes, 4096U);
  facts.gids.clear();
  EXPECT_EQ(refused(facts).problem, GidProblem::no_gid);
  facts.iwarp = true;
  facts.link_layer = LinkLayer::ethernet;
  EXPECT_TRUE(choose_gid(facts));
  facts.iwarp = false;
  facts.link_layer = LinkLayer::unspecified;
  EXPECT_EQ(refused(facts).problem, GidProblem::unknown_link_layer);
}

TEST(GidChoice, DescribesAPortInOneLine) {
  EXPECT_EQ(describe(healthy()),
            "mlx5_0 port 1 (active, LinkUp; Ethernet, eth2; GID 0 RoCEv1 fe80::1, GID 1 RoCEv2 fe80::1, GID 2 RoCEv1 "
            "fd00::7, GID 3 RoCEv2 fd00::7, 2 more)");
}

}  // namespace
}  // namespace cairn::srpc::rdma
