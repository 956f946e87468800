// A whole node of one reactor in the simulator: from the object store down to a disk that loses power.
#include "node/storage_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "engine/device.h"
#include "kv/memory_store.h"
#include "mem/arena.h"
#include "sim/sim_disk.h"
#include "sim/simulator.h"

namespace cairn::node {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr Id128 kCluster{{1}};
constexpr Id128 kNodeId{{2}};
const std::string kBucket = "bucket";

class SimWallClock final : public WallClock {
 public:
  explicit SimWallClock(const Clock& clock) : clock_(clock) {}
  int64_t unix_ns() const override { return 1'700'000'000'000'000'000 + clock_.now().ns; }

 private:
  const Clock& clock_;
};

// There is no other poll group.
class Nowhere final : public client::SrpcClient::Connectors {
 public:
  std::unique_ptr<srpc::Connector> make(const control::NodeEntry&, uint16_t) override {
    ADD_FAILURE() << "a node of one reactor looked for another one";
    return nullptr;
  }
};

// Bytes that differ from key to key and from version to version.
std::string body_of(uint64_t version, size_t size) {
  std::string body(size + 8, '\0');
  SeededRng rng(version * 1000 + size);
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t word = rng.next();
    std::memcpy(body.data() + at, &word, sizeof word);
  }
  body.resize(size);
  return body;
}

// What survives: disk and stores. What doesn't: everything else.
class World {
 public:
  explicit World(uint64_t seed)
      : sim_(seed), loop_(sim_), wall_(loop_), rng_(sim_.make_rng("test")), disk_(loop_, {.size_bytes = 256 * kMiB}) {}

  void format() {
    begin_life();
    const auto formatted = sim_.run(loop_, &engine::format_device, engine::DeviceContext{disk_, *pool_},
                                    engine::FormatOptions{.cluster = kCluster, .shards = 2}, std::ref<Rng>(rng_));
    ASSERT_TRUE(formatted) << formatted.error().to_string();
    device_ = *formatted;
    for (uint32_t i = 0; i < device_.geometry.shard_count; ++i) {
      stores_.push_back(std::make_unique<kv::MemoryStore>(
          loop_, kv::MemoryStore::Latency{.read_max = microseconds(50), .flush_max = milliseconds(1)}));
    }
    const auto map = control::make_single_node_map(
        kCluster, {.id = kNodeId, .name = "n", .address = "127.0.0.1:7400", .poll_groups = 1},
        {{device_.device, kNodeId, device_.geometry.shard_count}});
    ASSERT_TRUE(map) << map.error().to_string();
    map_ = *map;
  }

  void start() {
    begin_life();
    ++lives_;
    node_.emplace(StorageNode::Context{loop_, *registry_, *pool_, wall_, nowhere_},
                  StorageNode::Options{.node = kNodeId,
                                       .life = Id128{{3, static_cast<uint8_t>(lives_)}},
                                       .poll_group = 0,
                                       .map = map_,
                                       .shard = {.cache_bytes = 4 * kMiB, .checkpoint_interval = milliseconds(20)}});
    std::vector<StorageNode::Seat> seats;
    for (uint32_t i = 0; i < stores_.size(); ++i) seats.push_back({device_.extent(i), disk_, *stores_[i]});
    const auto opened = sim_.run(loop_, &StorageNode::open, &*node_, std::move(seats));
    ASSERT_TRUE(opened) << opened.error().to_string();
    node_->start_background();
  }

  void stop() {
    sim_.run(loop_, &StorageNode::close_clients, &*node_);
    sim_.run(loop_, &StorageNode::close, &*node_, loop_.now() + seconds(1));
    node_.reset();
  }

  // What survives is decided now; whatever is under way fails.
  void cut_power() {
    disk_.power_off();
    for (const auto& store : stores_) store->power_off(rng_);
  }
  void restore_power() {
    disk_.power_on();
    for (const auto& store : stores_) store->power_on();
  }

  Task<Result<void>> put(std::string key, std::string body) {
    CO_TRY(auto writer, co_await node_->objects().put(kBucket, key, context()));
    const std::string etag = std::to_string(crc32c(body.data(), body.size()));
    for (size_t at = 0; at < body.size(); at += kMiB) {
      const size_t size = std::min<size_t>(kMiB, body.size() - at);
      CO_TRY(mem::BufChain chain, co_await pool_->alloc_chain(size));
      for (size_t done = 0; const mem::Buf& slice : chain.slices()) {
        mem::Buf writable = slice;
        std::memcpy(writable.writable(), body.data() + at + done, slice.size());
        done += slice.size();
      }
      CO_TRY(co_await writer->write(std::move(chain)));
    }
    CO_TRY(co_await writer->commit({.etag = etag, .attributes = {}, .checksum = {}, .conditions = {}}));
    co_return Result<void>();
  }

