// What can be shown on a machine without RDMA devices; the rest is shown on soft-RoCE (tests/vm).
#include "srpc/verbs/system_verbs.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "srpc/rdma/device.h"

namespace cairn::srpc::rdma {
namespace {

TEST(SystemVerbs, SaysWhatThereIsAndWhatNot) {
  const auto verbs = system_verbs();
  const auto found = verbs->devices();
  ASSERT_TRUE(found) << found.error().to_string();
  const auto opened = verbs->open("none of this name");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().verb, Verb::open_device);
  EXPECT_EQ(opened.error().error, ENODEV);
  const auto device = Device::open(*verbs, {.device = "none"}, {});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message(), "none port 1: ibv_open_device: No such device; 'rdma link' shows what there is");
  for (const Verbs::Found& each : *found) EXPECT_TRUE(verbs->open(each.name)) << each.name;
}

}  // namespace
}  // namespace cairn::srpc::rdma
