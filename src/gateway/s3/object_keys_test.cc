// Keys with every kind of character, listings and deletes: PAINS P20, P22, P23, P24, P25.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gateway/s3/testing/gateway_rig.h"

namespace cairn::s3 {
namespace {

using namespace testing;

// What Python's unquote_plus does, by which P23 judges.
std::string unquote_plus(const std::string& text) { return uri_decode(text, true).value_or("?"); }

std::string percent_encode_all(const std::string& text) {
  std::string out;
  for (const char c : text) out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

// P22
TEST(Keys, ComeBackAsTheyWere) {
  GatewayRig rig({.domains = {"s3.example.com"}});
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    // The key, and how a client may write it with as little encoding as HTTP allows.
    const std::vector<std::pair<std::string, std::string>> keys = {{"a+b", "a+b"},
                                                                   {"a b", "a%20b"},
                                                                   {"ab@cd", "ab@cd"},
                                                                   {"v0/2:x", "v0/2:x"},
                                                                   {"100%", "100%25"},
                                                                   {"te st%20x", "te%20st%2520x"},
                                                                   {"a//b", "a//b"},
                                                                   {"/lead", "/lead"},
                                                                   {"./a", "./a"},
                                                                   {"../a", "../a"},
                                                                   {"a/..", "a/.."},
                                                                   {"\xc3\xa9", "\xc3\xa9"},
                                                                   {"e\xcc\x81", "e%CC%81"},
                                                                   {"日本", "%E6%97%A5%e6%9c%ac"},
                                                                   {"a=b&c?d#e", "a=b&c%3Fd%23e"},
                                                                   {"!*'(),;$~", "!*'(),;$~"},
                                                                   {"<&>\"", "%3C&%3E%22"},
                                                                   {"x\x10y", "x%10y"},
                                                                   {std::string(1024, 'k'), std::string(1024, 'k')}};
    for (const auto& [key, raw] : keys) {
      const std::string full = percent_encode_all(key);
      for (const std::string& spelling : {raw, full}) {
        auto r = co_await t->put("/bkt/" + spelling, "body of " + key);
        EXPECT_EQ(r.status, 200) << spelling << r.body;
        // Written one way, read the other.
        const std::string& other = spelling == raw ? full : raw;
        EXPECT_EQ((co_await t->get("/bkt/" + other)).body, "body of " + key) << other;
        EXPECT_EQ((co_await t->call({.method = "HEAD", .path = "/bkt/" + other})).status, 200);
        // As a subdomain, and presigned.
        r = co_await t->call({.path = "/" + other, .host = "bkt.s3.example.com"});
        EXPECT_EQ(r.body, "body of " + key) << "vhost " << other;
        const S3Request get{.path = "/bkt/" + other};
        r = co_await t->send_raw("GET " + get.path + "?" + t->presigned_query(get, "60") +
                                 " HTTP/1.1\r\nHost: " + t->host() + "\r\n\r\n");
        EXPECT_EQ(r.body, "body of " + key) << "presigned " << other;
        r = co_await t->call({.path = "/bkt", .query = "encoding-type=url&list-type=2"});
        EXPECT_EQ(xml_texts(r.body, "Key").size(), 1u);
        EXPECT_EQ(unquote_plus(xml_text(r.body, "Key")), key);
        EXPECT_EQ((co_await t->call({.method = "DELETE", .path = "/bkt/" + spelling})).status, 204);
        EXPECT_EQ((co_await t->get("/bkt/" + other)).status, 404);
      }
    }
    auto r = co_await t->put("/bkt/" + std::string(1025, 'k'), "x");
    EXPECT_EQ(r.status, 400);
    EXPECT_EQ(error_code(r), "KeyTooLongError");
  });
}

// P23
TEST(Listing, EncodesNamesOnRequest) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    const std::vector<std::string> keys = {"<&>", "Blabla_50%.jpg", "a b", "a+b", "p%+/x", std::string("x\x10y")};
    for (const auto& key : keys) EXPECT_EQ((co_await t->put("/bkt/" + percent_encode_all(key), "1")).status, 200);
    for (const std::string version : {"", "&list-type=2"}) {
      auto r = co_await t->call({.path = "/bkt", .query = "encoding-type=url" + version});
      EXPECT_EQ(xml_text(r.body, "EncodingType"), "url");
      std::vector<std::string> got;
      for (const auto& key : xml_texts(r.body, "Key")) got.push_back(unquote_plus(key));
      EXPECT_EQ(got, keys);
      // Without: well-formed, and no control character ever raw.
      r = co_await t->call({.path = "/bkt", .query = version.empty() ? "" : "list-type=2"});
      EXPECT_EQ(r.body.find('\x10'), std::string::npos);
      EXPECT_EQ(xml_texts(r.body, "Key")[0], "&lt;&amp;&gt;");
      EXPECT_EQ(xml_text(r.body, "EncodingType"), "");
      r = co_await t->call({.path = "/bkt", .query = "delimiter=%2B%2F&encoding-type=url&prefix=p%25" + version});
      EXPECT_EQ(unquote_plus(xml_text(r.body, "Delimiter")), "+/");
      EXPECT_EQ(unquote_plus(xml_text(xml_text(r.body, "CommonPrefixes"), "Prefix")), "p%+/");
    }
    auto r = co_await t->call({.path = "/bkt", .query = "encoding-type=url&list-type=2&start-after=a%20b"});
    EXPECT_EQ(unquote_plus(xml_text(r.body, "StartAfter")), "a b");
    EXPECT_EQ(unquote_plus(xml_texts(r.body, "Key")[0]), "a+b");
    r = co_await t->call({.path = "/bkt", .query = "encoding-type=base64"});
    EXPECT_EQ(error_code(r), "InvalidArgument");
  });
}

