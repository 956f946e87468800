#include <gmock/gmock.h>

#include "object/janitor.h"
#include "object/keys.h"
#include "object/store_test_fixture.h"

namespace cairn::object {
namespace {

class BucketsTest : public StoreTest {
 public:
  Result<BucketInfo> create(Store* its, std::string name = "new") {
    return run(&Store::create_bucket, its, std::move(name), std::string("me"), CallContext{});
  }
  Result<void> remove_bucket(Store* its, std::string name = "new") {
    return run(&Store::remove_bucket, its, std::move(name), CallContext{});
  }
  Result<BucketInfo> head(Store* its, std::string name = "new") {
    return run(&Store::head_bucket, its, std::move(name), CallContext{});
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const BucketInfo& bucket : *run(&Store::list_buckets, store.get(), CallContext{})) out.push_back(bucket.name);
    return out;
  }
};

TEST_F(BucketsTest, ComeAndGo) {
  ASSERT_TRUE(create(store.get()));
  EXPECT_EQ(create(store.get()).code(), Errc::already_exists);
  EXPECT_EQ(head(store.get())->owner, "me");
  EXPECT_GT(head(store.get())->created_unix_ns, 0);
  EXPECT_THAT(names(), ::testing::ElementsAre("b", "new"));
  ASSERT_TRUE(remove_bucket(store.get()));
  EXPECT_EQ(head(store.get()).code(), Errc::not_found);
  EXPECT_EQ(remove_bucket(store.get()).code(), Errc::not_found);
  EXPECT_THAT(names(), ::testing::ElementsAre("b"));
}

TEST_F(BucketsTest, OnlyEmptyOnesCanBeRemoved) {
  ASSERT_TRUE(must_put("key", "body"));
  EXPECT_EQ(remove_bucket(store.get(), "b").code(), Errc::condition_failed);
  EXPECT_EQ(*body_of("key"), "body");
  ASSERT_TRUE(must_put("other", "body")) << "it was not left frozen";
  ASSERT_TRUE(remove("key"));
  ASSERT_TRUE(remove("other"));
  EXPECT_TRUE(remove_bucket(store.get(), "b"));
}

// A second store knows an old bucket under the name; nothing that happened since may be hidden from it.
TEST_F(BucketsTest, ACachedBucketThatCameAgain) {
  auto other = world.open_store();
  ASSERT_TRUE(create(store.get()));
  const auto put_new = [&](Store* its, std::string body) {
    return run(&put, &world, its, std::string("new"), std::string("key"), std::move(body), WriteConditions{});
  };
  const auto get_new = [&](Store* its) {
    return run(&get, its, std::string("new"), std::string("key"), static_cast<RangeChooser*>(nullptr));
  };
  ASSERT_TRUE(put_new(other.get(), "first"));
  ASSERT_TRUE(
      run(&Store::remove, store.get(), std::string("new"), std::string("key"), WriteConditions{}, CallContext{}));
  ASSERT_TRUE(remove_bucket(store.get()));
  EXPECT_EQ(get_new(other.get()).error().message(), "bucket");
  ASSERT_TRUE(create(store.get()));
  ASSERT_TRUE(put_new(store.get(), "second"));
  EXPECT_EQ(*get_new(other.get()), "second");

  ASSERT_TRUE(
      run(&Store::remove, store.get(), std::string("new"), std::string("key"), WriteConditions{}, CallContext{}));
  ASSERT_TRUE(remove_bucket(store.get()));
  ASSERT_TRUE(create(store.get()));
  ASSERT_TRUE(put_new(other.get(), "third")) << "written to the bucket that is there now";
  EXPECT_EQ(*get_new(store.get()), "third");
  const auto listed = run(&Store::list, other.get(), std::string("new"), ListQuery{}, CallContext{});
  EXPECT_EQ(listed->objects.size(), 1u);
  loop.run(&Store::close, other.get());
}

// Puts race with removals and creations on three gateways: a put that was acknowledged is in the bucket or the bucket
// could not be removed.
TEST_F(BucketsTest, NoPutIsLostToARemoval) {
  auto second = world.open_store();
  auto third = world.open_store();
  struct State {
    int acknowledged = 0;
    int removed = 0;
  };
  struct Racer {
    static Task<void> puts(BucketsTest* test, Store* its, int number, State* state) {
      (void)co_await test->loop.sleep(microseconds(static_cast<int64_t>(test->loop.rng().below(1500))));
      const auto done = co_await put(&test->world, its, "new", "key" + std::to_string(number), "body");
      if (done) ++state->acknowledged;
      if (!done) EXPECT_EQ(done.error().message(), "bucket");
    }
    static Task<void> removes(BucketsTest* test, Store* its, State* state) {
      (void)co_await test->loop.sleep(microseconds(static_cast<int64_t>(test->loop.rng().below(1500))));
      if (co_await its->remove_bucket("new", {})) ++state->removed;
    }
  };
  int removed = 0;
  int kept = 0;
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(create(store.get()));
    State state;
    Scope scope(loop);
    scope.spawn(&Racer::puts, this, second.get(), 1, &state);
    scope.spawn(&Racer::puts, this, third.get(), 2, &state);
    scope.spawn(&Racer::removes, this, store.get(), &state);
    if (round % 2 == 0) scope.spawn(&Racer::removes, this, third.get(), &state);
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    EXPECT_LE(state.removed, 1);
    const auto listed = run(&Store::list, store.get(), std::string("new"), ListQuery{}, CallContext{});
    if (state.removed == 1) {
      ++removed;
      EXPECT_EQ(state.acknowledged, 0);
      EXPECT_EQ(listed.code(), Errc::not_found);
    } else {
      ++kept;
      ASSERT_TRUE(listed);
      EXPECT_EQ(static_cast<int>(listed->objects.size()), state.acknowledged);
      for (const ObjectInfo& object : listed->objects) {
        ASSERT_TRUE(run(&Store::remove, store.get(), std::string("new"), object.key, WriteConditions{}, CallContext{}));
      }
      ASSERT_TRUE(remove_bucket(store.get()));
    }
  }
  EXPECT_GT(removed, 10);
  EXPECT_GT(kept, 10);
  loop.run(&Store::close, second.get());
  loop.run(&Store::close, third.get());
}

