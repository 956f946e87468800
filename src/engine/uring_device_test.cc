#include "engine/uring_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "engine/memory_device.h"
#include "mem/arena.h"
#include "mem/pool.h"
#include "reactor/reactor.h"

namespace cairn::engine {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = testing::TempDir() + "/cairn_device_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { (void)::system(("rm -rf '" + path_ + "'").c_str()); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  DeviceTest() : rng(7), arena(*mem::Arena::create(16 * kMiB)) {
    reactor = *Reactor::create({.wake_cost = microseconds(30), .rng = rng, .registry = registry});
    pool = std::make_unique<mem::Pool>(*reactor, registry, arena.memory(), 0);
    if (std::string(GetParam()) == "memory") {
      device = std::make_unique<MemoryDevice>(*reactor, 64 * kMiB);
    } else {
      auto made = DiskFile::create(folder / "device", 64 * kMiB);
      EXPECT_TRUE(made) << made.error().to_string();
      file = std::make_unique<DiskFile>(std::move(*made));
      device = std::make_unique<UringDevice>(*reactor, *file, registry);
    }
  }

  TempFolder folder;
  SeededRng rng;
  Registry registry;
  std::unique_ptr<Reactor> reactor;
  mem::Arena arena;
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<DiskFile> file;
  std::unique_ptr<BlockDevice> device;
};
INSTANTIATE_TEST_SUITE_P(Kinds, DeviceTest, testing::Values("memory", "file"),
                         [](const auto& info) { return std::string(info.param); });

// Buffers of the given sizes, filled with a pattern that tells every 4 KiB apart.
mem::BufChain pattern(mem::Pool& pool, std::vector<size_t> sizes, uint8_t seed) {
  mem::BufChain chain;
  uint8_t page = seed;
  for (const size_t size : sizes) {
    auto buf = *pool.try_alloc(size, mem::Purpose::internal);
    for (size_t i = 0; i < size; i += kBlockBytes) {
      std::ranges::fill(buf.writable_bytes().subspan(i, kBlockBytes), std::byte{page++});
    }
    chain.append(std::move(buf));
  }
  return chain;
}

std::vector<std::byte> content(const mem::BufChain& chain) {
  std::vector<std::byte> bytes(chain.size());
  chain.copy_metadata_to(bytes);
  return bytes;
}

Task<void> write_flush_read(BlockDevice* device, mem::Pool* pool) {
  auto written = pattern(*pool, {4096, 65536, 16384, 1048576}, 3);
  const auto expected = content(written);
  EXPECT_TRUE(co_await write(*device, 3 * kMiB, std::move(written)));
  EXPECT_TRUE(co_await flush(*device));
  // The same bytes through other pieces.
  auto into = pattern(*pool, {1048576, 4096, 65536, 16384}, 0);
  EXPECT_TRUE(co_await read(*device, 3 * kMiB, into));
  EXPECT_EQ(content(into), expected);
  // The last block of the device.
  EXPECT_TRUE(co_await write(*device, device->size_bytes() - 4096, pattern(*pool, {4096}, 9)));
  auto last = pattern(*pool, {4096}, 0);
  EXPECT_TRUE(co_await read(*device, device->size_bytes() - 4096, last));
  EXPECT_EQ(last.slices()[0].data()[17], std::byte{9});
  EXPECT_TRUE(co_await discard(*device, 3 * kMiB, kMiB));
}

TEST_P(DeviceTest, ReadsWhatWasWritten) { reactor->run_task(&write_flush_read, device.get(), pool.get()); }

Task<void> write_one(BlockDevice* device, mem::Pool* pool, uint64_t page) {
  EXPECT_TRUE(co_await write(*device, page * 4096, pattern(*pool, {4096}, static_cast<uint8_t>(page))));
}

Task<void> write_many(Reactor* reactor, BlockDevice* device, mem::Pool* pool) {
  // Far more than the queue depth, so that some wait inside the device.
  Scope scope(*reactor);
  for (uint64_t page = 0; page < 3 * UringDevice::kQueueDepth; ++page) scope.spawn(&write_one, device, pool, page);
  co_await scope.join();
  for (uint64_t page = 0; page < 3 * UringDevice::kQueueDepth; page += 97) {
    auto into = pattern(*pool, {4096}, 0);
    EXPECT_TRUE(co_await read(*device, page * 4096, into));
    EXPECT_EQ(into.slices()[0].data()[4095], std::byte{static_cast<uint8_t>(page)});
  }
}

TEST_P(DeviceTest, QueuesWhatIsBeyondItsDepth) {
  reactor->run_task(&write_many, reactor.get(), device.get(), pool.get());
}

Task<Result<void>> read_one(BlockDevice* device, mem::Pool* pool, uint64_t offset) {
  co_return co_await read(*device, offset, pattern(*pool, {65536}, 0));
}

class DiskFileTest : public testing::Test {
 protected:
  TempFolder folder;
};

TEST_F(DiskFileTest, ReportsAFileThatBecameShorter) {
  SeededRng rng(1);
  Registry registry;
  auto reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
  auto arena = *mem::Arena::create(2 * kMiB);
  mem::Pool pool(*reactor, registry, arena.memory(), 0);
  auto file = *DiskFile::create(folder / "device", 8 * kMiB);
  UringDevice device(*reactor, file, registry);
  ASSERT_EQ(::ftruncate(file.fd(), 4 * kMiB + 4096), 0);
  EXPECT_TRUE(reactor->run_task(&read_one, &device, &pool, 1 * kMiB));
  // Begins before the end: a short read, then nothing.
  EXPECT_EQ(reactor->run_task(&read_one, &device, &pool, 4 * kMiB).code(), Errc::io_error);
  EXPECT_EQ(reactor->run_task(&read_one, &device, &pool, 6 * kMiB).code(), Errc::io_error);
}