// P25
TEST(Listing, WalksPagesWithoutRepeatsOrGaps) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    for (const char* key : {"a.txt", "z.txt"}) (void)co_await t->put(std::string("/bkt/") + key, "x");
    for (int i = 0; i < 50; ++i) (void)co_await t->put(fmt::format("/bkt/photos/2026/{:04}", i), "x");
    for (const int step : {1, 2, 1000}) {
      std::vector<std::string> seen;
      std::string token;
      for (int page = 0; page < 60; ++page) {
        std::string query = "delimiter=%2F&list-type=2&max-keys=" + std::to_string(step);
        if (!token.empty()) query = "continuation-token=" + uri_encode(token, false) + "&" + query;
        const auto r = co_await t->call({.path = "/bkt", .query = query});
        EXPECT_EQ(r.status, 200) << r.body;
        const auto keys = xml_texts(r.body, "Key");
        const auto prefixes = xml_texts(r.body, "CommonPrefixes");
        EXPECT_EQ(xml_text(r.body, "KeyCount"), std::to_string(keys.size() + prefixes.size()));
        seen.insert(seen.end(), keys.begin(), keys.end());
        for (const auto& prefix : prefixes) seen.push_back(xml_text(prefix, "Prefix"));
        token = xml_text(r.body, "NextContinuationToken");
        EXPECT_EQ(xml_text(r.body, "IsTruncated"), token.empty() ? "false" : "true");
        if (token.empty()) break;
      }
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(seen, (std::vector<std::string>{"a.txt", "photos/", "z.txt"})) << step;
    }
    const struct {
      const char* query;
      int status;
      const char* keys;
    } cases[] = {
        {"list-type=2&max-keys=0", 200, "0"},
        {"list-type=2&max-keys=5000", 200, "52"},
        {"list-type=2&max-keys=-1", 400, ""},
        {"list-type=2&max-keys=x", 400, ""},
        {"continuation-token=invented&list-type=2", 400, ""},
    };
    for (const auto& c : cases) {
      const auto r = co_await t->call({.path = "/bkt", .query = c.query});
      EXPECT_EQ(r.status, c.status) << c.query;
      if (c.status == 200) {
        EXPECT_EQ(xml_text(r.body, "KeyCount"), c.keys);
        EXPECT_EQ(xml_text(r.body, "IsTruncated"), "false");
      } else {
        EXPECT_EQ(error_code(r), "InvalidArgument");
      }
    }
  });
}

std::string delete_body(const std::vector<std::string>& keys, bool quiet = false) {
  std::string body = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  if (quiet) body += "<Quiet>true</Quiet>";
  for (const auto& key : keys) body += "<Object><Key>" + key + "</Key></Object>";
  return body + "</Delete>";
}

Task<http::testing::TestResponse> delete_many(GatewayRig* t, std::string body) {
  const std::string md5 = md5_base64(body);
  co_return co_await t->call({.method = "POST",
                              .path = "/bkt",
                              .query = "delete",
                              .headers = {{"content-md5", md5}},
                              .body = std::move(body)});
}

