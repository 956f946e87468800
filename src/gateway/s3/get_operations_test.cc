// Downloads: ranges (PAINS P28), conditions, overrides, answers that are cut short, presigned URLs (P30).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "gateway/s3/testing/gateway_rig.h"

namespace cairn::s3 {
namespace {

using namespace testing;

Task<void> make_object(GatewayRig* t, std::string key, std::string body) {
  (void)co_await t->call({.method = "PUT", .path = "/bkt"});
  EXPECT_EQ((co_await t->put("/bkt/" + key, std::move(body), {{"content-type", "text/plain"}})).status, 200);
}

// P28, for GET and HEAD alike.
TEST(GetObject, ServesRanges) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "ten", "0123456789");
    co_await make_object(t, "empty", "");
    const struct {
      const char* key;
      const char* range;
      int status;
      const char* content_range;
      const char* body;
    } cases[] = {
        {"ten", "bytes=0-0", 206, "bytes 0-0/10", "0"},
        {"ten", "bytes=5-15", 206, "bytes 5-9/10", "56789"},
        {"ten", "bytes=2-", 206, "bytes 2-9/10", "23456789"},
        {"ten", "bytes=-3", 206, "bytes 7-9/10", "789"},
        {"ten", "bytes=-20", 206, "bytes 0-9/10", "0123456789"},
        {"ten", "bytes=3-0", 200, "", "0123456789"},
        {"ten", "bytes=abc", 200, "", "0123456789"},
        {"ten", "bytes=0-1,5-6", 200, "", "0123456789"},
        {"ten", "lines=1-2", 200, "", "0123456789"},
        {"ten", "bytes=10-", 416, "bytes */10", nullptr},
        {"ten", "bytes=-0", 416, "bytes */10", nullptr},
        {"empty", "bytes=0-0", 416, "bytes */0", nullptr},
        {"empty", "bytes=-1", 416, "bytes */0", nullptr},
    };
    for (const auto& c : cases) {
      const std::string path = std::string("/bkt/") + c.key;
      auto r = co_await t->get(path, {{"range", c.range}});
      EXPECT_EQ(r.status, c.status) << c.range;
      EXPECT_EQ(r.header("content-range"), c.content_range) << c.range;
      if (c.body != nullptr) {
        EXPECT_EQ(r.body, c.body) << c.range;
      } else {
        EXPECT_EQ(error_code(r), "InvalidRange");
      }
      const size_t length = r.body.size();
      r = co_await t->call({.method = "HEAD", .path = path, .headers = {{"range", c.range}}});
      EXPECT_EQ(r.status, c.status) << "HEAD " << c.range;
      EXPECT_EQ(r.header("content-range"), c.content_range) << c.range;
      if (c.body != nullptr) EXPECT_EQ(r.header("content-length"), std::to_string(length));
    }
  });
}

TEST(GetObject, JudgesConditions) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "hello world");
    const std::string etag = "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"";
    const std::string at = "Mon, 30 Nov 2026 08:00:00 GMT";
    const std::string before = "Mon, 30 Nov 2026 07:59:59 GMT";
    const struct {
      S3Request::Fields headers;
      int status;
    } cases[] = {
        {{{"if-match", etag}}, 200},
        {{{"if-match", "\"other\""}}, 412},
        {{{"if-none-match", etag}}, 304},
        {{{"if-none-match", "*"}}, 304},
        {{{"if-none-match", "\"other\""}}, 200},
        {{{"if-modified-since", at}}, 304},
        {{{"if-modified-since", before}}, 200},
        {{{"if-unmodified-since", at}}, 200},
        {{{"if-unmodified-since", before}}, 412},
        // RFC 9110 section 13.2.2: an ETag that matches outweighs the date.
        {{{"if-match", etag}, {"if-unmodified-since", before}}, 200},
        {{{"if-none-match", "\"other\""}, {"if-modified-since", at}}, 200},
        {{{"range", "bytes=0-4"}, {"if-range", etag}}, 206},
        {{{"range", "bytes=0-4"}, {"if-range", "\"other\""}}, 200},
    };
    for (const auto& c : cases) {
      auto r = co_await t->get("/bkt/k", c.headers);
      EXPECT_EQ(r.status, c.status) << c.headers[0].first << c.headers[0].second;
      if (c.status == 304) {
        EXPECT_EQ(r.header("etag"), etag);
        EXPECT_EQ(r.header("content-length"), "");
      }
      EXPECT_EQ((co_await t->call({.method = "HEAD", .path = "/bkt/k", .headers = c.headers})).status, c.status);
    }
  });
}

