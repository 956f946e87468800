#include <gmock/gmock.h>

#include <set>

#include "object/keys.h"
#include "object/store_test_fixture.h"

namespace cairn::object {
namespace {

using ::testing::ElementsAre;

// Entries of a listing in one sequence, as a client sees them; prefixes marked.
std::vector<std::string> walk(StoreTest& test, ListQuery query) {
  std::vector<std::string> out;
  for (int page = 0; page < 10'000; ++page) {
    const auto result = test.list(query);
    EXPECT_TRUE(result);
    EXPECT_LE(result->objects.size() + result->common_prefixes.size(), query.max_keys);
    std::vector<std::string> entries;
    for (const ObjectInfo& object : result->objects) entries.push_back(object.key);
    for (const std::string& prefix : result->common_prefixes) entries.push_back(prefix + "*");
    std::ranges::sort(entries);
    out.insert(out.end(), entries.begin(), entries.end());
    if (!result->truncated) return out;
    EXPECT_EQ(entries.size(), query.max_keys);
    query.start_after = result->next;
    query.start_after_is_prefix = result->next_is_prefix;
  }
  ADD_FAILURE() << "a listing without end";
  return out;
}

class ListingTest : public StoreTest {
 public:
  // Straight into the map: a listing needs no data.
  void put_keys(const std::set<std::string>& names) {
    const Id128 bucket = bucket_id();
    kv::Batch batch;
    for (const std::string& name : names) {
      batch.mutations.push_back({keys::object(bucket, name), ObjectRecord{.data = {}, .etag = name}.encode()});
      if (batch.mutations.size() == 1000) flush(bucket, batch);
    }
    flush(bucket, batch);
  }
  void flush(Id128 bucket, kv::Batch& batch) {
    ASSERT_TRUE(run(&client::Client::kv_batch, static_cast<client::Client*>(&world.client),
                    world.client.group_of_key(bucket), std::exchange(batch, {}), mem::Purpose::client,
                    client::CallContext{}));
  }
  Id128 bucket_id() {
    const auto& map = world.client.contents(world.client.system_group());
    return BucketRecord::decode(map.at(keys::bucket_entry("b")))->id;
  }
};

TEST_F(ListingTest, PrefixesOnceEach) {
  std::set<std::string> names = {"a.txt", "z.txt"};
  for (int i = 0; i < 2500; ++i) names.insert("photos/2026/" + std::to_string(i));
  put_keys(names);
  for (const size_t max_keys : {1, 2, 3, 1000}) {
    EXPECT_THAT(walk(*this, {.prefix = "", .delimiter = "/", .start_after = "", .max_keys = max_keys}),
                ElementsAre("a.txt", "photos/*", "z.txt"))
        << max_keys;
  }
  const auto one = list({.prefix = "", .delimiter = "/", .start_after = "", .max_keys = 1});
  EXPECT_TRUE(one->truncated);
  EXPECT_EQ(one->next, "a.txt");
  const auto none = list({.prefix = "", .delimiter = "/", .start_after = "", .max_keys = 0});
  EXPECT_FALSE(none->truncated);
  EXPECT_TRUE(none->objects.empty() && none->common_prefixes.empty());
  const auto last =
      list({.prefix = "", .delimiter = "/", .start_after = "photos/", .start_after_is_prefix = true, .max_keys = 1});
  EXPECT_FALSE(last->truncated) << "exactly as many as asked for";
  EXPECT_EQ(last->objects.front().key, "z.txt");
}

TEST_F(ListingTest, CommonPrefixesAreJumpedOver) {
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 5000; ++j) names.insert(std::string(1, static_cast<char>('a' + i)) + "/" + std::to_string(j));
  }
  put_keys(names);
  const uint64_t before = world.client.calls(client::MemoryClient::Operation::kv_scan);
  EXPECT_THAT(walk(*this, {.prefix = "", .delimiter = "/", .start_after = ""}), ElementsAre("a/*", "b/*", "c/*"));
  EXPECT_LE(world.client.calls(client::MemoryClient::Operation::kv_scan) - before, 4u);
}

TEST_F(ListingTest, ATokenStaysValidWhenKeysComeAndGo) {
  put_keys({"a", "b", "c", "d"});
  const auto page = list({.prefix = "", .delimiter = "", .start_after = "", .max_keys = 2});
  EXPECT_EQ(page->next, "b");
  ASSERT_TRUE(remove("b"));
  put_keys({"aa", "bb"});
  EXPECT_THAT(walk(*this, {.prefix = "", .delimiter = "", .start_after = page->next}), ElementsAre("bb", "c", "d"));
}