// P20
TEST(DeleteObjects, TakesEitherProofOfIntegrity) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    const std::string body = delete_body({"k"});
    const std::string crc = checksum_base64(ChecksumKind::crc32, body);
    const struct {
      S3Request::Fields headers;
      int status;
      const char* code;
    } cases[] = {
        {{{"x-amz-checksum-crc32", crc}, {"x-amz-sdk-checksum-algorithm", "CRC32"}}, 200, ""},
        {{{"content-md5", md5_base64(body)}}, 200, ""},
        {{}, 400, "MissingContentMD5"},
        {{{"x-amz-checksum-crc32", "AAAAAA=="}}, 400, "BadDigest"},
        {{{"content-md5", md5_base64("other")}}, 400, "BadDigest"},
    };
    for (const auto& c : cases) {
      EXPECT_EQ((co_await t->put("/bkt/k", "x")).status, 200);
      auto r =
          co_await t->call({.method = "POST", .path = "/bkt", .query = "delete", .headers = c.headers, .body = body});
      EXPECT_EQ(r.status, c.status) << r.body;
      EXPECT_EQ(error_code(r), c.code);
      EXPECT_EQ((co_await t->get("/bkt/k")).status, c.status == 200 ? 404 : 200);
    }
    std::vector<std::string> many(1001, "k");
    EXPECT_EQ(error_code(co_await delete_many(t, delete_body(many))), "MalformedXML");
  });
}

// Whatever the coding: the proof is the same.
TEST(DeleteObjects, TakesAwsChunkedDocuments) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    const std::string body = delete_body({"k"});
    const std::string size = std::to_string(body.size());
    const std::string crc = checksum_base64(ChecksumKind::crc32, body);
    const auto frame = [&](const std::string& trailer) {
      return fmt::format("{:x}\r\n{}\r\n0\r\n{}\r\n", body.size(), body, trailer);
    };
    const struct {
      std::string body;
      S3Request::Fields headers;
      int status;
      const char* code;
    } cases[] = {
        {frame("x-amz-checksum-crc32:" + crc + "\r\n"), {{"x-amz-trailer", "x-amz-checksum-crc32"}}, 200, ""},
        {frame("x-amz-checksum-crc32:AAAAAA==\r\n"), {{"x-amz-trailer", "x-amz-checksum-crc32"}}, 400, "BadDigest"},
        {frame(""), {{"x-amz-trailer", "x-amz-checksum-crc32"}}, 400, "MalformedTrailerError"},
        {frame(""), {{"content-md5", md5_base64(body)}}, 200, ""},
        {frame(""), {}, 400, "MissingContentMD5"},
    };
    for (const auto& c : cases) {
      (void)co_await t->put("/bkt/k", "x");
      S3Request request{.method = "POST",
                        .path = "/bkt",
                        .query = "delete",
                        .headers = c.headers,
                        .body = c.body,
                        .payload_hash = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"};
      request.headers.emplace_back("content-encoding", "aws-chunked");
      request.headers.emplace_back("x-amz-decoded-content-length", size);
      const auto r = co_await t->call(std::move(request));
      EXPECT_EQ(r.status, c.status) << r.body;
      EXPECT_EQ(error_code(r), c.code) << r.body;
      EXPECT_EQ((co_await t->get("/bkt/k")).status, c.status == 200 ? 404 : 200);
    }
    // Signed chunk by chunk.
    S3Request request{.method = "POST",
                      .path = "/bkt",
                      .query = "delete",
                      .headers = {{"content-encoding", "aws-chunked"},
                                  {"x-amz-decoded-content-length", size},
                                  {"content-md5", md5_base64(body)}},
                      .payload_hash = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"};
    Authorization authorization;
    (void)t->signed_bytes(request, &authorization);
    request.body = signed_chunks(t->key_of(authorization), authorization, {body});
    (void)co_await t->put("/bkt/k", "x");
    EXPECT_EQ((co_await t->send_raw(t->signed_bytes(request))).status, 200);
    EXPECT_EQ((co_await t->get("/bkt/k")).status, 404);
  });
}

