#include "replica/group.h"

#include <gtest/gtest.h>

#include <map>

#include "mem/arena.h"
#include "replica/testing/shard_rig.h"

namespace cairn::replica {
namespace {

using engine::ChunkId;
using engine::GroupId;
using Kind = kv::Condition::Kind;

constexpr uint64_t kMiB = 1 << 20;

ChunkId chunk(uint8_t number) { return {{7, 0, 0, number}}; }

struct GroupTest : ::testing::Test {
  ~GroupTest() override {
    if (group) stop();
  }

  void start(GroupId id = GroupId(3)) {
    registry = std::make_unique<Registry>();
    pool = std::make_unique<mem::Pool>(loop, *registry, arena.memory(), 8 * kMiB);
    metrics = std::make_unique<GroupMetrics>(*registry);
    rig.start(*pool, *registry);
    group = loop.run(&Group::open, Group::Context{loop, *metrics, rig.shard(), rig.store()}, id);
    rig.shard().forget_recovered();
  }
  void stop() {
    loop.run(&Group::close, group.get());
    group.reset();
    rig.stop();
    pool.reset();
  }
  void crash() {
    rig.power_off();
    stop();
  }

  mem::BufChain payload(size_t size, char fill) {
    mem::BufChain chain;
    for (size_t left = size; left > 0;) {
      mem::Buf buf = *pool->try_alloc(std::min<size_t>(left, kMiB), mem::Purpose::internal);
      std::memset(buf.writable(), fill, buf.size());
      left -= buf.size();
      chain.append(std::move(buf));
    }
    return chain;
  }
  Result<void> write(ChunkId id, size_t size, char fill) {
    return loop.run(&Group::chunk_write, group.get(), id, 0u, payload(size, fill), CancelToken());
  }
  Result<std::string> read(ChunkId id) {
    auto chain =
        loop.run(&Group::chunk_read, group.get(), id, 0u, engine::kChunkBytes, CancelToken(), mem::Purpose::client);
    if (!chain) return chain.error();
    std::string out(chain->size(), '\0');
    chain->copy_metadata_to(std::as_writable_bytes(std::span(out)));
    return out;
  }
  Result<void> remove(ChunkId id) { return loop.run(&Group::chunk_delete, group.get(), id, CancelToken()); }
  Result<void> batch(kv::Batch its) {
    return loop.run(&Group::kv_batch, group.get(), std::move(its), mem::Purpose::client, CancelToken());
  }
  Result<void> set(std::string key, std::string value) {
    return batch({.conditions = {}, .mutations = {{std::move(key), std::move(value)}}});
  }
  std::optional<std::string> get(std::string key) {
    auto value = loop.run(&Group::kv_get, group.get(), std::move(key), CancelToken());
    EXPECT_TRUE(value);
    return *value;
  }

