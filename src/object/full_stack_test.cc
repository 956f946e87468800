// The object layer on everything below it: real shards on disks that lose and tear what was not flushed, groups, SRPC
// in process, in one thread of simulated time.
#include <gmock/gmock.h>

#include "client/testing/node_rig.h"
#include "object/janitor.h"
#include "object/store_test_fixture.h"
#include "object/store_test_workload.h"

namespace cairn::object {
namespace {

class FullStackTest : public ::testing::Test {
 public:
  FullStackTest() { start(); }
  ~FullStackTest() override {
    if (store) stop();
  }

  void start() {
    rig.start();
    ++lives;
    const Identity identity{.owner = client::NodeRig::kNode, .life = Id128{{2, static_cast<uint8_t>(lives)}}};
    metrics = std::make_unique<Registry>();
    store = std::make_unique<Store>(
        Store::Context{.loop = rig.loop, .client = *rig.client, .registry = *metrics, .wall = rig.wall}, identity);
    janitor = std::make_unique<Janitor>(
        Janitor::Context{.loop = rig.loop, .client = *rig.client, .registry = *metrics, .wall = rig.wall},
        Janitor::Options{.groups = rig.client->all_groups(), .sweeps = true, .identity = identity});
    janitor->start();
  }
  void stop() {
    rig.loop.run(&Janitor::close, janitor.get());
    rig.loop.run(&Store::close, store.get());
    janitor.reset();
    store.reset();
    rig.stop();
  }
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    return rig.loop.run(std::move(function), std::move(arguments)...);
  }
  void create_bucket() {
    ASSERT_TRUE(run(&Store::create_bucket, store.get(), std::string("b"), std::string("me"), CallContext{}));
  }
  static Task<Result<ObjectInfo>> put_task(FullStackTest* test, std::string key, std::string body) {
    CO_TRY(auto writer, co_await test->store->put("b", std::move(key), {}));
    CO_TRY(co_await write_all(test->rig.pool.get(), writer.get(), body, 1 << 20));
    co_return co_await writer->commit({.etag = etag_of(body)});
  }
  Result<ObjectInfo> put(std::string key, std::string body) {
    return run(&put_task, this, std::move(key), std::move(body));
  }
  Result<std::string> body_of(std::string key) {
    return run(&get, store.get(), std::string("b"), std::move(key), static_cast<RangeChooser*>(nullptr));
  }
  engine::SpaceUsage usage() {
    engine::SpaceUsage sum;
    for (auto& shard : rig.shards) {
      const engine::SpaceUsage one = shard->shard().usage();
      sum.used_bytes += one.used_bytes;
      sum.pending_bytes += one.pending_bytes;
      sum.freeing_bytes += one.freeing_bytes;
    }
    return sum;
  }

