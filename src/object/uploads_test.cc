#include <gmock/gmock.h>

#include "object/janitor.h"
#include "object/keys.h"
#include "object/store_test_fixture.h"

namespace cairn::object {
namespace {

using ::testing::ElementsAre;

class UploadsTest : public StoreTest {
 public:
  std::string create(std::string key = "key", ObjectStore::UploadOptions options = {}) {
    return *run(&Store::create_upload, store.get(), std::string("b"), std::move(key), std::move(options),
                CallContext{});
  }
  static Task<Result<ObjectInfo>> put_part_task(World* world, Store* store, std::string key, std::string upload,
                                                uint32_t number, std::string body) {
    CO_TRY(auto writer, co_await store->put_part("b", std::move(key), std::move(upload), number, {}));
    const std::string etag = etag_of(body);
    CO_TRY(co_await write_all(&world->pool, writer.get(), std::move(body)));
    co_return co_await writer->commit({.etag = etag});
  }
  Result<ObjectInfo> put_part(std::string upload, uint32_t number, std::string body, std::string key = "key") {
    return run(&put_part_task, &world, store.get(), std::move(key), std::move(upload), number, std::move(body));
  }
  Result<ObjectInfo> complete(std::string upload, std::vector<PartInfo> parts, WriteConditions conditions = {},
                              std::string key = "key") {
    ObjectStore::Completion completion{
        .parts = std::move(parts), .etag = "combined", .checksum = {}, .conditions = std::move(conditions)};
    return run(&Store::complete_upload, store.get(), std::string("b"), std::move(key), std::move(upload), completion,
               CallContext{});
  }
  Result<void> abort(std::string upload, std::string key = "key") {
    return run(&Store::abort_upload, store.get(), std::string("b"), std::move(key), std::move(upload), CallContext{});
  }
  static PartInfo named(uint32_t number, std::string_view body) { return {.number = number, .etag = etag_of(body)}; }
  // Runs a janitor until nothing is left to do.
  void clean_up() {
    Janitor janitor({.loop = loop, .client = world.client, .registry = world.registry, .wall = world.wall},
                    {.groups = world.client.all_groups(), .identity = {}});
    janitor.start();
    loop.run_for(seconds(60));
    loop.run(&Janitor::close, &janitor);
  }
  // Records of the bucket's group that begin with the tag.
  size_t records(std::string_view tag) {
    size_t count = 0;
    for (const engine::GroupId group : world.client.all_groups()) {
      for (const auto& [key, value] : world.client.contents(group)) count += key.starts_with(tag) ? 1 : 0;
    }
    return count;
  }
};

TEST_F(UploadsTest, PartsBecomeAnObject) {
  ObjectStore::UploadOptions options{.attributes = {.content_type = "a/b", .user_metadata = {{"k", "v"}}},
                                     .checksum_algorithm = "CRC32"};
  const std::string upload = create("key", options);
  const auto head = run(&Store::head_upload, store.get(), std::string("b"), std::string("key"), upload, CallContext{});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->checksum_algorithm, "CRC32");

  const std::string one = pattern((5 << 20) + 1, 1);
  const std::string two = pattern((9 << 20) + 77, 2);
  const std::string three = pattern(10, 3);
  ASSERT_TRUE(put_part(upload, 7, three));  // in any order, with gaps
  ASSERT_TRUE(put_part(upload, 1, one));
  ASSERT_TRUE(put_part(upload, 3, two));
  EXPECT_EQ(body_of("key").code(), Errc::not_found) << "nothing is visible yet";
  const auto done = complete(upload, {named(1, one), named(3, two), named(7, three)});
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->size, one.size() + two.size() + three.size());
  EXPECT_EQ(done->etag, "combined");
  EXPECT_TRUE(*body_of("key") == one + two + three);