// P24
TEST(DeleteObjects, NeverDeletesByAGuess) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    (void)co_await t->put("/bkt/aaa/a%3Ca", "x");
    (void)co_await t->put("/bkt/%26", "x");
    auto r = co_await delete_many(t, delete_body({"aaa/a&lt;a", "&amp;", "missing"}));
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(xml_texts(r.body, "Key"), (std::vector<std::string>{"aaa/a&lt;a", "&amp;", "missing"}));
    EXPECT_EQ((co_await t->get("/bkt/aaa/a%3Ca")).status, 404);
    EXPECT_EQ((co_await t->get("/bkt/%26")).status, 404);

    (void)co_await t->put("/bkt/a%10b", "x");
    (void)co_await t->put("/bkt/other", "x");
    for (const std::string& bad :
         {delete_body({"other", "a&#x10;b"}), std::string("<Delete></Delete>"), std::string("<Delete>"),
          std::string("not xml"), std::string("<!DOCTYPE a [<!ENTITY e \"other\">]>") + delete_body({"&e;"})}) {
      r = co_await delete_many(t, bad);
      EXPECT_EQ(r.status, 400) << bad;
      EXPECT_EQ(error_code(r), "MalformedXML") << bad;
      EXPECT_EQ((co_await t->get("/bkt/other")).status, 200);
    }
    r = co_await delete_many(t, delete_body({std::string(1025, 'x')}));
    EXPECT_EQ(error_code(r), "KeyTooLongError");
    for (const char* condition : {"x-amz-if-match-size", "x-amz-if-match-last-modified-time"}) {
      r = co_await t->call({.method = "DELETE", .path = "/bkt/other", .headers = {{condition, "9"}}});
      EXPECT_EQ(error_code(r), "NotImplemented");
      EXPECT_EQ((co_await t->get("/bkt/other")).status, 200);
    }
    EXPECT_EQ((co_await t->call({.method = "DELETE", .path = "/bkt/a%10b"})).status, 204);
    EXPECT_EQ((co_await t->get("/bkt/a%10b")).status, 404);

    // Quiet: only what failed.
    r = co_await delete_many(t, delete_body({"other", "missing"}, true));
    EXPECT_TRUE(xml_texts(r.body, "Key").empty());
  });
}

TEST(Subresources, AreAnsweredOrRefusedButNeverMistaken) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    (void)co_await t->put("/bkt/k", "precious");
    for (const std::string sub : {"acl", "tagging", "retention", "legal-hold", "torrent", "restore", "select"}) {
      for (const std::string method : {"PUT", "POST", "DELETE"}) {
        const auto r = co_await t->call({.method = method, .path = "/bkt/k", .query = sub, .body = "<x/>"});
        EXPECT_EQ(r.status, 501) << method << sub << r.body;
        EXPECT_EQ(error_code(r), "NotImplemented");
      }
    }
    EXPECT_EQ((co_await t->get("/bkt/k")).body, "precious");
    for (const std::string sub : {"policy", "lifecycle", "cors", "versioning", "website", "acl"}) {
      for (const std::string method : {"PUT", "DELETE"}) {
        EXPECT_EQ((co_await t->call({.method = method, .path = "/bkt", .query = sub, .body = "<x/>"})).status, 501)
            << method << sub;
      }
    }
    EXPECT_EQ((co_await t->call({.method = "HEAD", .path = "/bkt"})).status, 200);
    EXPECT_EQ(error_code(co_await t->call({.path = "/bkt", .query = "policy"})), "NoSuchBucketPolicy");
    EXPECT_NE((co_await t->call({.path = "/bkt", .query = "location"})).body.find("LocationConstraint"),
              std::string::npos);
    EXPECT_EQ(error_code(co_await t->call({.method = "PUT", .path = "/Bad_Name"})), "InvalidBucketName");
    EXPECT_EQ(error_code(co_await t->call({.method = "PUT", .path = "/bkt"})), "BucketAlreadyOwnedByYou");
    EXPECT_EQ(error_code(co_await t->call({.method = "DELETE", .path = "/bkt"})), "BucketNotEmpty");
    EXPECT_EQ(xml_texts((co_await t->call({.path = "/"})).body, "Name"), std::vector<std::string>{"bkt"});
    EXPECT_EQ((co_await t->call({.method = "DELETE", .path = "/bkt/k"})).status, 204);
    EXPECT_EQ((co_await t->call({.method = "DELETE", .path = "/bkt"})).status, 204);
    EXPECT_EQ((co_await t->call({.method = "HEAD", .path = "/bkt"})).status, 404);
  });
}

}  // namespace
}  // namespace cairn::s3
