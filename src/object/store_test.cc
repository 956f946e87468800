#include "object/store.h"

#include <gmock/gmock.h>

#include "object/store_test_fixture.h"

namespace cairn::object {
namespace {

using ::testing::ElementsAre;

TEST_F(StoreTest, PutsAndGetsEverySize) {
  const size_t sizes[] = {0,       1,       4095,          4096,    4097,          65'536,
                          1 << 20, 3 << 20, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (9 << 20) + 12'345};
  for (const size_t size : sizes) {
    const std::string body = pattern(size, size);
    const auto put = must_put("key", body);
    ASSERT_TRUE(put) << put.error().to_string();
    EXPECT_EQ(put->size, size);
    const auto got = body_of("key");
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_TRUE(*got == body) << size;
  }
}

TEST_F(StoreTest, ReadsRanges) {
  const std::string body = pattern((9 << 20) + 777, 3);
  ASSERT_TRUE(must_put("key", body));
  const ByteRange ranges[] = {{0, 0},
                              {0, 1},
                              {4095, 2},
                              {(1 << 20) - 1, 2},
                              {(4 << 20) - 10, 20},
                              {100, 9 << 20},
                              {body.size() - 1, 1},
                              {body.size(), 0}};
  for (const ByteRange& range : ranges) {
    FixedRange chooser(range.offset, range.length);
    const auto got = run(&get, store.get(), std::string("b"), std::string("key"), static_cast<RangeChooser*>(&chooser));
    ASSERT_TRUE(got);
    EXPECT_TRUE(*got == body.substr(range.offset, range.length)) << range.offset << " " << range.length;
  }
  FixedRange beyond(body.size(), 1);
  EXPECT_EQ(run(&get, store.get(), std::string("b"), std::string("key"), static_cast<RangeChooser*>(&beyond)).code(),
            Errc::invalid_argument);
}

TEST_F(StoreTest, KeepsAttributes) {
  auto writer = *run(&Store::put, store.get(), std::string("b"), std::string("key"), CallContext{});
  Writer::Commit commit{.etag = "etag",
                        .attributes = {.content_type = "text/plain",
                                       .headers = {{"cache-control", "no-store"}, {"expires", "\x01\xff"}},
                                       .user_metadata = {{"a", "1"}, {"b", ""}}},
                        .checksum = Checksum{.algorithm = "CRC32C", .value = "AAAAAA==", .full_object = false},
                        .conditions = {}};
  const auto put = run(&Writer::commit, writer.get(), commit);
  ASSERT_TRUE(put);
  const auto head = run(&Store::head, store.get(), std::string("b"), std::string("key"), CallContext{});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->key, "key");
  EXPECT_EQ(head->etag, "etag");
  EXPECT_EQ(head->attributes.content_type, "text/plain");
  EXPECT_EQ(head->attributes.headers, commit.attributes.headers);
  EXPECT_EQ(head->attributes.user_metadata, commit.attributes.user_metadata);
  EXPECT_EQ(head->modified_unix_ns, put->modified_unix_ns);
  ASSERT_TRUE(head->checksum);
  EXPECT_EQ(head->checksum->value, "AAAAAA==");
  EXPECT_FALSE(head->checksum->full_object);
}

TEST_F(StoreTest, SaysWhatIsMissing) {
  const auto no_key = body_of("none");
  EXPECT_EQ(no_key.code(), Errc::not_found);
  EXPECT_EQ(no_key.error().message(), "key");
  const auto no_bucket = run(&Store::head, store.get(), std::string("none"), std::string("key"), CallContext{});
  EXPECT_EQ(no_bucket.code(), Errc::not_found);
  EXPECT_EQ(no_bucket.error().message(), "bucket");
  EXPECT_EQ(run(&Store::put, store.get(), std::string("none"), std::string("key"), CallContext{}).error().message(),
            "bucket");
}

TEST_F(StoreTest, OverwritesAndRemoves) {
  ASSERT_TRUE(must_put("key", "first"));
  ASSERT_TRUE(must_put("key", "second"));
  EXPECT_EQ(*body_of("key"), "second");
  ASSERT_TRUE(remove("key"));
  EXPECT_EQ(body_of("key").code(), Errc::not_found);
  EXPECT_TRUE(remove("key"));
}

TEST_F(StoreTest, WriteConditions) {
  const std::string old_etag = etag_of("old");
  EXPECT_EQ(must_put("key", "new", {.if_none_match_any = false, .if_match = old_etag}).code(), Errc::not_found);
  EXPECT_EQ(must_put("key", "new", {.if_none_match_any = false, .if_match = "*"}).code(), Errc::not_found);
  EXPECT_EQ(remove("key", {.if_none_match_any = false, .if_match = "*"}).code(), Errc::not_found);
  ASSERT_TRUE(must_put("key", "old", {.if_none_match_any = true, .if_match = {}}));
  EXPECT_EQ(must_put("key", "new", {.if_none_match_any = true, .if_match = {}}).code(), Errc::already_exists);
  EXPECT_EQ(must_put("key", "new", {.if_none_match_any = false, .if_match = "other"}).code(), Errc::condition_failed);
  EXPECT_EQ(remove("key", {.if_none_match_any = false, .if_match = "other"}).code(), Errc::condition_failed);
  EXPECT_EQ(*body_of("key"), "old");
  ASSERT_TRUE(must_put("key", "new", {.if_none_match_any = false, .if_match = old_etag}));
  EXPECT_EQ(*body_of("key"), "new");
  // "*": any object.
  ASSERT_TRUE(must_put("key", "newer", {.if_none_match_any = false, .if_match = "*"}));
  ASSERT_TRUE(remove("key", {.if_none_match_any = false, .if_match = "*"}));
  EXPECT_EQ(body_of("key").code(), Errc::not_found);
}

TEST_F(StoreTest, ListsInOrder) {
  for (const char* key : {"b", "a/2", "a/1", "a", "c/d/e", "\xff"}) ASSERT_TRUE(must_put(key, key));
  const auto all = list({.prefix = "", .delimiter = "", .start_after = ""});
  ASSERT_TRUE(all);
  std::vector<std::string> keys;
  for (const ObjectInfo& object : all->objects) keys.push_back(object.key);
  EXPECT_THAT(keys, ElementsAre("a", "a/1", "a/2", "b", "c/d/e", "\xff"));
  const auto top = list({.prefix = "", .delimiter = "/", .start_after = ""});
  ASSERT_TRUE(top);
  EXPECT_THAT(top->common_prefixes, ElementsAre("a/", "c/"));
  EXPECT_EQ(top->objects.size(), 3u);
}

}  // namespace
}  // namespace cairn::object
