// ShardRig: a real shard on a FaultDevice and a MemoryStore, to be started, stopped and crashed, for tests of this
// module and those above it. The fault models are theirs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "engine/shard.h"
#include "engine/testing/fault_device.h"
#include "kv/memory_store.h"
#include "mem/pool.h"
#include "replica/testing/test_loop.h"

namespace cairn::replica {

class ShardRig {
 public:
  ShardRig(TestLoop& loop, Rng& rng, Id128 device_id, uint32_t number, uint64_t bytes)
      : loop_(loop),
        rng_(rng),
        extent_{.device = device_id, .shard = number, .offset = 0, .length = bytes, .journal_bytes = 16 << 20},
        contents_(std::make_shared<std::vector<std::byte>>(bytes)),
        store_(loop, {.read_max = microseconds(20), .flush_max = microseconds(300)}) {}
  ShardRig(const ShardRig&) = delete;
  ShardRig& operator=(const ShardRig&) = delete;

  // Opens the shard, formatting it the first time.
  void start(mem::Pool& pool, Registry& registry) {
    store_.power_on();
    device_ = std::make_unique<engine::test::FaultDevice>(loop_, rng_, contents_);
    const engine::Shard::Context context{
        .loop = loop_, .registry = registry, .pool = pool, .device = *device_, .store = store_};
    if (!std::exchange(formatted_, true)) {
      const auto formatted = loop_.run(&engine::Shard::format, context, extent_);
      ASSERT_TRUE(formatted) << formatted.error().to_string();
    }
    auto opened = loop_.run(&engine::Shard::open, context, extent_, options);
    ASSERT_TRUE(opened) << opened.error().to_string();
    shard_ = *std::move(opened);
  }
  // What is under way ends with errors from now on, and no longer changes what the next start finds.
  void power_off() {
    device_->power_off();
    store_.power_off(rng_);
  }
  void stop() {
    loop_.run([](engine::Shard* shard) { return shard->close(); }, shard_.get());
    shard_.reset();
    ASSERT_TRUE(loop_.run_until([&] { return device_->under_way() == 0; }));
    device_.reset();
  }

  engine::Shard& shard() { return *shard_; }
  engine::test::FaultDevice& device() { return *device_; }
  kv::MemoryStore& store() { return store_; }
  std::vector<std::byte>& contents() { return *contents_; }
  const engine::ShardExtent& extent() const { return extent_; }

  engine::ShardOptions options{.cache_bytes = 8 << 20, .dirty_bytes = 8 << 20};

 private:
  TestLoop& loop_;
  Rng& rng_;
  engine::ShardExtent extent_;
  std::shared_ptr<std::vector<std::byte>> contents_;
  kv::MemoryStore store_;
  std::unique_ptr<engine::test::FaultDevice> device_;
  std::unique_ptr<engine::Shard> shard_;
  bool formatted_ = false;
};

}  // namespace cairn::replica