  const auto info = run(&Store::head, store.get(), std::string("b"), std::string("key"), CallContext{});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->attributes.content_type, "a/b");
  EXPECT_EQ(info->attributes.user_metadata.at("k"), "v");
  ASSERT_EQ(info->parts.size(), 3u);
  EXPECT_EQ(info->parts[1].number, 3u);
  EXPECT_EQ(info->parts[1].size, two.size());
  // A range across the border of parts.
  FixedRange range(one.size() - 5, 20);
  EXPECT_EQ(*run(&get, store.get(), std::string("b"), std::string("key"), static_cast<RangeChooser*>(&range)),
            one.substr(one.size() - 5) + two.substr(0, 15));
  // The upload is gone, its parts belong to the object, the records go.
  EXPECT_EQ(put_part(upload, 1, "x").error().message(), "upload");
  clean_up();
  EXPECT_EQ(records("p/") + records("q/") + records("u/") + records("z/"), 0u);
  EXPECT_TRUE(*body_of("key") == one + two + three);
  ASSERT_TRUE(remove("key"));
  clean_up();
  EXPECT_EQ(world.client.chunks().size(), 0u);
  EXPECT_EQ(records("t/") + records("q/"), 0u);
}

TEST_F(UploadsTest, WhatIsWrongIsNamed) {
  const std::string upload = create();
  ASSERT_TRUE(put_part(upload, 1, "one"));
  ASSERT_TRUE(put_part(upload, 2, "two"));
  EXPECT_EQ(complete(upload, {named(1, "one"), named(3, "three")}).error().message(), "part 3");
  EXPECT_EQ(complete(upload, {named(1, "one"), named(2, "other")}).error().message(), "part 2");
  EXPECT_EQ(complete(upload, {named(2, "two"), named(1, "one")}).code(), Errc::invalid_argument);
  EXPECT_EQ(complete(upload, {named(1, "one"), named(1, "one")}).code(), Errc::invalid_argument);
  EXPECT_EQ(complete(upload, {}).code(), Errc::invalid_argument);
  PartInfo with_checksum = named(1, "one");
  with_checksum.checksum = Checksum{.algorithm = "CRC32", .value = "AAAAAA=="};
  EXPECT_EQ(complete(upload, {with_checksum}).error().message(), "part 1");
  for (const char* unknown : {"", "nonsense", "00000000000000000000000000000000"}) {
    const auto done = complete(unknown, {named(1, "one")});
    EXPECT_EQ(done.code(), Errc::not_found);
    EXPECT_EQ(done.error().message(), "upload");
  }
  EXPECT_EQ(complete(upload, {named(1, "one")}, {}, "another key").error().message(), "upload");
  EXPECT_EQ(put_part(upload, 0, "zero").code(), Errc::invalid_argument);
  EXPECT_EQ(put_part(upload, 10'001, "more").code(), Errc::invalid_argument);
  // None of that broke it.
  EXPECT_TRUE(complete(upload, {named(1, "one"), named(2, "two")}));
  EXPECT_EQ(records("z/"), 0u);
}

TEST_F(UploadsTest, ARepeatedCompleteSaysTheSame) {
  const std::string upload = create();
  ASSERT_TRUE(put_part(upload, 1, "one"));
  const auto first = complete(upload, {named(1, "one")});
  ASSERT_TRUE(first);
  const auto again = complete(upload, {named(1, "one")});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->etag, first->etag);
  EXPECT_EQ(again->modified_unix_ns, first->modified_unix_ns);
  EXPECT_EQ(complete(upload, {named(1, "other")}).error().message(), "upload");
  EXPECT_EQ(complete(upload, {named(1, "one"), named(2, "two")}).error().message(), "upload");
  ASSERT_TRUE(must_put("key", "something else"));
  EXPECT_EQ(complete(upload, {named(1, "one")}).error().message(), "upload");
  EXPECT_EQ(*body_of("key"), "something else");
}

TEST_F(UploadsTest, AnUploadedAgainPartReplacesTheFirst) {
  const std::string upload = create();
  ASSERT_TRUE(put_part(upload, 1, pattern(100'000, 1)));
  ASSERT_TRUE(put_part(upload, 1, pattern(50'000, 2)));
  const auto parts =
      run(&Store::list_parts, store.get(), std::string("b"), std::string("key"), upload, 0u, size_t{10}, CallContext{});
  ASSERT_EQ(parts->parts.size(), 1u);
  EXPECT_EQ(parts->parts[0].size, 50'000u);
  ASSERT_TRUE(complete(upload, {named(1, pattern(50'000, 2))}));
  clean_up();
  EXPECT_TRUE(*body_of("key") == pattern(50'000, 2));
  EXPECT_EQ(world.client.chunks().size(), 1u) << "the replaced part's data is gone";
}

TEST_F(UploadsTest, PartsThatAreNotNamedAreDeleted) {
  const std::string upload = create();
  for (uint32_t i = 1; i <= 5; ++i) ASSERT_TRUE(put_part(upload, i, pattern(10'000, i)));
  ASSERT_TRUE(complete(upload, {named(2, pattern(10'000, 2)), named(4, pattern(10'000, 4))}));
  clean_up();
  EXPECT_TRUE(*body_of("key") == pattern(10'000, 2) + pattern(10'000, 4));
  EXPECT_EQ(world.client.chunks().size(), 2u);
}

TEST_F(UploadsTest, AbortGivesEverythingBack) {
  const std::string upload = create();
  for (uint32_t i = 1; i <= 3; ++i) ASSERT_TRUE(put_part(upload, i, pattern(5 << 20, i)));
  ASSERT_TRUE(abort(upload));
  EXPECT_EQ(abort(upload).error().message(), "upload");
  EXPECT_EQ(put_part(upload, 4, "x").error().message(), "upload");
  clean_up();
  EXPECT_EQ(world.client.chunks().size(), 0u);
  EXPECT_EQ(records("p/") + records("u/") + records("q/"), 0u);
}

TEST_F(UploadsTest, ListsPartsInPages) {
  const std::string upload = create();
  for (uint32_t i = 1; i <= 9; ++i) ASSERT_TRUE(put_part(upload, i * 10, std::to_string(i)));
  std::vector<uint32_t> numbers;
  uint32_t after = 0;
  for (;;) {
    const auto page = run(&Store::list_parts, store.get(), std::string("b"), std::string("key"), upload, after,
                          size_t{4}, CallContext{});
    ASSERT_TRUE(page);
    for (const PartInfo& part : page->parts) numbers.push_back(part.number);
    if (!page->more) break;
    ASSERT_EQ(page->parts.size(), 4u);
    after = page->parts.back().number;
  }
  EXPECT_THAT(numbers, ElementsAre(10, 20, 30, 40, 50, 60, 70, 80, 90));
}

TEST_F(UploadsTest, CompletingHonoursConditions) {
  const std::string upload = create();
  ASSERT_TRUE(put_part(upload, 1, "one"));
  ASSERT_TRUE(must_put("key", "old"));
  EXPECT_EQ(complete(upload, {named(1, "one")}, {.if_none_match_any = true}).code(), Errc::already_exists);
  EXPECT_EQ(complete(upload, {named(1, "one")}, {.if_match = "other"}).code(), Errc::condition_failed);
  EXPECT_EQ(*body_of("key"), "old");
  EXPECT_TRUE(complete(upload, {named(1, "one")}, {.if_match = etag_of("old")}));
}

TEST_F(UploadsTest, TenThousandParts) {
  const std::string upload = create();
  const Id128 id = *Id128::parse(upload);
  // The parts' records, written directly: what is tested is how many an upload can have.
  ASSERT_TRUE(put_part(upload, 1, "x"));
  const auto bucket =
      BucketRecord::decode(world.client.contents(world.client.system_group()).at(keys::bucket_entry("b")));
  const engine::GroupId group = world.client.group_of_key(bucket->id);
  std::vector<PartInfo> parts = {named(1, "x")};
  kv::Batch batch;
  for (uint32_t i = 2; i <= kMaxParts; ++i) {
    const PartRecord record{
        .data = {DataId::make(9, i), uint64_t{5} << 30},
        .etag = std::string(27, 'a') + std::to_string(10'000 + i),
        .checksum = Checksum{.algorithm = "SHA256", .value = std::string(44, 'Q'), .full_object = false}};
    batch.mutations.push_back({keys::part(bucket->id, id, i), record.encode()});
    parts.push_back({.number = i, .etag = record.etag});
    if (batch.mutations.size() == 1000 || i == kMaxParts) {
      ASSERT_TRUE(run(&client::Client::kv_batch, static_cast<client::Client*>(&world.client), group,
                      std::exchange(batch, {}), mem::Purpose::client, client::CallContext{}));
    }
  }
  const auto done = complete(upload, parts);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->parts.size(), kMaxParts);
  EXPECT_EQ(done->size, 1 + uint64_t{kMaxParts - 1} * (uint64_t{5} << 30)) << "48.8 TiB";
  const auto again = complete(upload, parts);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->modified_unix_ns, done->modified_unix_ns);
  FixedRange range(0, 1);
  EXPECT_EQ(*run(&get, store.get(), std::string("b"), std::string("key"), static_cast<RangeChooser*>(&range)), "x");
  // Replacing it by another object of that size fits one batch, too.
  EXPECT_TRUE(must_put("key", "small"));
}

// Parts, completions and aborts that race: an upload is completed or aborted once, and what it became is whole.
TEST_F(UploadsTest, RacesHaveOneOutcome) {
  struct Outcome {
    int completed = 0;
    int aborted = 0;
    std::string body;
  };
  struct Racer {
    static Task<void> part(UploadsTest* test, std::string upload, uint32_t number, std::string body) {
      (void)co_await put_part_task(&test->world, test->store.get(), "key", upload, number, std::move(body));
    }
    static Task<void> complete(UploadsTest* test, std::string upload, std::vector<PartInfo> parts, std::string body,
                               Outcome* out) {
      const auto done =
          co_await test->store->complete_upload("b", "key", upload, {.parts = std::move(parts), .etag = "c"}, {});
      if (!done) co_return;
      ++out->completed;
      out->body = body;
    }
    static Task<void> abort(UploadsTest* test, std::string upload, Outcome* out) {
      if (co_await test->store->abort_upload("b", "key", upload, {})) ++out->aborted;
    }
  };
  for (int round = 0; round < 60; ++round) {
    const std::string upload = create();
    ASSERT_TRUE(put_part(upload, 1, "one"));
    ASSERT_TRUE(put_part(upload, 2, "two"));
    Outcome outcome;
    Scope scope(loop);
    scope.spawn(&Racer::part, this, upload, 1u, std::string("ONE"));
    scope.spawn(&Racer::complete, this, upload, std::vector{named(1, "one"), named(2, "two")}, std::string("onetwo"),
                &outcome);
    scope.spawn(&Racer::complete, this, upload, std::vector{named(1, "ONE"), named(2, "two")}, std::string("ONEtwo"),
                &outcome);
    if (round % 3 == 0) scope.spawn(&Racer::abort, this, upload, &outcome);
    ASSERT_TRUE(loop.run_until([&] { return scope.running() == 0; }));
    EXPECT_LE(outcome.completed + outcome.aborted, 1);
    if (outcome.completed == 1) EXPECT_EQ(*body_of("key"), outcome.body);
    if (outcome.completed + outcome.aborted == 0) (void)abort(upload);
  }
  clean_up();
  EXPECT_EQ(world.client.chunks().size(), 2u) << "one object of two parts";
  EXPECT_EQ(records("u/") + records("p/") + records("q/") + records("z/"), 0u);
}

TEST_F(UploadsTest, AFreezeWhoseOwnerDiedIsBroken) {
  const std::string upload = create();
  ASSERT_TRUE(put_part(upload, 1, "one"));
  const auto bucket =
      BucketRecord::decode(world.client.contents(world.client.system_group()).at(keys::bucket_entry("b")));
  kv::Batch batch;
  batch.mutations.push_back({keys::frozen(*Id128::parse(upload)), "somebody who is dead"});
  ASSERT_TRUE(run(&client::Client::kv_batch, static_cast<client::Client*>(&world.client),
                  world.client.group_of_key(bucket->id), batch, mem::Purpose::client, client::CallContext{}));
  const Time start = loop.now();
  ASSERT_TRUE(put_part(upload, 2, "two"));
  EXPECT_GE(loop.now() - start, seconds(2));
  EXPECT_TRUE(complete(upload, {named(1, "one"), named(2, "two")}));
}

}  // namespace
}  // namespace cairn::object
