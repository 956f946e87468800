// The signatures that the Amazon S3 documentation publishes for its example key.
#include "gateway/s3/sigv4.h"

#include <gtest/gtest.h>

#include "base/hex.h"
#include "gateway/http/date.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
constexpr std::string_view kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kCredential = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";
constexpr int64_t kNow = 1369353600;  // 2013-05-24T00:00:00Z

std::string authorization_header(std::string_view signed_headers, std::string_view signature) {
  return "AWS4-HMAC-SHA256 Credential=" + std::string(kCredential) + ",SignedHeaders=" + std::string(signed_headers) +
         ",Signature=" + std::string(signature);
}

S3Result<void> check(const AuthRequest& request, int64_t now = kNow, std::span<const std::string> hosts = {}) {
  TRY(auto authorization, parse_authorization(request));
  if (!authorization) return S3Error(Code::AccessDenied, "anonymous");
  TRY(check_time(*authorization, now));
  return verify(signing_key(kSecret, *authorization), *authorization, request, hosts);
}

std::string outcome(const S3Result<void>& result) { return result ? "ok" : std::string(result.error().name()); }

struct Example {
  std::string_view method;
  std::string_view path;
  std::string_view query;
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  std::string_view signed_headers;
  std::string_view signature;
};

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"GET",
       "/test.txt",
       "",
       {{"host", "examplebucket.s3.amazonaws.com"},
        {"range", "bytes=0-9"},
        {"x-amz-content-sha256", kEmptyHash},
        {"x-amz-date", "20130524T000000Z"}},
       "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"PUT",
       "/test$file.text",
       "",
       {{"host", "examplebucket.s3.amazonaws.com"},
        {"date", "Fri, 24 May 2013 00:00:00 GMT"},
        {"x-amz-date", "20130524T000000Z"},
        {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
        {"x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"GET",
       "/",
       "lifecycle",
       {{"host", "examplebucket.s3.amazonaws.com"},
        {"x-amz-content-sha256", kEmptyHash},
        {"x-amz-date", "20130524T000000Z"}},
       "host;x-amz-content-sha256;x-amz-date",
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"GET",
       "/",
       "max-keys=2&prefix=J",
       {{"host", "examplebucket.s3.amazonaws.com"},
        {"x-amz-content-sha256", kEmptyHash},
        {"x-amz-date", "20130524T000000Z"}},
       "host;x-amz-content-sha256;x-amz-date",
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  return all;
}

// Fills in the Authorization header, which outlives the request.
AuthRequest request_of(const Example& example, std::string& header) {
  header = authorization_header(example.signed_headers, example.signature);
  AuthRequest request{example.method, example.path, example.query, example.headers};
  request.headers.emplace_back("authorization", header);
  return request;
}

TEST(SigV4, PublishedExamples) {
  for (const Example& example : examples()) {
    std::string header;
    EXPECT_EQ(outcome(check(request_of(example, header))), "ok") << example.signature;
  }
}

TEST(SigV4, BothSpellingsOfThePathVerify) {
  Example example = examples()[1];
  example.path = "/test%24file.text";
  std::string header;
  EXPECT_EQ(outcome(check(request_of(example, header))), "ok");
  example.path = "/test%24fil%65.text";
  EXPECT_EQ(outcome(check(request_of(example, header))), "ok");
  example.path = "//test$file.text";
  EXPECT_EQ(outcome(check(request_of(example, header))), "SignatureDoesNotMatch");
}

TEST(SigV4, AnyChangeIsNoticed) {
  std::string header;
  for (const Example& original : examples()) {
    Example example = original;
    example.method = "DELETE";
    EXPECT_EQ(outcome(check(request_of(example, header))), "SignatureDoesNotMatch");
    example = original;
    example.query = "acl";
    EXPECT_EQ(outcome(check(request_of(example, header))), "SignatureDoesNotMatch");
    example = original;
    example.headers[0].second = "other.s3.amazonaws.com";
    EXPECT_EQ(outcome(check(request_of(example, header))), "SignatureDoesNotMatch");
    example = original;
    example.headers.emplace_back("x-amz-acl", "public-read");
    EXPECT_EQ(outcome(check(request_of(example, header))), "AccessDenied");
  }
}

TEST(SigV4, SkewOfFifteenMinutes) {
  std::string header;
  const AuthRequest request = request_of(examples()[0], header);
  EXPECT_EQ(outcome(check(request, kNow + 900)), "ok");
  EXPECT_EQ(outcome(check(request, kNow + 901)), "RequestTimeTooSkewed");
  EXPECT_EQ(outcome(check(request, kNow - 900)), "ok");
  EXPECT_EQ(outcome(check(request, kNow - 901)), "RequestTimeTooSkewed");
}

std::string presigned_query(std::string_view expires = "86400", std::string_view extra = "") {
  return "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"
         "aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=" +
         std::string(expires) +
         "&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404" +
         std::string(extra);
}

TEST(SigV4, PresignedUrl) {
  const std::string query = presigned_query();
  AuthRequest request{"GET", "/test.txt", query, {{"host", "examplebucket.s3.amazonaws.com"}}};
  EXPECT_EQ(outcome(check(request)), "ok");
  EXPECT_EQ(outcome(check(request, kNow + 86400)), "ok");
  EXPECT_EQ(outcome(check(request, kNow + 86401)), "AccessDenied");
  EXPECT_EQ(outcome(check(request, kNow - 901)), "AccessDenied");

  const std::string longer = presigned_query("604801");
  request.query = longer;
  EXPECT_EQ(outcome(check(request)), "AuthorizationQueryParametersError");
  const std::string none = presigned_query("0");
  request.query = none;
  EXPECT_EQ(outcome(check(request)), "AuthorizationQueryParametersError");
  const std::string week = presigned_query("604800");
  request.query = week;
  EXPECT_EQ(outcome(check(request)), "SignatureDoesNotMatch");
  const std::string extra = presigned_query("86400", "&x=y");
  request.query = extra;
  EXPECT_EQ(outcome(check(request)), "SignatureDoesNotMatch");
}

TEST(SigV4, HostSpellings) {
  const std::string query = presigned_query();
  AuthRequest request{"GET", "/test.txt", query, {{"host", "examplebucket.s3.amazonaws.com:80"}}};
  EXPECT_EQ(outcome(check(request)), "ok");
  request.headers[0].second = "examplebucket.s3.amazonaws.com:443";
  EXPECT_EQ(outcome(check(request)), "ok");
  request.headers[0].second = "examplebucket.s3.amazonaws.com:8080";
  EXPECT_EQ(outcome(check(request)), "SignatureDoesNotMatch");
  request.headers[0].second = "backend:9000";
  const std::vector<std::string> hosts{"examplebucket.s3.amazonaws.com"};
  EXPECT_EQ(outcome(check(request, kNow, hosts)), "ok");
}

TEST(SigV4, RefusesMalformedClaims) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"AWS AKIAIOSFODNN7EXAMPLE:abc", "InvalidRequest"},
      {"Bearer abc", "InvalidArgument"},
      {"AWS4-HMAC-SHA256", "AuthorizationHeaderMalformed"},
      {"AWS4-HMAC-SHA256 Credential=a/b,SignedHeaders=host,Signature=" + std::string(64, '0'),
       "AuthorizationHeaderMalformed"},
      {"AWS4-HMAC-SHA256 Credential=a/20130524/r/ec2/aws4_request,SignedHeaders=host,Signature=" + std::string(64, '0'),
       "AuthorizationHeaderMalformed"},
      {"AWS4-HMAC-SHA256 Credential=a/20130524/r/s3/aws4_request,SignedHeaders=Host,Signature=" + std::string(64, '0'),
       "AuthorizationHeaderMalformed"},
      {"AWS4-HMAC-SHA256 Credential=a/20130524/r/s3/aws4_request,SignedHeaders=host,Signature=XYZ",
       "AuthorizationHeaderMalformed"},
      {"AWS4-HMAC-SHA256 Credential=a/20130525/r/s3/aws4_request,SignedHeaders=host,Signature=" + std::string(64, '0'),
       "AuthorizationHeaderMalformed"},
  };
  for (const auto& [header, expected] : cases) {
    const AuthRequest request{"GET",
                              "/",
                              "",
                              {{"host", "h"},
                               {"x-amz-date", "20130524T000000Z"},
                               {"x-amz-content-sha256", kEmptyHash},
                               {"authorization", header}}};
    EXPECT_EQ(outcome(check(request)), expected) << header;
  }
  const std::string both = presigned_query();
  EXPECT_EQ(outcome(check({"GET", "/", both, {{"host", "h"}, {"authorization", "AWS4-HMAC-SHA256 x"}}})),
            "InvalidArgument");
  EXPECT_EQ(outcome(check({"GET", "/", "a=%zz", {}})), "InvalidURI");
}

