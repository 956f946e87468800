#include "tools/srpc/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::srpc::tools {
namespace {

TEST(Target, TakesAddressesWithAndWithoutAPort) {
  const auto host = ReactorHost::create({.mode = Mode::economy, .memory = size_t{2} << 20});
  ASSERT_TRUE(host) << host.error().to_string();
  struct Row {
    const char* text;
    const char* address;
  };
  for (const Row row : {Row{"127.0.0.1", "127.0.0.1:7400"}, Row{"127.0.0.1:1", "127.0.0.1:1"}, Row{"::1", "[::1]:7400"},
                        Row{"[::1]", "[::1]:7400"}, Row{"[::1]:65535", "[::1]:65535"}}) {
    const auto found = find_server(**host, row.text, 7400);
    ASSERT_TRUE(found) << row.text << ": " << found.error().to_string();
    EXPECT_EQ(found->to_string(), row.address);
  }
  for (const char* text : {"", ":", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "[::1", "[::1]:", "no such name"}) {
    EXPECT_FALSE(find_server(**host, text, 7400)) << text;
  }
}

TEST(Target, KnowsItsWords) {
  for (const Way way : {Way::near, Way::tcp, Way::shm, Way::rdma}) EXPECT_EQ(*parse_way(way_name(way)), way);
  for (const Mode mode : {Mode::performance, Mode::economy, Mode::automatic}) {
    EXPECT_EQ(*parse_mode(mode_name(mode)), mode);
  }
  const auto unknown = parse_way("ib");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(), "'ib' is no transport: take one of near, auto, tcp, shm, rdma");
}

}  // namespace
}  // namespace cairn::srpc::tools
