// Space: readers of what is replaced, deleted data, crashes in between, a full cluster.
#include <gmock/gmock.h>

#include "object/janitor.h"
#include "object/keys.h"
#include "object/session.h"
#include "object/store_test_fixture.h"
#include "object/stored_reader.h"
#include "replica/small_or_data.h"

namespace cairn::object {
namespace {

using client::MemoryClient;

class SpaceTest : public StoreTest {
 public:
  ~SpaceTest() override { stop_janitor(); }

  void start_janitor(bool sweeps = false) {
    janitor = std::make_unique<Janitor>(
        Janitor::Context{.loop = loop, .client = world.client, .registry = world.registry, .wall = world.wall},
        Janitor::Options{.groups = world.client.all_groups(),
                         .sweeps = sweeps,
                         .identity = {.owner = kNode, .life = Id128{{2, static_cast<uint8_t>(world.lives)}}}});
    janitor->start();
  }
  void stop_janitor() {
    if (janitor) loop.run(&Janitor::close, janitor.get());
    janitor.reset();
  }
  // The process dies: the store's calls fail from now on, and a new one starts.
  void die() {
    world.client.power_off();
    stop_janitor();
    loop.run(&Store::close, store.get());
    store = world.open_store();
    world.client.power_on();
  }
  std::unique_ptr<Reader> open(std::string key) {
    auto reader = run(&Store::open, store.get(), std::string("b"), std::move(key), static_cast<RangeChooser*>(nullptr),
                      CallContext{});
    EXPECT_TRUE(reader);
    return *std::move(reader);
  }
  OrphanReport orphans() {
    if (!janitor) start_janitor();
    auto report = run(&Janitor::check_orphans, janitor.get(), CallContext{});
    EXPECT_TRUE(report);
    return *report;
  }

