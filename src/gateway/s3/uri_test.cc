#include "gateway/s3/uri.h"

#include <gtest/gtest.h>

namespace cairn::s3 {
namespace {

TEST(Uri, EncodesAllButUnreserved) {
  EXPECT_EQ(uri_encode("az-AZ_09.~", false), "az-AZ_09.~");
  EXPECT_EQ(uri_encode("a/b", false), "a%2Fb");
  EXPECT_EQ(uri_encode("a/b", true), "a/b");
  EXPECT_EQ(uri_encode("a b+c%", true), "a%20b%2Bc%25");
  EXPECT_EQ(uri_encode("\xc3\xa9\x10", true), "%C3%A9%10");
}

TEST(Uri, Decodes) {
  EXPECT_EQ(uri_decode("a%2fb%2Fc", false), "a/b/c");
  EXPECT_EQ(uri_decode("a+b", false), "a+b");
  EXPECT_EQ(uri_decode("a+b", true), "a b");
  for (const char* bad : {"%", "%2", "%2g", "a%zz"}) EXPECT_EQ(uri_decode(bad, false), std::nullopt) << bad;
}

TEST(Uri, EveryByteSurvives) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(uri_decode(uri_encode(all, false), true), all);
}

TEST(Uri, Query) {
  const QueryParameters expected = {{"list-type", "2"}, {"prefix", "a b&c"}, {"acl", ""}, {"x", "1=2"}};
  EXPECT_EQ(parse_query("list-type=2&prefix=a+b%26c&acl&&x=1=2"), expected);
  EXPECT_EQ(parse_query(""), QueryParameters());
  EXPECT_EQ(parse_query("a=%"), std::nullopt);
}

}  // namespace
}  // namespace cairn::s3