TEST(GetObject, OverridesHeadersOnRequest) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "x");
    auto r = co_await t->call({.path = "/bkt/k",
                               .query = "response-cache-control=no-store&response-content-disposition=attachment%3B%20"
                                        "filename%3D%22a%22&response-content-type=image%2Fpng"});
    EXPECT_EQ(r.header("content-type"), "image/png");
    EXPECT_EQ(r.header("cache-control"), "no-store");
    EXPECT_EQ(r.header("content-disposition"), "attachment; filename=\"a\"");
    // A header can't be split by what a query holds.
    r = co_await t->call({.path = "/bkt/k", .query = "response-content-type=a%0D%0AX-Evil%3A%201"});
    EXPECT_EQ(r.header("x-evil"), "");
  });
}

TEST(GetObject, NeverServesDamagedBytes) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", std::string(100'000, 'x'));
    t->store.faults.piece_bytes = 16384;
    t->store.faults.bad_piece = 0;
    auto r = co_await t->get("/bkt/k");
    EXPECT_EQ(r.status, 500);
    EXPECT_EQ(error_code(r), "InternalError");
    EXPECT_NE(xml_text(r.body, "Message").find("damaged"), std::string::npos);
    // Too late for a status: the body ends short of its length, and no client takes it for whole.
    t->store.faults.bad_piece = 3;
    r = co_await t->get("/bkt/k");
    EXPECT_EQ(r.status, 200);
    EXPECT_FALSE(r.complete);
    EXPECT_EQ(r.body.size(), 3u * 16384);
    t->store.faults.bad_piece.reset();
    r = co_await t->get("/bkt/k");
    EXPECT_TRUE(r.complete);
    EXPECT_EQ(r.body.size(), 100'000u);
  });
}

TEST(GetObject, AnswersForWhatIsNotThere) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    auto r = co_await t->get("/bkt/k");
    EXPECT_EQ(r.status, 404);
    EXPECT_EQ(error_code(r), "NoSuchBucket");
    co_await make_object(t, "k", "x");
    r = co_await t->get("/bkt/other");
    EXPECT_EQ(error_code(r), "NoSuchKey");
    EXPECT_EQ(xml_text(r.body, "Resource"), "/bkt/other");
    EXPECT_EQ(xml_text(r.body, "RequestId"), r.header("x-amz-request-id"));
    EXPECT_FALSE(xml_text(r.body, "HostId").empty());
    EXPECT_EQ((co_await t->call({.method = "HEAD", .path = "/bkt/other"})).status, 404);
    r = co_await t->call({.path = "/bkt/k", .query = "versionId=null"});
    EXPECT_EQ(r.body, "x");
    r = co_await t->call({.path = "/bkt/k", .query = "versionId=abc"});
    EXPECT_EQ(r.status, 400);
    r = co_await t->call({.path = "/bkt/k", .query = "partNumber=2"});
    EXPECT_EQ(r.status, 416);
    r = co_await t->call({.path = "/bkt/k", .query = "partNumber=0"});
    EXPECT_EQ(error_code(r), "InvalidArgument");
    r = co_await t->call({.method = "OPTIONS", .path = "/bkt/k"});
    EXPECT_EQ(r.status, 405);
    EXPECT_EQ(r.header("allow"), "PUT, GET, HEAD, DELETE");
    r = co_await t->call({.path = "/bkt/k", .headers = {{"x-amz-expected-bucket-owner", "somebody"}}});
    EXPECT_EQ(error_code(r), "AccessDenied");
    r = co_await t->call({.path = "/none/k", .headers = {{"x-amz-expected-bucket-owner", "somebody"}}});
    EXPECT_EQ(error_code(r), "NoSuchBucket");
    const std::string owner = xml_text((co_await t->call({.path = "/"})).body, "ID");
    EXPECT_FALSE(owner.empty());
    r = co_await t->call({.path = "/bkt/k", .headers = {{"x-amz-expected-bucket-owner", owner}}});
    EXPECT_EQ(r.body, "x");
    r = co_await t->put("/bkt/copy", "",
                        {{"x-amz-copy-source", "bkt/k"}, {"x-amz-source-expected-bucket-owner", "somebody"}});
    EXPECT_EQ(error_code(r), "AccessDenied");
    r = co_await t->put("/bkt/copy", "",
                        {{"x-amz-copy-source", "bkt/k"}, {"x-amz-source-expected-bucket-owner", owner}});
    EXPECT_EQ(r.status, 200);
    r = co_await t->call({.path = "/bkt/%zz"});
    EXPECT_EQ(r.status, 400);
  });
}