TEST_F(BucketsTest, OfManyCreatorsOneWins) {
  struct Racer {
    static Task<void> run(Store* its, int* created) {
      const auto done = co_await its->create_bucket("new", "me", {});
      if (done) ++*created;
      if (!done) EXPECT_EQ(done.code(), Errc::already_exists);
    }
  };
  for (int round = 0; round < 50; ++round) {
    int created = 0;
    Scope scope(loop);
    for (int i = 0; i < 8; ++i) scope.spawn(&Racer::run, store.get(), &created);
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    EXPECT_EQ(created, 1);
    ASSERT_TRUE(remove_bucket(store.get()));
  }
}

// The cluster goes down in the middle of creating and removing. Afterwards the bucket is there or not, whole, and can
// be created and removed.
TEST_F(BucketsTest, ACrashLeavesNothingHalfDone) {
  struct Worker {
    static Task<void> run(Store* its) {
      (void)co_await its->create_bucket("new", "me", {});
      (void)co_await its->remove_bucket("new", {});
      (void)co_await its->create_bucket("new", "me", {});
    }
  };
  for (int round = 0; round < 100; ++round) {
    Scope scope(loop);
    scope.spawn(&Worker::run, store.get());
    loop.run_for(microseconds(static_cast<int64_t>(loop.rng().below(3000))));
    world.client.power_off();
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    loop.run(&Store::close, store.get());
    store = world.open_store();
    world.client.power_on();
    const auto found = head(store.get());
    if (found) {
      EXPECT_TRUE(
          run(&put, &world, store.get(), std::string("new"), std::string("key"), std::string("x"), WriteConditions{}));
      EXPECT_TRUE(
          run(&Store::remove, store.get(), std::string("new"), std::string("key"), WriteConditions{}, CallContext{}));
      EXPECT_TRUE(remove_bucket(store.get()));
    } else {
      EXPECT_EQ(found.code(), Errc::not_found);
    }
    EXPECT_TRUE(create(store.get()));
    EXPECT_TRUE(remove_bucket(store.get()));
  }
}

TEST_F(BucketsTest, UploadsDontKeepABucketAndAreAborted) {
  ASSERT_TRUE(create(store.get()));
  const auto upload = run(&Store::create_upload, store.get(), std::string("new"), std::string("key"),
                          ObjectStore::UploadOptions{}, CallContext{});
  auto writer = *run(&Store::put_part, store.get(), std::string("new"), std::string("key"), *upload, 1u, CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, writer.get(), pattern(100'000, 1), size_t{64} << 10));
  ASSERT_TRUE(run(&Writer::commit, writer.get(), Writer::Commit{.etag = "e"}));
  writer.reset();
  ASSERT_TRUE(remove_bucket(store.get()));
  Janitor janitor({.loop = loop, .client = world.client, .registry = world.registry, .wall = world.wall},
                  {.groups = world.client.all_groups(), .identity = {}});
  janitor.start();
  loop.run_for(seconds(60));
  loop.run(&Janitor::close, &janitor);
  EXPECT_EQ(world.client.chunks().size(), 0u);
  for (const engine::GroupId group : world.client.all_groups()) {
    for (const auto& [key, value] : world.client.contents(group)) {
      EXPECT_FALSE(key.starts_with("u/") || key.starts_with("p/") || key.starts_with("q/")) << key;
    }
  }
}

TEST_F(BucketsTest, AccessKeys) {
  const ObjectStore::AccessKey key{.access_key = "AK", .secret_key = "secret", .created_unix_ns = 5, .note = "first"};
  const auto lookup = [&](Store* its) { return run(&Store::get_access_key, its, std::string("AK"), CallContext{}); };
  EXPECT_EQ(lookup(store.get()).code(), Errc::not_found);
  ASSERT_TRUE(run(&Store::put_access_key, store.get(), key, CallContext{}));
  EXPECT_EQ(run(&Store::put_access_key, store.get(), key, CallContext{}).code(), Errc::already_exists);
  EXPECT_EQ(lookup(store.get())->secret_key, "secret") << "not found before doesn't hide it";
  EXPECT_EQ(run(&Store::list_access_keys, store.get(), CallContext{})->front().note, "first");
  auto other = world.open_store();
  ASSERT_TRUE(lookup(other.get()));
  ASSERT_TRUE(run(&Store::remove_access_key, store.get(), std::string("AK"), CallContext{}));
  EXPECT_EQ(lookup(store.get()).code(), Errc::not_found);
  EXPECT_EQ(run(&Store::remove_access_key, store.get(), std::string("AK"), CallContext{}).code(), Errc::not_found);
  loop.run_for(seconds(5));
  EXPECT_EQ(lookup(other.get()).code(), Errc::not_found) << "a few seconds later everywhere";
  const uint64_t before = world.client.calls(client::MemoryClient::Operation::kv_get);
  (void)run(&Store::get_access_key, store.get(), std::string(5000, 'x'), CallContext{});
  EXPECT_EQ(world.client.calls(client::MemoryClient::Operation::kv_get), before);
  loop.run(&Store::close, other.get());
}

}  // namespace
}  // namespace cairn::object
