#include "object/reaper.h"

#include <gtest/gtest.h>

#include "object/keys.h"
#include "object/store_test_fixture.h"

namespace cairn::object {
namespace {

using Operation = client::MemoryClient::Operation;

constexpr engine::GroupId kGroup{0};

struct Queue {
  World* world;
  Time until;
  uint64_t written = 0;
};

// Queues items, one at a time, as a client that deletes one object after the other does.
Task<void> queue_items(Queue* queue) {
  World& world = *queue->world;
  while (world.loop.now() < queue->until) {
    Id128 unique{};
    world.loop.rng().fill(std::as_writable_bytes(std::span(unique.bytes)));
    kv::Batch batch;
    batch.mutations.push_back({keys::garbage(world.wall.unix_ns(), unique), GarbageRecord{}.encode()});
    EXPECT_TRUE(co_await world.client.kv_batch(kGroup, std::move(batch), mem::Purpose::internal, {}));
    ++queue->written;
  }
}

// Each look finds something when there are deletes all the time. Looking again at once would make many small batches,
// each with a scan, a check of leases and a commit.
TEST(Reaper, SteadyDeletesGoInBatches) {
  World world(1, {.groups = 1, .latency_max = milliseconds(5)});
  JanitorMetrics metrics(world.registry);
  Semaphore turns(world.loop, 16);
  Scope background(world.loop);
  Reaper reaper({.loop = world.loop, .client = world.client, .wall = world.wall, .background = background}, metrics,
                turns, kGroup);
  background.spawn(&Reaper::run, &reaper);

  Queue queue{.world = &world, .until = world.loop.now() + seconds(10)};
  Scope deletes(world.loop);
  for (int i = 0; i < 20; ++i) deletes.spawn(&queue_items, &queue);
  world.loop.run_for(seconds(11));
  EXPECT_EQ(deletes.running(), 0u);
  EXPECT_GT(queue.written, 10'000u);
  // Two looks a second, and a few more for what doesn't fit in one.
  EXPECT_LE(world.client.calls(Operation::kv_scan), 22 + queue.written / 512);

  world.loop.run_for(seconds(60));
  EXPECT_EQ(metrics.reaped.value(), queue.written);
  world.loop.run(+[](Scope* scope) -> Task<void> { co_await scope->close(); }, &background);
}

}  // namespace
}  // namespace cairn::object
