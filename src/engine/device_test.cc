#include "engine/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/device_header.h"
#include "engine/sealed_block.h"
#include "engine/superblock.h"
#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

class DeviceFormatTest : public ::testing::Test {
 protected:
  DeviceFormatTest() { resize(256); }

  void resize(uint64_t mib) {
    contents->resize(mib * kMiB);
    device = std::make_unique<test::FaultDevice>(rig.loop, rig.rng, contents);
  }
  DeviceContext context() { return {*device, *rig.pool}; }
  Result<DeviceInfo> format(bool force = false) {
    const FormatOptions options{.cluster = cluster, .shards = 8, .force = force};
    return rig.loop.run([](DeviceContext c, FormatOptions o, Rng* rng) { return format_device(c, o, *rng); }, context(),
                        options, &static_cast<Rng&>(rig.rng));
  }
  bool is(const std::vector<std::byte>& before) const {
    return std::memcmp(contents->data(), before.data(), before.size()) == 0;
  }
  Result<DeviceInfo> open() { return rig.loop.run(&open_device, context()); }
  void change_headers(const std::function<void(DeviceHeader&)>& change) {
    for (const uint64_t offset : kDeviceHeaderCopies) {
      const auto place = std::span(*contents).subspan(offset, kPageBytes);
      auto header = load<DeviceHeader>(place);
      change(header);
      seal(header);
      store(place, header);
    }
  }

  test::Rig rig{{.pool_bytes = 32 * test::kMegabyte}};
  std::shared_ptr<std::vector<std::byte>> contents = std::make_shared<std::vector<std::byte>>();
  std::unique_ptr<test::FaultDevice> device;
  const Id128 cluster{{42}};
};

TEST_F(DeviceFormatTest, FormatsABlankDeviceOnce) {
  EXPECT_EQ(open().code(), Errc::not_found);
  const auto made = format();
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->geometry.shard_count, 3u);
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ(opened->device, made->device);
  EXPECT_EQ(opened->cluster, cluster);
  EXPECT_EQ(opened->extent(2).offset, made->geometry.shard_offset(2));
  EXPECT_EQ(format().code(), Errc::already_exists);
  EXPECT_TRUE(open());
  const auto again = format(true);
  ASSERT_TRUE(again);
  EXPECT_NE(again->device, made->device);
}

TEST_F(DeviceFormatTest, EveryShardOpens) {
  const auto made = format();
  ASSERT_TRUE(made);
  for (uint32_t i = 0; i < made->geometry.shard_count; ++i) {
    const auto superblock =
        rig.loop.run([](DeviceContext c, ShardExtent e) { return load_superblock(c.device, c.pool, e); }, context(),
                     made->extent(i));
    ASSERT_TRUE(superblock) << superblock.error().to_string();
    EXPECT_TRUE(superblock->clean);
  }
}

struct Refusal {
  const char* name;
  std::function<void(std::vector<std::byte>&)> prepare;
  Errc code;
  const char* says;
};

TEST_F(DeviceFormatTest, RefusesWhatIsNotItsOwn) {
  const Refusal cases[] = {
      {"file system", [](auto& bytes) { bytes[1024 + 56] = std::byte{0x53}; }, Errc::already_exists, "offset 1080"},
      {"last byte of the first MiB", [](auto& bytes) { bytes[kMiB - 1] = std::byte{1}; }, Errc::already_exists,
       "clear its first MiB"},
  };
  for (const Refusal& c : cases) {
    SCOPED_TRACE(c.name);
    std::memset(contents->data(), 0, contents->size());
    c.prepare(*contents);
    const auto before = *contents;
    const auto opened = open();
    EXPECT_EQ(opened.code(), c.code);
    EXPECT_NE(opened.error().message().find(c.says), std::string::npos) << opened.error().message();
    EXPECT_EQ(format().code(), c.code);
    EXPECT_TRUE(is(before)) << "it wrote";
    EXPECT_TRUE(format(true));
  }
}

TEST_F(DeviceFormatTest, RefusesANewerFormat) {
  ASSERT_TRUE(format());
  change_headers([](DeviceHeader& header) { header.version = DeviceHeader::kVersion + 1; });
  const auto before = *contents;
  EXPECT_EQ(open().code(), Errc::unsupported);
  EXPECT_NE(open().error().message().find("upgrade"), std::string::npos);
  EXPECT_EQ(format().code(), Errc::unsupported);
  EXPECT_TRUE(is(before));
}

