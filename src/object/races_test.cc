// What happens when many change one key, and when answers get lost.
#include <gmock/gmock.h>

#include "object/janitor.h"
#include "object/store_test_fixture.h"
#include "object/store_test_workload.h"

namespace cairn::object {
namespace {

using client::MemoryClient;

class RacesTest : public StoreTest {
 public:
  RacesTest() {
    for (int i = 0; i < 2; ++i) others.push_back(world.open_store());
  }
  ~RacesTest() override {
    for (auto& other : others) loop.run(&Store::close, other.get());
  }
  Store* gateway(size_t number) { return number % 3 == 0 ? store.get() : others[number % 3 - 1].get(); }

  std::vector<std::unique_ptr<Store>> others;
};

// P26: exactly one of 32 conditional puts through three gateways wins, and the object is the winner's.
TEST_F(RacesTest, OneConditionalPutWins) {
  struct Racer {
    static Task<void> run(RacesTest* test, Store* its, std::string body, WriteConditions conditions,
                          std::vector<std::string>* winners) {
      const auto done = co_await put(&test->world, its, "b", "key", body, conditions);
      if (done) winners->push_back(body);
      if (!done) EXPECT_THAT(done.code(), ::testing::AnyOf(Errc::already_exists, Errc::condition_failed));
    }
  };
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::string> winners;
    Scope scope(loop);
    for (size_t i = 0; i < 32; ++i) {
      scope.spawn(&Racer::run, this, gateway(i), std::to_string(round) + "/" + std::to_string(i),
                  WriteConditions{.if_none_match_any = true}, &winners);
    }
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    ASSERT_EQ(winners.size(), 1u) << round;
    ASSERT_EQ(*body_of("key"), winners.front());
    if (round % 10 == 0) {
      // The same with If-Match of what is there.
      std::vector<std::string> next;
      for (size_t i = 0; i < 8; ++i) {
        scope.spawn(&Racer::run, this, gateway(i), "match " + std::to_string(i),
                    WriteConditions{.if_match = etag_of(winners.front())}, &next);
      }
      ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
      ASSERT_EQ(next.size(), 1u);
      ASSERT_EQ(*body_of("key"), next.front());
    }
    ASSERT_TRUE(remove("key"));
  }
}

// Without conditions everybody succeeds, and no data is lost track of.
TEST_F(RacesTest, UnconditionalPutsAllSucceed) {
  struct Racer {
    static Task<void> run(RacesTest* test, Store* its, std::string body, int* done) {
      if (co_await put(&test->world, its, "b", "key", body)) ++*done;
    }
  };
  for (int round = 0; round < 20; ++round) {
    int done = 0;
    Scope scope(loop);
    for (size_t i = 0; i < 32; ++i) scope.spawn(&Racer::run, this, gateway(i), pattern(5000 + i, i), &done);
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    EXPECT_EQ(done, 32);
  }
  Janitor janitor({.loop = loop, .client = world.client, .registry = world.registry, .wall = world.wall},
                  {.groups = world.client.all_groups(), .identity = {}});
  janitor.start();
  loop.run_for(seconds(60));
  EXPECT_EQ(world.client.chunks().size(), 1u);
  const auto report = run(&Janitor::check_orphans, &janitor, CallContext{});
  EXPECT_EQ(report->referenced, 1u);
  EXPECT_EQ(report->orphans + report->in_flight + report->queued, 0u);
  loop.run(&Janitor::close, &janitor);
}

// A PUT whose answer was lost is found out about, not guessed.
TEST_F(RacesTest, ALostAnswerIsFoundOut) {
  ASSERT_TRUE(must_put("key", "opens the write session"));
  for (const auto fault : {MemoryClient::Fault::lose_call, MemoryClient::Fault::lose_reply}) {
    for (int round = 0; round < 30; ++round) {
      int batches = 0;
      world.client.set_fault_hook([&](MemoryClient::Operation operation) {
        // The first batch of the put is its commit.
        return operation == MemoryClient::Operation::kv_batch && ++batches == 1 ? fault : MemoryClient::Fault::none;
      });
      const std::string body = pattern(20'000, static_cast<uint64_t>(round));
      const auto done = must_put("key", body);
      ASSERT_TRUE(done) << done.error().to_string();
      world.client.set_fault_hook({});
      EXPECT_TRUE(*body_of("key") == body);
    }
  }
}

// Every call may fail, with and without effect. What was acknowledged is there; what wasn't is whole or absent; nobody
// gets another object's bytes; and after a sweep every chunk belongs to somebody.
TEST_F(RacesTest, FaultsNeverLoseOrMixAnything) {
  Workload workload(12, {0, 1, 4096, 10'000, 10'001, 100'000, 1'100'000, 4'200'000});
  const auto start_janitor = [&](bool sweeps) {
    auto janitor = std::make_unique<Janitor>(
        Janitor::Context{.loop = loop, .client = world.client, .registry = world.registry, .wall = world.wall},
        Janitor::Options{.groups = world.client.all_groups(),
                         .sweeps = sweeps,
                         .identity = {.owner = kNode, .life = Id128{{2, static_cast<uint8_t>(world.lives)}}}});
    janitor->start();
    return janitor;
  };
  auto janitor = start_janitor(false);
  for (int round = 0; round < 12; ++round) {
    loop.run_for(seconds(30));  // so that what is deleted doesn't pile up
    workload.stop = false;
    uint64_t faults = 0;
    world.client.set_fault_hook([&](MemoryClient::Operation) {
      if (!loop.rng().chance(1, 25)) return MemoryClient::Fault::none;
      ++faults;
      const MemoryClient::Fault all[] = {MemoryClient::Fault::refuse, MemoryClient::Fault::lose_call,
                                         MemoryClient::Fault::lose_reply};
      return all[loop.rng().below(3)];
    });
    Scope scope(loop);
    for (size_t key = 0; key < workload.keys(); ++key) {
      scope.spawn(&Workload::work, &workload, Workload::Env{&loop, &world.pool, gateway(key)}, key);
    }
    loop.run_for(milliseconds(15));
    const bool power_cut = round % 4 == 3;
    if (power_cut) world.client.power_off();
    workload.stop = true;
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    EXPECT_GT(faults, 10u);
    world.client.set_fault_hook({});
    if (power_cut) {
      loop.run(&Store::close, store.get());
      for (auto& other : others) loop.run(&Store::close, other.get());
      store = world.open_store();
      for (auto& other : others) other = world.open_store();
      world.client.power_on();
    }
    for (size_t key = 0; key < workload.keys(); ++key) {
      run(&Workload::verify, &workload, Workload::Env{&loop, &world.pool, store.get()}, key);
    }
  }
  EXPECT_GT(workload.failures, 50u);
  EXPECT_GT(workload.operations, 1000u);

  // The next life finds what was left behind. Twelve stores have lived by now: each life counts as the next one.
  loop.run(&Store::close, store.get());
  for (auto& other : others) loop.run(&Store::close, other.get());
  store = world.open_store();
  for (auto& other : others) other = world.open_store();
  const auto uploads =
      run(&Store::list_uploads, store.get(), std::string("b"), ObjectStore::UploadQuery{}, CallContext{});
  for (const UploadInfo& upload : uploads->uploads) {
    ASSERT_TRUE(run(&Store::abort_upload, store.get(), std::string("b"), upload.key, upload.upload_id, CallContext{}));
  }
  loop.run(&Janitor::close, janitor.get());
  janitor = start_janitor(true);
  loop.run_for(seconds(120));
  EXPECT_TRUE(janitor->swept());
  const auto report = run(&Janitor::check_orphans, janitor.get(), CallContext{});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->orphans, 0u);
  EXPECT_EQ(report->queued, 0u);
  EXPECT_EQ(report->in_flight, 0u);
  EXPECT_EQ(report->chunks, report->referenced);
  loop.run(&Janitor::close, janitor.get());
  for (size_t key = 0; key < workload.keys(); ++key) {
    run(&Workload::verify, &workload, Workload::Env{&loop, &world.pool, store.get()}, key);
  }
  // Objects only, in whole pages: nothing else takes space.
  EXPECT_LE(world.client.used_bytes(), workload.live_bytes() + 2 * 4096 * workload.live_objects());
  EXPECT_GE(world.client.used_bytes(), workload.live_bytes());
}

}  // namespace
}  // namespace cairn::object
