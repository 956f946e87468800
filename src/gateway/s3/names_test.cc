#include "gateway/s3/names.h"

#include <gtest/gtest.h>

#include "gateway/s3/utf8.h"

namespace cairn::s3 {
namespace {

TEST(Names, Buckets) {
  for (const char* good : {"abc", "a-b.c", "123", "a1b2", "1.2.3", "xn--x"})
    EXPECT_TRUE(check_bucket_name(good)) << good;
  EXPECT_TRUE(check_bucket_name(std::string(63, 'a')));
  for (const char* bad :
       {"", "ab", "Abc", "a_b", "-ab", "ab-", ".ab", "a..b", "192.168.1.1", "a b", "a/b", "\xc3\xa9tat"}) {
    EXPECT_FALSE(check_bucket_name(bad)) << bad;
  }
  EXPECT_FALSE(check_bucket_name(std::string(64, 'a')));
}

TEST(Names, KeysAreBytesOfUtf8) {
  for (const char* good :
       {"a", "/lead", "a//b", "./a", "../a", "a/..", "a+b", "100%", "e\xcc\x81", "\xc3\xa9", "x\x10y"}) {
    EXPECT_TRUE(check_key(good)) << good;
  }
  EXPECT_TRUE(check_key(std::string(1024, 'k')));
  EXPECT_EQ(check_key(std::string(1025, 'k')).error().code(), Code::KeyTooLongError);
  EXPECT_EQ(check_key("").error().code(), Code::InvalidArgument);
  EXPECT_EQ(check_key("\xff").error().code(), Code::InvalidArgument);
}

TEST(Names, CopySources) {
  const std::tuple<const char*, const char*, const char*> good[] = {
      {"b/k", "b", "k"},       {"/b/k", "b", "k"},  {"b/a%20b%2Bc", "b", "a b+c"},
      {"b/a+b", "b", "a+b"},   {"b//k", "b", "/k"}, {"b/k?versionId=null", "b", "k"},
      {"b/k%3Fx", "b", "k?x"}, {"b%2Fk", "b", "k"}};
  for (const auto& [header, bucket, key] : good) {
    const auto source = parse_copy_source(header);
    ASSERT_TRUE(source.has_value()) << header;
    EXPECT_EQ(source->bucket, bucket);
    EXPECT_EQ(source->key, key);
  }
  for (const char* bad : {"", "b", "b/", "/b", "//k", "b/%zz", "b/k?versionId=1"}) {
    EXPECT_FALSE(parse_copy_source(bad).has_value()) << bad;
  }
}

TEST(Utf8, RefusesWhatIsNot) {
  EXPECT_TRUE(is_utf8("plain \xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80"));
  for (const char* bad : {"\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\x80", "\xe0\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace cairn::s3