TEST(GetObjectAttributes, TellsWhatIsAsked) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "hello world");
    auto r = co_await t->call({.path = "/bkt/k",
                               .query = "attributes",
                               .headers = {{"x-amz-object-attributes", "ETag,ObjectSize, StorageClass,Checksum"}}});
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(xml_text(r.body, "ETag"), "5eb63bbbe01eeed093cb22bb8f5acdc3");
    EXPECT_EQ(xml_text(r.body, "ObjectSize"), "11");
    EXPECT_EQ(xml_text(r.body, "StorageClass"), "STANDARD");
    r = co_await t->call({.path = "/bkt/k", .query = "attributes"});
    EXPECT_EQ(error_code(r), "InvalidArgument");
    r = co_await t->call({.path = "/bkt/k", .query = "attributes", .headers = {{"x-amz-object-attributes", "Color"}}});
    EXPECT_EQ(error_code(r), "InvalidArgument");
  });
}

Task<http::testing::TestResponse> get_presigned(GatewayRig* t, S3Request request, std::string expires,
                                                std::string send_host = "", std::string more = "") {
  const std::string query = t->presigned_query(request, std::move(expires));
  std::string bytes = request.method + " " + request.path + "?" + query + more + " HTTP/1.1\r\nHost: " +
                      (send_host.empty() ? request.host.empty() ? t->host() : request.host : send_host) + "\r\n";
  for (const auto& [name, value] : request.headers) bytes += name + ": " + value + "\r\n";
  bytes += "Content-Length: " + std::to_string(request.body.size()) + "\r\n\r\n" + request.body;
  co_return co_await t->send_raw(bytes);
}

// P30
TEST(PresignedUrls, WorkBehindPortsAndProxies) {
  GatewayRig rig({.public_hosts = {"s3.public.example"}});
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "hello");
    const S3Request get{.path = "/bkt/k"};
    EXPECT_EQ((co_await get_presigned(t, get, "60")).body, "hello");
    EXPECT_EQ((co_await get_presigned(t, get, "604800")).status, 200);
    auto r = co_await get_presigned(t, get, "604801");
    EXPECT_EQ(r.status, 400);
    EXPECT_EQ(error_code(r), "AuthorizationQueryParametersError");

    S3Request named = get;
    for (const auto& [signed_host, sent_host, status] : {std::tuple{"h", "h", 200},
                                                         {"h", "h:80", 200},
                                                         {"h:443", "h", 200},
                                                         {"h:9000", "h:9000", 200},
                                                         {"h:9000", "h", 403},
                                                         {"s3.public.example", "backend:9000", 200},
                                                         {"evil.example", "backend:9000", 403}}) {
      named.host = signed_host;
      r = co_await get_presigned(t, named, "60", sent_host);
      EXPECT_EQ(r.status, status) << signed_host << " " << sent_host;
    }

    // An extra parameter that isn't signed changes the request.
    r = co_await get_presigned(t, get, "60", "", "&response-content-type=text%2Fhtml");
    EXPECT_EQ(error_code(r), "SignatureDoesNotMatch");

    S3Request old = get;
    old.skew_s = -61;
    r = co_await get_presigned(t, old, "60");
    EXPECT_EQ(r.status, 403);
    EXPECT_EQ(error_code(r), "AccessDenied");
    old.skew_s = -60;
    EXPECT_EQ((co_await get_presigned(t, old, "60")).status, 200);

    S3Request put{.method = "PUT", .path = "/bkt/p", .headers = {{"content-type", "text/plain"}}, .body = "up"};
    EXPECT_EQ((co_await get_presigned(t, put, "60")).status, 200);
    EXPECT_EQ((co_await t->get("/bkt/p")).body, "up");
    const std::string query = t->presigned_query(put, "60");
    r = co_await t->send_raw("PUT /bkt/p?" + query + " HTTP/1.1\r\nHost: " + t->host() +
                             "\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nup");
    EXPECT_EQ(error_code(r), "SignatureDoesNotMatch");
  });
}

TEST(Authentication, IsAskedOfEverybody) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "secret");
    auto r = co_await t->send_raw("GET /bkt/k HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(r.status, 403);
    EXPECT_EQ(error_code(r), "AccessDenied");
    // An unknown client doesn't learn what is there or possible.
    r = co_await t->send_raw("GET /none?torrent HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(error_code(r), "AccessDenied");
    S3Request late{.path = "/bkt/k", .skew_s = -901};
    r = co_await t->call(late);
    EXPECT_EQ(error_code(r), "RequestTimeTooSkewed");
    late.skew_s = 899;
    EXPECT_EQ((co_await t->call(late)).status, 200);
    std::string bytes = t->signed_bytes({.path = "/bkt/k"});
    bytes.replace(bytes.find("AKIDEXAMPLE"), 11, "AKIDUNKNOWN");
    EXPECT_EQ(error_code(co_await t->send_raw(bytes)), "InvalidAccessKeyId");
    bytes = t->signed_bytes({.path = "/bkt/k"});
    bytes.replace(bytes.find("/bkt/k"), 6, "/bkt/j");
    EXPECT_EQ(error_code(co_await t->send_raw(bytes)), "SignatureDoesNotMatch");
    bytes = t->signed_bytes({.path = "/bkt/k"});
    bytes.insert(bytes.find("\r\n") + 2, "x-amz-meta-a: unsigned\r\n");
    EXPECT_EQ(error_code(co_await t->send_raw(bytes)), "AccessDenied");
  });
}