  Task<Result<std::string>> get(std::string key) {
    CO_TRY(auto reader, co_await node_->objects().open(kBucket, key, nullptr, context()));
    std::string body;
    for (;;) {
      CO_TRY(const mem::BufChain piece, co_await reader->next());
      if (piece.empty()) co_return body;
      piece.for_each([&](std::span<const std::byte> bytes) {
        body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      });
    }
  }

  Task<Result<void>> create_bucket() {
    CO_TRY(co_await node_->objects().create_bucket(kBucket, "owner", context()));
    co_return Result<void>();
  }

  object::CallContext context() { return {.deadline = loop_.now() + seconds(20), .cancel = {}}; }
  sim::Simulator& sim() { return sim_; }
  sim::SimLoop& loop() { return loop_; }
  Rng& rng() { return rng_; }

 private:
  void begin_life() {
    pool_.reset();
    registry_ = std::make_unique<Registry>();
    pool_ = std::make_unique<mem::Pool>(loop_, *registry_, arena_.memory(), 8 * kMiB);
  }

  sim::Simulator sim_;
  sim::SimLoop loop_;
  SimWallClock wall_;
  SeededRng rng_;
  Nowhere nowhere_;
  mem::Arena arena_ = *mem::Arena::create(64 * kMiB);
  sim::SimDisk disk_;
  std::vector<std::unique_ptr<kv::MemoryStore>> stores_;
  engine::DeviceInfo device_;
  control::ClusterMap map_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<mem::Pool> pool_;
  std::optional<StorageNode> node_;
  uint32_t lives_ = 0;
};

// What may be read of a key: its last acknowledged version, or one whose outcome was never told.
struct Expected {
  std::optional<std::string> acknowledged;
  std::vector<std::string> uncertain;
};

Task<void> write_for_ever(World* world, uint64_t number, std::map<std::string, Expected>* expected) {
  for (uint64_t version = 0;; ++version) {
    const std::string key = "key " + std::to_string(number) + "." + std::to_string(version % 3);
    const size_t sizes[] = {0, 1, 5000, 70'000, 1 * kMiB + 17};
    const std::string body = body_of(number * 100 + version, sizes[version % std::size(sizes)]);
    Expected& known = (*expected)[key];
    known.uncertain.push_back(body);
    if (!co_await world->put(key, body)) co_return;  // the power is off
    known = {.acknowledged = body, .uncertain = {}};
  }
}

TEST(StorageNodeSim, ObjectsSurviveAStop) {
  World world(7);
  world.format();
  world.start();
  ASSERT_TRUE(world.sim().run(world.loop(), &World::create_bucket, &world));
  const std::string body = body_of(1, 5 * kMiB + 3);
  const auto put = world.sim().run(world.loop(), &World::put, &world, std::string("k"), body);
  ASSERT_TRUE(put) << put.error().to_string();
  world.stop();
  world.start();
  const auto got = world.sim().run(world.loop(), &World::get, &world, std::string("k"));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(*got, body);
  world.stop();
}

TEST(StorageNodeSim, WhatWasAcknowledgedSurvivesPowerCuts) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    world.format();
    world.start();
    ASSERT_TRUE(world.sim().run(world.loop(), &World::create_bucket, &world));
    std::map<std::string, Expected> expected;
    size_t checked = 0;
    for (int life = 0; life < 3; ++life) {
      Scope writers(world.loop());
      for (uint64_t number = 0; number < 4; ++number) writers.spawn(&write_for_ever, &world, number, &expected);
      world.sim().run_for(milliseconds(static_cast<int64_t>(1 + world.rng().below(60))));
      world.cut_power();
      world.sim().run(world.loop(), &Scope::join, &writers);
      world.stop();
      world.restore_power();
      world.start();
      for (auto& [key, known] : expected) {
        const auto got = world.sim().run(world.loop(), &World::get, &world, key);
        if (!got) {
          ASSERT_EQ(got.code(), Errc::not_found) << key << ": " << got.error().to_string();
          ASSERT_FALSE(known.acknowledged.has_value()) << key << " is gone";
          continue;
        }
        ++checked;
        const bool whole = (known.acknowledged && *got == *known.acknowledged) ||
                           std::ranges::find(known.uncertain, *got) != known.uncertain.end();
        ASSERT_TRUE(whole) << key << " has " << got->size() << " bytes that nobody wrote like that";
        // From now on it is what every later read must see.
        known = {.acknowledged = *got, .uncertain = {}};
      }
    }
    EXPECT_GT(checked, 0u);
    world.stop();
  }
}

}  // namespace
}  // namespace cairn::node