TEST(SigV4, AnonymousIsNoError) {
  const auto parsed = parse_authorization({"GET", "/", "", {{"host", "h"}}});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_FALSE(parsed->has_value());
}

TEST(SigV4, AccessKeysMayHoldSlashes) {
  const std::string header =
      "AWS4-HMAC-SHA256 Credential=a/b/c/20130524/r/s3/aws4_request,SignedHeaders=host,Signature=" +
      std::string(64, '0');
  const auto parsed = parse_authorization(
      {"GET",
       "/",
       "",
       {{"x-amz-date", "20130524T000000Z"}, {"x-amz-content-sha256", "UNSIGNED-PAYLOAD"}, {"authorization", header}}});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ((*parsed)->access_key, "a/b/c");
}

TEST(SigV4, Timestamps) {
  EXPECT_EQ(http::parse_basic_iso8601("20130524T000000Z"), kNow);
  EXPECT_EQ(format_amz_timestamp(kNow), "20130524T000000Z");
  EXPECT_EQ(http::parse_basic_iso8601("20240229T235959Z"), 1709251199);
  for (const char* bad : {"", "20130524T000000", "20130230T000000Z", "20131301T000000Z", "20130524T240000Z",
                          "2013-524T000000Z", "20130524 000000Z"}) {
    EXPECT_EQ(http::parse_basic_iso8601(bad), std::nullopt) << bad;
  }
}

TEST(SigV4, PublishedChunkChain) {
  Authorization authorization;
  authorization.date = "20130524";
  authorization.region = "us-east-1";
  authorization.service = "s3";
  authorization.timestamp = "20130524T000000Z";
  authorization.signature = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
  ChunkSigner signer(signing_key(kSecret, authorization), authorization);
  const auto chunk = [&](size_t size) { return signer.sign_chunk(to_hex(sha256(std::string(size, 'a')))); };
  EXPECT_EQ(chunk(65536), "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
  EXPECT_EQ(chunk(1024), "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
  EXPECT_EQ(chunk(0), "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
}

}  // namespace
}  // namespace cairn::s3