TEST_F(DeviceFormatTest, OneCopyOfTheHeaderIsEnough) {
  ASSERT_TRUE(format());
  for (const uint64_t offset : kDeviceHeaderCopies) {
    device->rot(offset + 70);
    EXPECT_TRUE(open());
    device->rot(offset + 70);
    (*contents)[offset] = std::byte{0};  // not even the magic
    EXPECT_TRUE(open());
    (*contents)[offset] = std::byte{'C'};
  }
  for (const uint64_t offset : kDeviceHeaderCopies) device->rot(offset + 70);
  EXPECT_EQ(open().code(), Errc::corrupt);
  EXPECT_EQ(format().code(), Errc::corrupt);
}

TEST_F(DeviceFormatTest, NoticesThatItWasCut) {
  ASSERT_TRUE(format());
  contents->resize(200 * kMiB);
  const auto opened = open();
  EXPECT_EQ(opened.code(), Errc::invalid_argument);
  EXPECT_NE(opened.error().message().find("cut"), std::string::npos);
  contents->resize(300 * kMiB);
  EXPECT_TRUE(open());
}

TEST_F(DeviceFormatTest, SaysTheMinimum) {
  resize(100);
  const auto made = format();
  EXPECT_EQ(made.code(), Errc::invalid_argument);
  EXPECT_NE(made.error().message().find("256 MiB"), std::string::npos);
}

// At any moment of formatting the power may go: then it is blank or half formatted, and formatting it again works.
TEST_F(DeviceFormatTest, AnInterruptedFormatIsDoneAgain) {
  // Around the two header writes at the beginning, in the journals, and around the two at the end.
  for (const uint64_t operations : {0, 1, 2, 3, 4, 5, 30, 66, 67, 68, 69, 70, 71, 72}) {
    SCOPED_TRACE(operations);
    std::memset(contents->data(), 0, contents->size());
    device = std::make_unique<test::FaultDevice>(rig.loop, rig.rng, contents);
    uint64_t left = operations;
    device->fault = [&](const IoRequest&) { return left-- > 0 ? Errc::ok : Errc::io_error; };
    const bool done = format().has_value();
    EXPECT_EQ(done, operations == 72);
    if (done) break;
    device->power_off();
    device = std::make_unique<test::FaultDevice>(rig.loop, rig.rng, contents);
    const Errc found = open().code();
    EXPECT_TRUE(found == Errc::not_found || found == Errc::unavailable || found == Errc::ok ||
                found == Errc::already_exists)
        << errc_name(found);
    if (found == Errc::unavailable) {
      EXPECT_NE(open().error().message().find("format it again"), std::string::npos);
    }
    if (found != Errc::already_exists) {
      EXPECT_TRUE(found == Errc::ok || format());
    }
  }
}

TEST(SuperblockTest, APairIsWrittenTwice) {
  test::Rig rig;
  rig.format();
  const auto layout = ShardLayout::of(rig.extent).value();
  const auto load_it = [&] {
    return rig.loop.run([](Shard::Context c, ShardExtent e) { return load_superblock(c.device, c.pool, e); },
                        rig.context(), rig.extent);
  };
  Superblock superblock = load_it().value();
  for (uint64_t generation = 2; generation < 7; ++generation) {
    superblock.generation = generation;
    superblock.checkpoint = generation * 10;
    ASSERT_TRUE(rig.loop.run(
        [](Shard::Context c, ShardExtent e, Superblock s) { return write_superblock(c.device, c.pool, e, s); },
        rig.context(), rig.extent, superblock));
    ASSERT_EQ(load_it()->checkpoint, generation * 10);
    // Either copy may rot.
    for (uint32_t copy = 0; copy < 2; ++copy) {
      const uint64_t at = layout.superblock_offset(superblock_slot(generation, copy)) + 50;
      rig.device->rot(at);
      EXPECT_EQ(load_it()->checkpoint, generation * 10);
      rig.device->rot(at);
    }
  }
  for (uint32_t slot = 0; slot < kSuperblockSlots; ++slot) rig.device->rot(layout.superblock_offset(slot) + 50);
  EXPECT_EQ(load_it().code(), Errc::corrupt);
}

}  // namespace
}  // namespace cairn::engine
