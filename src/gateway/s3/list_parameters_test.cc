#include "gateway/s3/list_parameters.h"

#include <gtest/gtest.h>

namespace cairn::s3 {
namespace {

std::string count(std::string_view query) {
  const auto n = parse_count(*parse_query(query), "max-keys");
  return n ? std::to_string(*n) : std::string(n.error().name());
}

TEST(ListParameters, Counts) {
  const std::pair<const char*, const char*> cases[] = {{"", "1000"},
                                                       {"max-keys=", "1000"},
                                                       {"max-keys=0", "0"},
                                                       {"max-keys=7", "7"},
                                                       {"max-keys=5000", "1000"},
                                                       {"max-keys=-1", "InvalidArgument"},
                                                       {"max-keys=x", "InvalidArgument"},
                                                       {"max-keys=1x", "InvalidArgument"},
                                                       {"max-keys=99999999999", "InvalidArgument"}};
  for (const auto& [query, expected] : cases) EXPECT_EQ(count(query), expected) << query;
}

TEST(ListParameters, TokensLeadBackToWhereTheListingStopped) {
  object::ListResult result;
  result.next = "photos/2026/\x01";
  result.next_is_prefix = true;
  const std::string token = make_token(result);
  const QueryParameters query = {{"list-type", "2"}, {"continuation-token", token}, {"start-after", "a"}};
  const auto view = parse_list(query, "b", "o");
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->query.start_after, result.next);
  EXPECT_TRUE(view->query.start_after_is_prefix);
  EXPECT_EQ(view->start_after, "a");
}

TEST(ListParameters, ForgedTokensAreRefused) {
  object::ListResult result;
  result.next = "key";
  std::string token = make_token(result);
  for (const std::string& bad : {std::string("key"), std::string(""), token.substr(4), "B" + token.substr(1)}) {
    const auto view = parse_list({{"list-type", "2"}, {"continuation-token", bad}}, "b", "o");
    ASSERT_FALSE(view.has_value()) << bad;
    EXPECT_EQ(view.error().code(), Code::InvalidArgument);
  }
}

TEST(ListParameters, MarkersOfVersionOne) {
  const auto prefix = [](std::string_view query) {
    const auto view = parse_list(*parse_query(query), "b", "o");
    return view.has_value() && view->query.start_after_is_prefix;
  };
  EXPECT_TRUE(prefix("marker=a/&delimiter=/"));
  EXPECT_FALSE(prefix("marker=a/b&delimiter=/"));
  EXPECT_FALSE(prefix("marker=a/"));
  EXPECT_TRUE(prefix("marker=p/a/&prefix=p/&delimiter=/"));
  EXPECT_FALSE(prefix("marker=p/&prefix=p/&delimiter=/"));
}

TEST(ListParameters, Encoding) {
  EXPECT_FALSE(*parse_encoding({}));
  EXPECT_TRUE(*parse_encoding({{"encoding-type", "url"}}));
  EXPECT_FALSE(parse_encoding({{"encoding-type", "base64"}}).has_value());
}

}  // namespace
}  // namespace cairn::s3
