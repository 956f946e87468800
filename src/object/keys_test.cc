#include "object/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "client/client.h"
#include "kv/prefix_store.h"
#include "object/object_store.h"

namespace cairn::object {
namespace {

using namespace std::string_literals;
constexpr Id128 kBucket{{1, 2, 3}};

TEST(Keys, ObjectsStandInKeyOrder) {
  std::vector<std::string> names = {"a", "a\0"s, "a\0b"s, "a/", "ab", "\xff", "\xff\xff", "é", "z"};
  std::ranges::sort(names);
  for (size_t i = 1; i < names.size(); ++i) {
    EXPECT_LT(keys::object(kBucket, names[i - 1]), keys::object(kBucket, names[i]));
    EXPECT_LT(keys::upload(kBucket, names[i - 1], Id128{{0xff}}), keys::upload(kBucket, names[i], Id128{})) << i;
  }
  for (const std::string& name : names) EXPECT_EQ(keys::key_of_object(keys::object(kBucket, name)), name);
}

TEST(Keys, UploadsComeBack) {
  const Id128 id{{0, 1, 0xff, 0}};
  for (const std::string& name : {"a"s, ""s, "\0"s, "\0\0"s, "a\0\xff"s, "\0\1"s, std::string(1024, 'k')}) {
    const auto parsed = keys::parse_upload(keys::upload(kBucket, name, id));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->key, name);
    EXPECT_EQ(parsed->upload, id);
    EXPECT_TRUE(keys::upload(kBucket, name, id).starts_with(keys::upload_prefix(kBucket, name)));
  }
  // The uploads of one key are not those of a longer one.
  EXPECT_FALSE(keys::upload(kBucket, "ab", id).starts_with(keys::upload_key_prefix(kBucket, "a")));
  EXPECT_FALSE(keys::upload(kBucket, "a\0"s, id).starts_with(keys::upload_key_prefix(kBucket, "a")));
}

TEST(Keys, MalformedUploadsAreNone) {
  const std::string good = keys::upload(kBucket, "key", Id128{});
  for (size_t size = 0; size < good.size(); ++size) {
    const auto parsed = keys::parse_upload(good.substr(0, size));
    EXPECT_TRUE(!parsed || size == good.size()) << size;
  }
  std::string bad = keys::upload_prefix(kBucket, "key") + std::string("\0\2", 2) + std::string(16, 'x');
  EXPECT_FALSE(keys::parse_upload(bad));
  bad = keys::bucket_state(kBucket).replace(0, 2, "u/") + std::string("a\0b\0\1", 5) + std::string(16, 'x');
  EXPECT_FALSE(keys::parse_upload(bad)) << "a zero byte that isn't escaped";
}

TEST(Keys, NumbersAreOrderedAndComeBack) {
  EXPECT_LT(keys::part(kBucket, Id128{}, 9), keys::part(kBucket, Id128{}, 10));
  EXPECT_LT(keys::part(kBucket, Id128{}, 255), keys::part(kBucket, Id128{}, 256));
  EXPECT_EQ(keys::part_number(keys::part(kBucket, Id128{}, 10'000)), 10'000u);
  EXPECT_EQ(keys::session_of(keys::session(0x01020304)), 0x01020304u);
  EXPECT_FALSE(keys::session_of("S/123"));
  EXPECT_LT(keys::garbage(1, Id128{{9}}), keys::garbage(2, Id128{}));
}

TEST(Keys, TheLongestKeysOfS3Fit) {
  const std::string longest(1024, 'k');
  EXPECT_LE(keys::object(kBucket, longest).size(), client::Client::kMaxKeyBytes);
  EXPECT_LE(keys::upload(kBucket, std::string(keys::kMaxObjectKey, 'k'), Id128{}).size(), client::Client::kMaxKeyBytes);
}

TEST(Keys, KindsDontMix) {
  const std::vector<std::string> all = {
      keys::bucket_entry("x"),         keys::access_key("x"),          keys::session(1),
      keys::bucket_state(kBucket),     keys::frozen(kBucket),          keys::fence(1),
      keys::object(kBucket, "x"),      keys::table(kBucket, DataId{}), keys::upload(kBucket, "x", kBucket),
      keys::part(kBucket, kBucket, 1), keys::garbage(1, kBucket)};
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < all.size(); ++j) {
      if (i != j) EXPECT_NE(all[i].substr(0, 2), all[j].substr(0, 2));
    }
  }
}

}  // namespace
}  // namespace cairn::object