TEST_F(ListingTest, AgainstAModel) {
  SeededRng rng(12);
  const std::string alphabet("ab/\xff\x00+%", 7);
  const auto random_string = [&](size_t max) {
    std::string out;
    for (size_t i = rng.below(max + 1); i > 0; --i) out += alphabet[rng.below(alphabet.size())];
    return out;
  };
  std::set<std::string> names;
  while (names.size() < 400) {
    if (std::string name = random_string(7); !name.empty()) names.insert(std::move(name));
  }
  put_keys(names);
  for (int round = 0; round < 150; ++round) {
    const std::string prefix = random_string(2);
    const std::string delimiter = rng.chance(1, 4) ? "" : rng.chance(1, 2) ? "/" : random_string(2);
    const std::string after = rng.chance(1, 2) ? "" : random_string(4);
    std::vector<std::string> expected;
    for (const std::string& name : names) {
      if (!name.starts_with(prefix) || name <= after) continue;
      const size_t at = delimiter.empty() ? std::string::npos : name.find(delimiter, prefix.size());
      std::string entry = at == std::string::npos ? name : name.substr(0, at + delimiter.size()) + "*";
      if (expected.empty() || expected.back() != entry) expected.push_back(std::move(entry));
    }
    const size_t max_keys = 1 + rng.below(20);
    EXPECT_EQ(walk(*this, {.prefix = prefix, .delimiter = delimiter, .start_after = after, .max_keys = max_keys}),
              expected)
        << round;
  }
}

class UploadListingTest : public ListingTest {
 public:
  std::string create(std::string key) {
    loop.run_for(milliseconds(1));
    return *run(&Store::create_upload, store.get(), std::string("b"), std::move(key), ObjectStore::UploadOptions{},
                CallContext{});
  }
  std::vector<std::string> walk_uploads(ObjectStore::UploadQuery query) {
    std::vector<std::string> out;
    for (int page = 0; page < 1000; ++page) {
      const auto result = run(&Store::list_uploads, store.get(), std::string("b"), query, CallContext{});
      EXPECT_TRUE(result);
      std::vector<std::string> entries;
      for (const UploadInfo& upload : result->uploads) entries.push_back(upload.key + " " + upload.upload_id);
      for (const std::string& prefix : result->common_prefixes) entries.push_back(prefix + "*");
      std::ranges::sort(entries);
      out.insert(out.end(), entries.begin(), entries.end());
      if (!result->truncated) return out;
      query.key_marker = result->next_key_marker;
      query.upload_id_marker = result->next_upload_id_marker;
    }
    ADD_FAILURE() << "a listing without end";
    return out;
  }
};

TEST_F(UploadListingTest, ByKeyThenByTime) {
  const std::string b1 = create("b");
  const std::string a1 = create("a");
  const std::string a2 = create("a");
  const std::string p1 = create("p/1");
  const std::string p2 = create("p/2");
  for (const size_t max : {1, 2, 3, 100}) {
    EXPECT_THAT(
        walk_uploads({.prefix = "", .delimiter = "", .key_marker = "", .upload_id_marker = "", .max_uploads = max}),
        ElementsAre("a " + a1, "a " + a2, "b " + b1, "p/1 " + p1, "p/2 " + p2));
    EXPECT_THAT(
        walk_uploads({.prefix = "", .delimiter = "/", .key_marker = "", .upload_id_marker = "", .max_uploads = max}),
        ElementsAre("a " + a1, "a " + a2, "b " + b1, "p/*"));
    EXPECT_THAT(
        walk_uploads({.prefix = "p/", .delimiter = "/", .key_marker = "", .upload_id_marker = "", .max_uploads = max}),
        ElementsAre("p/1 " + p1, "p/2 " + p2));
  }
  EXPECT_THAT(walk_uploads({.prefix = "", .delimiter = "", .key_marker = "a", .upload_id_marker = a1}),
              ElementsAre("a " + a2, "b " + b1, "p/1 " + p1, "p/2 " + p2));
  EXPECT_THAT(walk_uploads({.prefix = "", .delimiter = "", .key_marker = "a", .upload_id_marker = ""}),
              ElementsAre("b " + b1, "p/1 " + p1, "p/2 " + p2));
  EXPECT_THAT(walk_uploads({.prefix = "", .delimiter = "/", .key_marker = "p/", .upload_id_marker = ""}),
              ElementsAre());
}

}  // namespace
}  // namespace cairn::object
