#include "gateway/s3/attributes.h"

#include <gtest/gtest.h>

namespace cairn::s3 {
namespace {

TEST(Attributes, ThereAndBack) {
  http::Headers headers;
  headers.add("Content-Type", "text/plain");
  headers.add("Cache-Control", "no-cache");
  headers.add("Content-Encoding", "aws-chunked, gzip");
  headers.add("X-Amz-Meta-Color", "blue");
  headers.add("x-amz-meta-color", "green");
  headers.add("x-amz-meta-empty", "");
  headers.add("Host", "h");
  const auto attributes = attributes_of(headers);
  ASSERT_TRUE(attributes.has_value());
  EXPECT_EQ(attributes->content_type, "text/plain");
  EXPECT_EQ(attributes->headers,
            (std::map<std::string, std::string>{{"cache-control", "no-cache"}, {"content-encoding", "gzip"}}));
  EXPECT_EQ(attributes->user_metadata, (std::map<std::string, std::string>{{"color", "blue,green"}, {"empty", ""}}));
  EXPECT_EQ(attribute_headers(*attributes).size(), 5u);
}

TEST(Attributes, AwsChunkedIsNoEncodingOfTheObject) {
  http::Headers headers;
  headers.add("content-encoding", "AWS-Chunked");
  const auto attributes = attributes_of(headers);
  ASSERT_TRUE(attributes.has_value());
  EXPECT_TRUE(attributes->headers.empty());
  EXPECT_EQ(attributes->content_type, "binary/octet-stream");
}

TEST(Attributes, UserMetadataLimit) {
  const std::string most(2047, 'x');
  http::Headers headers;
  headers.add("x-amz-meta-a", most);
  EXPECT_TRUE(attributes_of(headers).has_value());
  headers.add("x-amz-meta-b", "");
  const auto attributes = attributes_of(headers);
  ASSERT_FALSE(attributes.has_value());
  EXPECT_EQ(attributes.error().code(), Code::MetadataTooLarge);
}

}  // namespace
}  // namespace cairn::s3