TEST_F(DiskFileTest, IsOpenedOnce) {
  auto first = DiskFile::create(folder / "device", kMiB);
  ASSERT_TRUE(first) << first.error().to_string();
  auto second = DiskFile::open(folder / "device");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.code(), Errc::busy);
  EXPECT_NE(second.error().message().find("in use by another process"), std::string::npos);
  first = Error(Errc::closed);
  EXPECT_TRUE(DiskFile::open(folder / "device"));
}

TEST_F(DiskFileTest, NeverOverwritesAnExistingFile) {
  {
    std::ofstream(folder / "device") << "precious";
  }
  auto created = DiskFile::create(folder / "device", kMiB);
  EXPECT_EQ(created.code(), Errc::already_exists);
  struct stat status{};
  ASSERT_EQ(::stat((folder / "device").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 8);
}

TEST_F(DiskFileTest, RefusesWhatIsNoDevice) {
  EXPECT_EQ(DiskFile::open(folder / "missing").code(), Errc::not_found);
  EXPECT_EQ(DiskFile::open("/dev/null").code(), Errc::unsupported);
  EXPECT_EQ(DiskFile::open("/").code(), Errc::unsupported);
  {
    std::ofstream(folder / "small") << "x";
  }
  EXPECT_EQ(DiskFile::open(folder / "small").code(), Errc::invalid_argument);
  EXPECT_EQ(DiskFile::create(folder / "odd", 4097).code(), Errc::invalid_argument);
}

TEST_F(DiskFileTest, KeepsAllocatedSpaceAndGivesBackASparseFiles) {
  auto allocated = *DiskFile::create(folder / "allocated", kMiB);
  EXPECT_FALSE(allocated.supports_discard());
  EXPECT_EQ(allocated.size_bytes(), kMiB);
  {
    const Fd sparse(::open((folder / "sparse").c_str(), O_RDWR | O_CREAT, 0600));
    ASSERT_EQ(::ftruncate(sparse.get(), kMiB + 100), 0);
  }
  auto sparse = *DiskFile::open(folder / "sparse");
  EXPECT_TRUE(sparse.supports_discard());
  EXPECT_EQ(sparse.size_bytes(), kMiB);  // whole blocks
}

TEST_F(DiskFileTest, AFailedFlushSpoilsAllLaterOnesOnAllReactors) {
  auto file = DiskFile::create(folder / "device", kMiB);
  ASSERT_TRUE(file);
  const auto flush_it = [](UringDevice* device) -> Task<Errc> { co_return (co_await flush(*device)).code(); };
  SeededRng rng(1);
  Registry registry;
  auto reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
  {
    UringDevice device(*reactor, *file, registry);
    EXPECT_EQ(reactor->run_task(flush_it, &device), Errc::ok);
    file->set_flush_failed();
    EXPECT_EQ(reactor->run_task(flush_it, &device), Errc::io_error);
  }
  file = Error(Errc::closed);
  file = DiskFile::open(folder / "device");
  Registry another;
  UringDevice device(*reactor, *file, another);
  EXPECT_EQ(reactor->run_task(flush_it, &device), Errc::ok);
}

// A loop device, where we are allowed to make one.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) {
    const std::string command = "losetup --find --show '" + file + "' 2>/dev/null";
    FILE* pipe = ::popen(command.c_str(), "r");
    char line[64] = {};
    if (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr)
      path = std::string(line, std::strcspn(line, "\n"));
    if (pipe != nullptr) ::pclose(pipe);
  }
  ~LoopDevice() {
    if (!path.empty()) (void)::system(("losetup --detach " + path).c_str());
  }
  std::string path;
};

TEST_F(DiskFileTest, DrivesBlockDevices) {
  {
    auto file = DiskFile::create(folder / "image", 8 * kMiB);
  }
  const LoopDevice loop_device(folder / "image");
  if (loop_device.path.empty()) GTEST_SKIP() << "no right to make a loop device here";
  auto file = DiskFile::open(loop_device.path);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_TRUE(file->is_block_device());
  EXPECT_EQ(file->size_bytes(), 8 * kMiB);
  EXPECT_EQ(DiskFile::open(loop_device.path).code(), Errc::busy);

  SeededRng rng(1);
  Registry registry;
  auto reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
  auto arena = *mem::Arena::create(4 * kMiB);
  mem::Pool pool(*reactor, registry, arena.memory(), 0);
  UringDevice device(*reactor, *file, registry);
  reactor->run_task(&write_flush_read, &device, &pool);
}

TEST_F(DiskFileTest, TooLargeAFileSaysNoSpaceAndLeavesNothing) {
  auto created = DiskFile::create(folder / "huge", uint64_t{1} << 50);
  EXPECT_TRUE(created.code() == Errc::no_space || created.code() == Errc::too_large) << created.error().to_string();
  struct stat status{};
  EXPECT_NE(::stat((folder / "huge").c_str(), &status), 0);
}

}  // namespace
}  // namespace cairn::engine