  TestLoop loop{5};
  SeededRng rng{6};
  mem::Arena arena = *mem::Arena::create(64 * kMiB);
  std::unique_ptr<Registry> registry;
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<GroupMetrics> metrics;
  ShardRig rig{loop, rng, Id128{{1}}, 0, 40 * kMiB};
  std::unique_ptr<Group> group;
};

TEST_F(GroupTest, BothStateMachinesShareOneLog) {
  start();
  ASSERT_TRUE(write(chunk(1), 100'000, 'a'));
  ASSERT_TRUE(set("key", "value"));
  EXPECT_EQ(*read(chunk(1)), std::string(100'000, 'a'));
  EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(group->status().last_index, engine::Index(2));
  EXPECT_EQ(group->status().applied_index, engine::Index(2));
  ASSERT_TRUE(remove(chunk(1)));
  EXPECT_EQ(read(chunk(1)).code(), Errc::not_found);
}

TEST_F(GroupTest, ConditionsAreCheckedAtOnceAndChangeNothingWhenTheyFail) {
  start();
  ASSERT_TRUE(batch({.conditions = {{"a", Kind::absent}}, .mutations = {{"a", "1"}, {"b", "1"}}}));
  const auto failed =
      batch({.conditions = {{"b", Kind::equals, "1"}, {"a", Kind::absent}}, .mutations = {{"a", "2"}, {"b", "2"}}});
  EXPECT_EQ(failed.code(), Errc::condition_failed);
  EXPECT_EQ(failed.error().message(), "1");
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "1");
  const auto last = group->status().last_index;
  ASSERT_TRUE(batch({.conditions = {{"a", Kind::present}}, .mutations = {}}));
  EXPECT_EQ(group->status().last_index, last) << "a batch that changes nothing needs no entry";
}

TEST_F(GroupTest, OfManyConditionalBatchesExactlyOneWins) {
  start();
  struct Racer {
    static Task<void> run(Group* group, int number, std::vector<int>* winners) {
      kv::Batch batch{.conditions = {{"key", Kind::absent}}, .mutations = {{"key", std::to_string(number)}}};
      const auto done = co_await group->kv_batch(std::move(batch), mem::Purpose::client, {});
      if (done) winners->push_back(number);
      EXPECT_TRUE(done || done.code() == Errc::condition_failed);
    }
  };
  for (int round = 0; round < 50; ++round) {
    std::vector<int> winners;
    Scope scope(loop);
    for (int i = 0; i < 32; ++i) scope.spawn(&Racer::run, group.get(), i, &winners);
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    ASSERT_EQ(winners.size(), 1u);
    EXPECT_EQ(get("key"), std::to_string(winners.front()));
    ASSERT_TRUE(batch({.conditions = {}, .mutations = {{"key", std::nullopt}}}));
  }
}

// What was acknowledged is there after every kind of restart, and no write that was refused ever shows up.
TEST_F(GroupTest, SurvivesRestartsAtRandomPoints) {
  struct Model {
    std::map<std::string, std::string> kv;        // acknowledged
    std::map<std::string, std::string> kv_maybe;  // under way when it stopped
    std::map<ChunkId, char> chunks;               // '\0': deleted
    std::map<ChunkId, std::vector<char>> maybe;
  } model;
  struct Worker {
    static Task<void> run(GroupTest* test, Model* model, uint8_t number, bool* stop) {
      const std::string key = "k" + std::to_string(number);
      for (int i = 0; !*stop; ++i) {
        const std::string value = std::to_string(i) + "/" + std::to_string(test->loop.now().ns);
        model->kv_maybe[key] = value;
        kv::Batch batch{.conditions = {}, .mutations = {{key, value}}};
        if (!co_await test->group->kv_batch(std::move(batch), mem::Purpose::client, {})) co_return;
        model->kv[key] = value;

        const ChunkId id = chunk(number);
        const char fill = static_cast<char>('a' + i % 26);
        const bool deletes = i % 5 == 4;
        model->maybe[id].push_back(deletes ? '\0' : fill);
        const auto done = deletes ? co_await test->group->chunk_delete(id, {})
                                  : co_await test->group->chunk_write(
                                        id, 0, test->payload(number % 2 == 0 ? 8192 : 131'072, fill), {});
        if (!done) co_return;
        model->chunks[id] = deletes ? '\0' : fill;
        model->maybe[id].clear();
      }
    }
  };
  for (int round = 0; round < 16; ++round) {
    start();
    for (const auto& [key, value] : model.kv) {
      const auto now = get(key);
      EXPECT_TRUE(now == value || now == model.kv_maybe[key]) << round << " " << key;
      if (now) model.kv[key] = *now;
    }
    for (auto& [id, fill] : model.chunks) {
      const auto now = read(id);
      EXPECT_TRUE(now || now.code() == Errc::not_found);
      const char found = now ? now->front() : '\0';
      const std::vector<char>& maybe = model.maybe[id];
      EXPECT_TRUE(found == fill || std::ranges::find(maybe, found) != maybe.end()) << round;
      if (now) EXPECT_EQ(now->find_first_not_of(found), std::string::npos) << "torn";
      fill = found;
      model.maybe[id].clear();
    }
    bool stop_now = false;
    Scope scope(loop);
    for (uint8_t i = 0; i < 6; ++i) scope.spawn(&Worker::run, this, &model, i, &stop_now);
    loop.run_for(microseconds(static_cast<int64_t>(loop.rng().below(30'000))));
    const bool power_cut = round % 3 != 0;
    if (power_cut) rig.power_off();
    stop_now = true;
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    stop();
  }
}

TEST_F(GroupTest, GroupsOfOneShardDontMix) {
  start(GroupId(3));
  ASSERT_TRUE(set("key", "three"));
  ASSERT_TRUE(write(chunk(1), 4096, 'a'));
  auto other = loop.run(&Group::open, Group::Context{loop, *metrics, rig.shard(), rig.store()}, GroupId(4));
  std::swap(group, other);
  EXPECT_EQ(get("key"), std::nullopt);
  ASSERT_TRUE(set("key", "four"));
  ASSERT_TRUE(write(chunk(2), 4096, 'b'));
  const auto listed = loop.run(&Group::chunk_list, group.get(), ChunkId(), size_t{10}, CancelToken());
  ASSERT_TRUE(listed);
  EXPECT_EQ(*listed, std::vector{chunk(2)});
  std::swap(group, other);
  EXPECT_EQ(get("key"), "three");
  loop.run(&Group::close, other.get());
}

TEST_F(GroupTest, ListsInPages) {
  start();
  std::vector<ChunkId> all;
  for (uint8_t i = 0; i < 25; ++i) {
    all.push_back(chunk(i));
    ASSERT_TRUE(write(chunk(i), 4096, 'x'));
  }
  std::vector<ChunkId> listed;
  for (ChunkId after;;) {
    const auto page = loop.run(&Group::chunk_list, group.get(), after, size_t{7}, CancelToken());
    ASSERT_TRUE(page);
    listed.insert(listed.end(), page->begin(), page->end());
    if (page->size() < 7) break;
    after = page->back();
  }
  EXPECT_EQ(listed, all);
}

TEST_F(GroupTest, AFullShardTakesDeletesAndBatches) {
  start();
  uint8_t written = 0;
  Result<void> refused;
  while (refused) {
    refused = write(chunk(written), 4 * kMiB, 'x');
    if (refused) ++written;
    ASSERT_LT(written, 20);
  }
  EXPECT_EQ(refused.code(), Errc::no_space);
  EXPECT_GE(metrics->refused.value(), 1u);
  ASSERT_TRUE(set("key", "still"));
  EXPECT_EQ(*read(chunk(0)), std::string(4 * kMiB, 'x'));
  for (uint8_t i = 0; i < written; ++i) ASSERT_TRUE(remove(chunk(i)));
  // The space is back after the next checkpoint, which admission waits for.
  EXPECT_TRUE(write(chunk(0), 4 * kMiB, 'y'));
}

TEST_F(GroupTest, AFencedDeviceStopsWritesNotReads) {
  start();
  ASSERT_TRUE(write(chunk(1), 200'000, 'a'));
  ASSERT_TRUE(set("key", "value"));
  rig.device().fault = [](const engine::IoRequest& request) {
    return request.op == engine::IoRequest::Op::read ? Errc::ok : Errc::io_error;
  };
  EXPECT_EQ(set("key", "lost").code(), Errc::device_fenced);
  EXPECT_EQ(group->status().health.code(), Errc::device_fenced);
  EXPECT_FALSE(group->status().leads);
  EXPECT_EQ(set("other", "x").code(), Errc::device_fenced);
  EXPECT_EQ(*read(chunk(1)), std::string(200'000, 'a'));
  EXPECT_EQ(get("key"), "value");
}

TEST_F(GroupTest, ClosingWaitsForWhatIsUnderWay) {
  start();
  bool done = false;
  struct Writer {
    static Task<void> run(GroupTest* test, bool* done) {
      EXPECT_TRUE(co_await test->group->chunk_write(chunk(1), 0, test->payload(kMiB, 'a'), {}));
      *done = true;
    }
  };
  Scope scope(loop);
  scope.spawn(&Writer::run, this, &done);
  EXPECT_FALSE(done);
  loop.run(&Group::close, group.get());
  EXPECT_TRUE(done);
  EXPECT_EQ(set("key", "value").code(), Errc::unavailable);
}

TEST_F(GroupTest, AStoreThatFailsStopsTheGroupWithAReason) {
  start();
  rig.store().set_fault_hook([](kv::MemoryStore::Operation operation) {
    return operation == kv::MemoryStore::Operation::write ? Errc::io_error : Errc::ok;
  });
  EXPECT_EQ(set("key", "value").code(), Errc::io_error);
  EXPECT_EQ(set("key", "value").code(), Errc::io_error);
  const auto read_behind = loop.run(&Group::kv_get, group.get(), std::string("key"), CancelToken());
  EXPECT_EQ(read_behind.code(), Errc::io_error) << "what was committed may be missing from it";
  rig.store().set_fault_hook({});
  // It is in the log: the next start applies it.
  stop();
  start();
  EXPECT_EQ(get("key"), "value");
}

}  // namespace
}  // namespace cairn::replica