TEST(Traces, AreTheClientsOrTheRequestsId) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "x");
    std::string bytes = t->signed_bytes({.method = "HEAD", .path = "/bkt"});
    const auto plain = co_await t->send_raw(bytes);
    EXPECT_EQ(plain.status, 200);
    std::string id = plain.header("x-amz-request-id");
    std::ranges::transform(id, id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    EXPECT_EQ(t->store.last_trace.id.to_string(), std::string(16, '0') + id);
    bytes.insert(bytes.find("\r\n") + 2, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n");
    EXPECT_EQ((co_await t->send_raw(bytes)).status, 200);
    EXPECT_EQ(t->store.last_trace.id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(t->store.last_trace.span[0], 0xb7);
  });
}

// Whatever went wrong, and however early: an answer can be named to whoever looks for its cause.
TEST(Answers, AllHaveAnIdAndADate) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "x");
    const struct {
      std::string bytes;
      int status;
      const char* code;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400, "InvalidRequest"},
        {"GET / HTTP/1.1\nHost: h\n\n", 400, "InvalidRequest"},
        {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", 414, "InvalidURI"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n", 431,
         "RequestHeaderSectionTooLarge"},
        {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "InvalidRequest"},
        {"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "NotImplemented"},
        {"GET / HTTP/1.1\r\nHost: h\r\nExpect: more\r\n\r\n", 417, "InvalidRequest"},
        {"GET /bkt/k HTTP/1.1\r\nHost: h\r\n\r\n", 403, "AccessDenied"},
        {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 403, "AccessDenied"},
        {"BREW /bkt/k HTTP/1.1\r\nHost: h\r\n\r\n", 403, "AccessDenied"},
        {t->signed_bytes({.method = "BREW", .path = "/bkt/k"}), 405, "MethodNotAllowed"},
        {t->signed_bytes({.path = "/bkt/none"}), 404, "NoSuchKey"},
        {t->signed_bytes({.path = "//bkt/k"}), 400, "InvalidURI"},
        {t->signed_bytes({.path = "/bkt/k"}), 200, ""},
        {t->signed_bytes({.method = "DELETE", .path = "/bkt/k"}), 204, ""},
    };
    for (const auto& c : cases) {
      const auto r = co_await t->send_raw(c.bytes);
      EXPECT_EQ(r.status, c.status) << c.bytes.substr(0, 40);
      EXPECT_EQ(error_code(r), c.code) << r.body;
      EXPECT_EQ(r.header("x-amz-request-id").size(), 16u) << c.bytes.substr(0, 40);
      EXPECT_NE(r.header("date"), "");
      EXPECT_EQ(r.header("server"), "Cairn");
      if (*c.code != '\0') EXPECT_EQ(xml_text(r.body, "RequestId"), r.header("x-amz-request-id"));
    }
  });
  EXPECT_EQ(rig.http.registry.counter("s3_requests_refused_total", "").value(), 12u);
}

TEST(VirtualHosts, NameBucketsInAnyCase) {
  GatewayRig rig({.domains = {"s3.example.com"}});
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_object(t, "k", "x");
    for (const char* host : {"bkt.s3.example.com", "BKT.S3.Example.com:80"}) {
      EXPECT_EQ((co_await t->call({.path = "/k", .host = host})).body, "x") << host;
    }
    EXPECT_EQ((co_await t->call({.path = "/bkt/k", .host = "s3.example.com"})).body, "x");
  });
}

TEST(ListBuckets, TakesAPrefixAndPages) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    for (const std::string name : {"aaa", "bb-1", "bb-2", "ccc"}) {
      (void)co_await t->call({.method = "PUT", .path = "/" + name});
    }
    auto r = co_await t->call({.path = "/", .query = "max-buckets=1&prefix=bb"});
    EXPECT_EQ(xml_texts(r.body, "Name"), std::vector<std::string>{"bb-1"});
    const std::string token = xml_text(r.body, "ContinuationToken");
    r = co_await t->call({.path = "/", .query = "continuation-token=" + token + "&max-buckets=1&prefix=bb"});
    EXPECT_EQ(xml_texts(r.body, "Name"), std::vector<std::string>{"bb-2"});
    EXPECT_EQ(xml_text(r.body, "ContinuationToken"), "");
    EXPECT_EQ(error_code(co_await t->call({.path = "/", .query = "max-buckets=x"})), "InvalidArgument");
  });
}

}  // namespace
}  // namespace cairn::s3