  client::NodeRig rig{{.seed = 3, .shards = 2, .groups = 4, .shard_bytes = uint64_t{96} << 20}};
  std::unique_ptr<Registry> metrics;
  std::unique_ptr<Store> store;
  std::unique_ptr<Janitor> janitor;
  int lives = 0;
};

TEST_F(FullStackTest, ObjectsGoInAndComeOutWithoutACopy) {
  create_bucket();
  const std::string body = pattern(9 << 20, 1);
  const uint64_t before = rig.pool->copied().value();
  ASSERT_TRUE(put("key", body));
  EXPECT_TRUE(*body_of("key") == body);
  EXPECT_EQ(rig.pool->copied().value(), before);
  stop();
  start();
  EXPECT_TRUE(*body_of("key") == body);
}

// Random operations on twelve keys, power cuts and orderly stops at random points, checks after each.
TEST_F(FullStackTest, PowerCutsLoseNothingThatWasAcknowledged) {
  create_bucket();
  Workload workload(12, {0, 1, 4096, 10'000, 66'000, 300'000, 1'100'000});
  for (int round = 0; round < 12; ++round) {
    const Workload::Env env{&rig.loop, rig.pool.get(), store.get()};
    for (size_t key = 0; key < workload.keys(); ++key) run(&Workload::verify, &workload, env, key);
    workload.stop = false;
    Scope scope(rig.loop);
    for (size_t key = 0; key < workload.keys(); ++key) scope.spawn(&Workload::work, &workload, env, key);
    rig.loop.run_for(microseconds(static_cast<int64_t>(rig.loop.rng().below(60'000))));
    if (round % 3 != 2) rig.power_off();
    workload.stop = true;
    ASSERT_TRUE(rig.loop.run_until([&] { return scope.running() == 0; }));
    stop();
    start();
    // Some rounds leave time for the sweep and the reaper, others cut them off.
    rig.loop.run_for(rig.loop.rng().chance(1, 2) ? seconds(20) : microseconds(300));
  }
  const Workload::Env env{&rig.loop, rig.pool.get(), store.get()};
  for (size_t key = 0; key < workload.keys(); ++key) run(&Workload::verify, &workload, env, key);
  EXPECT_GT(workload.operations, 300u);

  const auto uploads =
      run(&Store::list_uploads, store.get(), std::string("b"), ObjectStore::UploadQuery{}, CallContext{});
  ASSERT_TRUE(uploads);
  for (const UploadInfo& upload : uploads->uploads) {
    ASSERT_TRUE(run(&Store::abort_upload, store.get(), std::string("b"), upload.key, upload.upload_id, CallContext{}));
  }
  rig.loop.run_for(seconds(60));
  EXPECT_TRUE(janitor->swept());
  const auto report = run(&Janitor::check_orphans, janitor.get(), CallContext{});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->orphans + report->in_flight + report->queued, 0u);
  EXPECT_EQ(report->chunks, report->referenced);
  // P49: what is used is what is live, in units of 64 KiB, within a minute.
  EXPECT_GE(usage().used_bytes, workload.live_bytes());
  EXPECT_LE(usage().used_bytes, workload.live_bytes() + 2 * engine::kUnitBytes * workload.live_objects());
}

// P48 with real shards: writes are refused, everything that gives space back works, also over a restart, and the space
// comes back within a minute.
TEST_F(FullStackTest, AFullDeviceCanBeEmptied) {
  create_bucket();
  std::vector<std::string> keys;
  Errc code = Errc::ok;
  for (int i = 0; code == Errc::ok && i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    code = put(key, pattern(5 << 20, i)).code();
    if (code == Errc::ok) keys.push_back(key);
  }
  EXPECT_EQ(code, Errc::no_space);
  EXPECT_GT(keys.size(), 10u);
  EXPECT_EQ(put(keys[0], pattern(5 << 20, 77)).code(), Errc::no_space);
  EXPECT_TRUE(*body_of(keys[0]) == pattern(5 << 20, 0));
  stop();
  start();
  EXPECT_TRUE(*body_of(keys[1]) == pattern(5 << 20, 1));
  for (const std::string& key : keys) {
    ASSERT_TRUE(run(&Store::remove, store.get(), std::string("b"), key, WriteConditions{}, CallContext{}));
  }
  ASSERT_TRUE(run(&Store::remove_bucket, store.get(), std::string("b"), CallContext{}));
  rig.loop.run_for(seconds(60));
  EXPECT_EQ(usage().used_bytes, 0u);
  create_bucket();
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_TRUE(put(keys[i], pattern(5 << 20, i))) << i;
}

TEST_F(FullStackTest, RottenBitsAreAnErrorOfThatObject) {
  create_bucket();
  ASSERT_TRUE(put("good", pattern(300'000, 1)));
  ASSERT_TRUE(put("bad", pattern(300'000, 2)));
  stop();
  // A page of "bad" that is in no journal any more.
  const std::string page = pattern(300'000, 2).substr(65'536 * 2, 4096);
  int found = 0;
  for (auto& shard : rig.shards) {
    auto& contents = shard->contents();
    for (size_t at = 0; at + page.size() <= contents.size(); at += 4096) {
      if (std::memcmp(&contents[at], page.data(), page.size()) != 0) continue;
      contents[at + 100] ^= std::byte{4};
      ++found;
    }
  }
  ASSERT_EQ(found, 1);
  start();
  EXPECT_TRUE(*body_of("good") == pattern(300'000, 1));
  EXPECT_EQ(body_of("bad").code(), Errc::corrupt);
  EXPECT_TRUE(put("bad", "new"));
  EXPECT_EQ(*body_of("bad"), "new");
}

}  // namespace
}  // namespace cairn::object