  std::unique_ptr<Janitor> janitor;
};

TEST_F(SpaceTest, DeletedDataIsGoneWithinAMinute) {
  start_janitor();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(must_put("key" + std::to_string(i), pattern(100'000, i)));
  ASSERT_TRUE(must_put("large", pattern(9 << 20, 1)));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(remove("key" + std::to_string(i)));
  ASSERT_TRUE(must_put("large", pattern(10 << 20, 2)));
  EXPECT_GT(world.client.used_bytes(), uint64_t{19} << 20);
  loop.run_for(seconds(45));
  EXPECT_EQ(world.client.used_bytes(), uint64_t{10} << 20);
  EXPECT_EQ(world.registry.expose({{&world.registry, ""}}).find("object_reaped_total 51") != std::string::npos, true);
}

// An object that is open stays whole, however slowly it is read, whatever happens to its key.
TEST_F(SpaceTest, ASlowReaderKeepsItsObject) {
  start_janitor();
  const std::string body = pattern((7 << 20) + 5, 1);
  const std::string short_body = pattern(1000, 2);
  ASSERT_TRUE(must_put("overwritten", body));
  ASSERT_TRUE(must_put("deleted", body));
  ASSERT_TRUE(must_put("short", short_body));
  auto first = open("overwritten");
  auto second = open("deleted");
  auto third = open("short");
  ASSERT_TRUE(must_put("overwritten", "new"));
  ASSERT_TRUE(remove("deleted"));
  ASSERT_TRUE(remove("short"));
  std::string got_first;
  std::string got_second;
  for (int i = 0; i < 8; ++i) {
    loop.run_for(seconds(40));
    append(got_first, *run(&Reader::next, first.get()));
    append(got_second, *run(&Reader::next, second.get()));
  }
  EXPECT_TRUE(got_first == body);
  EXPECT_TRUE(got_second == body);
  EXPECT_TRUE(*run(&read_all, third.get()) == short_body);
  EXPECT_EQ(*body_of("overwritten"), "new");
  EXPECT_GT(world.client.used_bytes(), uint64_t{14} << 20) << "still held";
  first.reset();
  second.reset();
  loop.run_for(seconds(60));
  EXPECT_EQ(world.client.used_bytes(), 4096u) << "then given back";
}

TEST_F(SpaceTest, AQuickReaderCostsNoLease) {
  ASSERT_TRUE(must_put("key", pattern(7 << 20, 1)));
  const uint64_t before = world.client.calls(MemoryClient::Operation::lease);
  ASSERT_TRUE(body_of("key"));
  loop.run_for(seconds(30));
  EXPECT_EQ(world.client.calls(MemoryClient::Operation::lease), before);
}

// A new leader doesn't know who was reading: it waits until it would.
TEST_F(SpaceTest, LeasesSurviveARestartOfTheLeader) {
  const std::string body = pattern(7 << 20, 1);
  ASSERT_TRUE(must_put("key", body));
  auto reader = open("key");
  ASSERT_TRUE(remove("key"));
  loop.run_for(seconds(20));
  world.client.power_off();
  world.client.power_on();
  start_janitor();
  std::string got;
  for (int i = 0; i < 7; ++i) {
    loop.run_for(seconds(9));
    const auto piece = run(&Reader::next, reader.get());
    ASSERT_TRUE(piece) << piece.error().to_string();
    append(got, *piece);
  }
  EXPECT_TRUE(got == body);
}

// Cut off from the leader for too long, a reader fails with a clear error, and never gets other bytes.
TEST_F(SpaceTest, AReaderThatCantRenewFailsClearly) {
  const std::string body = pattern(7 << 20, 1);
  ASSERT_TRUE(must_put("key", body));
  auto reader = open("key");
  ASSERT_TRUE(remove("key"));
  // A reaper of another machine, whose calls go through.
  MemoryClient* cluster = &world.client;
  cluster->set_fault_hook([](MemoryClient::Operation operation) {
    return operation == MemoryClient::Operation::lease ? MemoryClient::Fault::refuse : MemoryClient::Fault::none;
  });
  loop.run_for(seconds(20));
  cluster->set_fault_hook({});
  for (const engine::ChunkId& chunk : cluster->chunks()) {
    ASSERT_TRUE(
        run(&client::Client::chunk_delete, static_cast<client::Client*>(cluster), chunk, client::CallContext{}));
  }
  const auto read_ahead = run(&Reader::next, reader.get());
  ASSERT_TRUE(read_ahead);
  EXPECT_EQ(replica::metadata_bytes(*read_ahead), body.substr(0, 1 << 20));
  EXPECT_EQ(run(&Reader::next, reader.get()).code(), Errc::unavailable);
}

TEST_F(SpaceTest, ADeleteThatCrashesGoesOnAfterwards) {
  for (int round = 0; round < 15; ++round) {
    ASSERT_TRUE(must_put("large", pattern(9 << 20, round)));
    ASSERT_TRUE(must_put("small", pattern(5000, round)));
    ASSERT_TRUE(remove("large"));
    ASSERT_TRUE(remove("small"));
    start_janitor();
    loop.run_for(seconds(12) + microseconds(static_cast<int64_t>(loop.rng().below(4'000'000))));
    die();
  }
  start_janitor(true);
  loop.run_for(seconds(60));
  EXPECT_EQ(world.client.used_bytes(), 0u);
  for (const engine::GroupId group : world.client.all_groups()) {
    for (const auto& [key, value] : world.client.contents(group)) EXPECT_FALSE(key.starts_with("q/")) << key;
  }
}

// The grace bounds how soon something is deleted, not how much a second.
TEST_F(SpaceTest, ManyDeletesWaitAtTheSameTime) {
  start_janitor();
  for (int i = 0; i < 5000; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(must_put(key, "body"));
    ASSERT_TRUE(remove(key));
  }
  loop.run_for(seconds(20));
  EXPECT_EQ(world.client.used_bytes(), 0u);
}

TEST_F(SpaceTest, EveryDeleteWaitsForItsOwnGraceOnly) {
  start_janitor();
  for (int i = 0; i < 8; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(must_put(key, pattern(100'000, i)));
    ASSERT_TRUE(remove(key));
    loop.run_for(seconds(3));
  }
  const uint64_t waiting = world.client.used_bytes();
  EXPECT_GT(waiting, 0u);
  EXPECT_LE(waiting, uint64_t{6} * 102'400) << "what was deleted 15 seconds ago is gone";
}

TEST_F(SpaceTest, AnAbandonedWriterGivesItsSpaceBack) {
  auto writer = *run(&Store::put, store.get(), std::string("b"), std::string("key"), CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, writer.get(), pattern(6 << 20, 1), size_t{1} << 20));
  EXPECT_GT(world.client.used_bytes(), 0u);
  writer.reset();
  loop.run_for(seconds(1));
  EXPECT_EQ(world.client.used_bytes(), 0u);

  auto second = *run(&Store::put, store.get(), std::string("b"), std::string("key"), CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, second.get(), pattern(6 << 20, 1), size_t{1} << 20));
  run(&Writer::abort, second.get());
  EXPECT_EQ(world.client.used_bytes(), 0u);
}

TEST_F(SpaceTest, ASweepFindsWhatADeadWriterLeft) {
  const std::string kept = pattern(5 << 20, 1);
  ASSERT_TRUE(must_put("kept", kept));
  const auto upload = run(&Store::create_upload, store.get(), std::string("b"), std::string("up"),
                          ObjectStore::UploadOptions{}, CallContext{});
  auto part = *run(&Store::put_part, store.get(), std::string("b"), std::string("up"), *upload, 1u, CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, part.get(), pattern(100'000, 2), size_t{1} << 20));
  ASSERT_TRUE(run(&Writer::commit, part.get(), Writer::Commit{.etag = "e"}));
  part.reset();
  ASSERT_TRUE(must_put("deleted", pattern(50'000, 3)));
  ASSERT_TRUE(remove("deleted"));

  auto writer = *run(&Store::put, store.get(), std::string("b"), std::string("key"), CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, writer.get(), pattern(9 << 20, 4), size_t{1} << 20));
  EXPECT_EQ(orphans().in_flight, 3u);
  EXPECT_EQ(orphans().queued, 1u);
  EXPECT_EQ(orphans().referenced, 3u);
  // It dies in the middle of writing: what it would have deleted in the background stays.
  world.client.power_off();
  writer.reset();
  die();
  EXPECT_EQ(orphans().orphans, 3u) << "its session is known to be dead";
  EXPECT_EQ(orphans().examples.size(), 3u);
  stop_janitor();

  start_janitor(true);
  loop.run_for(seconds(60));
  EXPECT_TRUE(janitor->swept());
  const OrphanReport after = orphans();
  EXPECT_EQ(after.chunks, 3u);
  EXPECT_EQ(after.referenced, 3u);
  EXPECT_TRUE(*body_of("kept") == kept);
  // A second sweep has nothing to do.
  stop_janitor();
  start_janitor(true);
  loop.run_for(seconds(30));
  EXPECT_NE(world.registry.expose({{&world.registry, ""}}).find("object_sweeps_total 1\n"), std::string::npos);
}

TEST_F(SpaceTest, ACleanEndLeavesNothingToSweep) {
  ASSERT_TRUE(must_put("key", "body"));
  loop.run(&Store::close, store.get());
  const auto& map = world.client.contents(world.client.system_group());
  EXPECT_TRUE(std::ranges::none_of(map, [](const auto& entry) { return entry.first.starts_with(keys::kSessions); }));
  for (const engine::GroupId group : world.client.all_groups()) {
    for (const auto& [key, value] : world.client.contents(group)) EXPECT_FALSE(key.starts_with("f/"));
  }
  store = world.open_store();
}

TEST_F(SpaceTest, ManyRangesSweepTheSame) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(must_put("key" + std::to_string(i), pattern(4096 * (i % 3), i)));
  ASSERT_TRUE(must_put("large", pattern(30 << 20, 1)));
  auto writer = *run(&Store::put, store.get(), std::string("b"), std::string("x"), CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, writer.get(), pattern(25 << 20, 4), size_t{1} << 20));
  loop.run_for(seconds(1));  // nothing is on its way any more
  world.client.power_off();
  writer.reset();
  die();
  Metrics unused(world.registry);
  JanitorMetrics metrics(world.registry);
  Scope scope(loop);
  const Base base{.loop = loop, .client = world.client, .wall = world.wall, .background = scope};
  Sweep sweep(base, metrics, 16);  // one chunk of each group at a time
  const Identity identity{.owner = kNode, .life = Id128{{2, static_cast<uint8_t>(world.lives)}}};
  const auto before = run(&Sweep::check, &sweep, identity, client::CallContext{});
  EXPECT_EQ(before->orphans, 7u);
  EXPECT_EQ(before->referenced, 20u + 8u);
  ASSERT_TRUE(run(&Sweep::run, &sweep, identity, client::CallContext{}));
  EXPECT_EQ(metrics.swept_chunks.value(), 7u);
  const auto after = run(&Sweep::check, &sweep, identity, client::CallContext{});
  EXPECT_EQ(after->chunks, 28u);
  EXPECT_EQ(after->orphans, 0u);
  EXPECT_TRUE(*body_of("large") == pattern(30 << 20, 1));
}

// A writer that is taken for dead can't make anything visible whose data the sweep has deleted.
TEST_F(SpaceTest, AFencedWriterCantCommit) {
  auto zombie = world.open_store();  // the same node, an earlier life as far as the next store is concerned
  auto writer = *run(&Store::put, zombie.get(), std::string("b"), std::string("key"), CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, writer.get(), pattern(50'000, 1), size_t{1} << 20));
  loop.run(&Store::close, store.get());
  store = world.open_store();
  start_janitor(true);
  loop.run_for(seconds(5));
  EXPECT_TRUE(janitor->swept());
  const auto done = run(&Writer::commit, writer.get(), Writer::Commit{.etag = "e"});
  EXPECT_EQ(done.code(), Errc::unavailable);
  EXPECT_EQ(body_of("key").code(), Errc::not_found);
  writer.reset();
  // It goes on with a new session.
  EXPECT_TRUE(
      run(&put, &world, zombie.get(), std::string("b"), std::string("key"), std::string("body"), WriteConditions{}));
  EXPECT_EQ(*body_of("key"), "body");
  loop.run(&Store::close, zombie.get());
}

// P48: a full cluster answers writes with no_space, and everything that gives space back works.
TEST_F(SpaceTest, AFullClusterCanBeEmptied) {
  start_janitor();
  world.client.set_capacity(40 << 20);
  const auto upload = run(&Store::create_upload, store.get(), std::string("b"), std::string("up"),
                          ObjectStore::UploadOptions{}, CallContext{});
  auto part = *run(&Store::put_part, store.get(), std::string("b"), std::string("up"), *upload, 1u, CallContext{});
  ASSERT_TRUE(run(&write_all, &world.pool, part.get(), pattern(5 << 20, 2), size_t{1} << 20));
  ASSERT_TRUE(run(&Writer::commit, part.get(), Writer::Commit{.etag = "e"}));
  part.reset();
  int count = 0;
  Errc code = Errc::ok;
  while (code == Errc::ok) {
    code = must_put("key" + std::to_string(count), pattern(6 << 20, count)).code();
    if (code == Errc::ok) ++count;
  }
  EXPECT_EQ(code, Errc::no_space);
  EXPECT_EQ(count, 5);
  EXPECT_TRUE(*body_of("key0") == pattern(6 << 20, 0));
  EXPECT_EQ(must_put("key0", pattern(6 << 20, 9)).code(), Errc::no_space);
  EXPECT_TRUE(*body_of("key0") == pattern(6 << 20, 0)) << "a refused overwrite changes nothing";
  loop.run_for(seconds(30));
  EXPECT_EQ(world.client.used_bytes(), uint64_t{35} << 20) << "refused writers gave back what they had";
  ASSERT_TRUE(run(&Store::abort_upload, store.get(), std::string("b"), std::string("up"), *upload, CallContext{}));
  for (int i = 0; i < count; ++i) ASSERT_TRUE(remove("key" + std::to_string(i)));
  loop.run_for(seconds(60));
  EXPECT_EQ(world.client.used_bytes(), 0u);
  EXPECT_TRUE(must_put("key0", pattern(6 << 20, 9))) << "writes resume by themselves";
}

TEST_F(SpaceTest, BitRotIsAnErrorOfThatObject) {
  ASSERT_TRUE(must_put("good", "good"));
  ASSERT_TRUE(must_put("bad", "bad"));
  ASSERT_TRUE(must_put("late", pattern(7 << 20, 1)));
  const auto chunks = world.client.chunks();
  ASSERT_EQ(chunks.size(), 4u);
  world.client.damage(chunks[1]);
  world.client.damage(chunks[3]);
  EXPECT_EQ(*body_of("good"), "good");
  const auto bad = run(&Store::open, store.get(), std::string("b"), std::string("bad"),
                       static_cast<RangeChooser*>(nullptr), CallContext{});
  EXPECT_EQ(bad.code(), Errc::corrupt) << "before anything is promised to the client";
  EXPECT_EQ(body_of("late").code(), Errc::corrupt);
  EXPECT_TRUE(must_put("bad", "new"));
  EXPECT_EQ(*body_of("bad"), "new");
}

}  // namespace
}  // namespace cairn::object
