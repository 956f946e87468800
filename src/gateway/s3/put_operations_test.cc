// Uploads as clients send them: PAINS P18, P19, P21, P26, P31.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/hex.h"
#include "gateway/s3/testing/gateway_rig.h"

namespace cairn::s3 {
namespace {

using namespace testing;

constexpr std::string_view kHelloMd5 = "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"";
constexpr std::string_view kUnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

Task<void> make_bucket(GatewayRig* rig) {
  EXPECT_EQ((co_await rig->call({.method = "PUT", .path = "/bkt"})).status, 200);
}

TEST(PutObject, StoresAndReturns) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    auto r =
        co_await t->put("/bkt/a", "hello world",
                        {{"content-type", "text/plain"}, {"x-amz-meta-color", "blue"}, {"cache-control", "no-cache"}});
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(r.header("etag"), kHelloMd5);
    EXPECT_EQ(r.header("x-amz-request-id").size(), 16u);
    r = co_await t->get("/bkt/a");
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.body, "hello world");
    EXPECT_EQ(r.header("etag"), kHelloMd5);
    EXPECT_EQ(r.header("content-type"), "text/plain");
    EXPECT_EQ(r.header("x-amz-meta-color"), "blue");
    EXPECT_EQ(r.header("cache-control"), "no-cache");
    EXPECT_EQ(r.header("accept-ranges"), "bytes");
    EXPECT_EQ(r.header("last-modified"), "Mon, 30 Nov 2026 08:00:00 GMT");
    r = co_await t->call({.method = "HEAD", .path = "/bkt/a"});
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("content-length"), "11");
  });
  EXPECT_EQ(rig.store.writers_open, 0u);
}

TEST(PutObject, AlignedPayloadIsNotCopied) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    const std::string mib(size_t{1} << 20, 'x');
    EXPECT_EQ((co_await t->put("/bkt/a", mib)).status, 200);
    EXPECT_TRUE((co_await t->get("/bkt/a")).body == mib);
    EXPECT_EQ(t->payload_copied(), 0u);
  });
}

Task<void> put_one(GatewayRig* rig, std::string path, const std::string* body, int* done) {
  const auto r =
      co_await rig->call({.method = "PUT", .path = std::move(path), .body = *body, .payload_hash = "UNSIGNED-PAYLOAD"});
  EXPECT_EQ(r.status, 200) << r.body;
  ++*done;
}

// P06: many uploads at a time, memory for the first blocks of each but for the next ones of none.
TEST(PutObject, UploadsDoNotWaitForEachOthersMemory) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    constexpr int kUploads = 40;
    co_await make_bucket(t);
    t->store.faults.forget = true;
    mem::Pool& pool = *t->http.pool;
    std::vector<mem::Buf> hoard;
    while (auto buf = pool.try_alloc(mem::kMaxBlock)) hoard.push_back(*std::move(buf));
    const std::string body(3 << 19, 'x');
    int done = 0;
    Scope scope(*t->http.reactor);
    for (int i = 0; i < kUploads; ++i) scope.spawn(&put_one, t, "/bkt/" + std::to_string(i), &body, &done);
    while (t->store.writers_open < kUploads || !pool.has_waiters()) co_await t->http.reactor->yield();
    hoard.resize(hoard.size() - 4);
    for (int i = 0; i < 20'000 && done < kUploads; ++i) (void)co_await t->http.reactor->sleep(milliseconds(1));
    EXPECT_EQ(done, kUploads);
    hoard.clear();  // those that wait for ever go on
    co_await scope.join();
  });
}

// P19: one run for every offset at which the network may split the bytes.
TEST(PutObject, DecodesAwsChunkedSplitAnywhere) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    const struct {
      std::string hash;
      std::string body;
    } cases[] = {
        {std::string(kUnsignedTrailer), "b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n"},
        {std::string(kUnsignedTrailer), "5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n"},
        {"UNSIGNED-PAYLOAD", "B\r\nhello world\r\n0\r\nX-Amz-Checksum-Crc32: DUoRhQ==\r\n\r\n"},
    };
    for (const auto& c : cases) {
      const std::string bytes = t->signed_bytes({.method = "PUT",
                                                 .path = "/bkt/k",
                                                 .headers = {{"content-encoding", "aws-chunked"},
                                                             {"x-amz-decoded-content-length", "11"},
                                                             {"x-amz-trailer", "x-amz-checksum-crc32"}},
                                                 .body = c.body,
                                                 .payload_hash = c.hash});
      const size_t head = bytes.find("\r\n\r\n") + 4;
      for (size_t split = head - 2; split < bytes.size(); ++split) {
        const auto r = co_await t->send_raw(bytes, split);
        EXPECT_EQ(r.status, 200) << split << r.body;
        EXPECT_EQ(r.header("etag"), kHelloMd5);
        EXPECT_EQ(r.header("x-amz-checksum-crc32"), "DUoRhQ==");
      }
      const auto r = co_await t->get("/bkt/k", {{"x-amz-checksum-mode", "ENABLED"}});
      EXPECT_EQ(r.body, "hello world");
      EXPECT_EQ(r.header("etag"), kHelloMd5);
      EXPECT_EQ(r.header("content-length"), "11");
      EXPECT_EQ(r.header("content-encoding"), "");
      EXPECT_EQ(r.header("x-amz-checksum-crc32"), "DUoRhQ==");
      EXPECT_EQ(r.header("x-amz-checksum-type"), "FULL_OBJECT");
    }
  });
}

// P18: no request needs Content-Length when the decoded length is given.
TEST(PutObject, TakesAwsChunkedWithinHttpChunks) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    S3Request request{.method = "PUT",
                      .path = "/bkt/k",
                      .headers = {{"content-encoding", "gzip,aws-chunked"},
                                  {"x-amz-decoded-content-length", "11"},
                                  {"x-amz-trailer", "x-amz-checksum-crc32"}},
                      .body = "b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n",
                      .payload_hash = std::string(kUnsignedTrailer),
                      .chunked = true};
    EXPECT_EQ((co_await t->call(request)).status, 200);
    auto r = co_await t->get("/bkt/k");
    EXPECT_EQ(r.body, "hello world");
    EXPECT_EQ(r.header("content-encoding"), "gzip");
    // The same without a content coding.
    r = co_await t->call({.method = "PUT",
                          .path = "/bkt/k",
                          .headers = {{"x-amz-decoded-content-length", "5"}},
                          .body = "plain",
                          .payload_hash = "UNSIGNED-PAYLOAD",
                          .chunked = true});
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ((co_await t->get("/bkt/k")).body, "plain");
    for (const char* wrong : {"4", "6"}) {
      r = co_await t->call({.method = "PUT",
                            .path = "/bkt/k",
                            .headers = {{"x-amz-decoded-content-length", wrong}},
                            .body = "plain",
                            .payload_hash = "UNSIGNED-PAYLOAD",
                            .chunked = true});
      EXPECT_EQ(error_code(r), "IncompleteBody") << wrong;
    }
    // Without the decoded length nothing says how long it is.
    r = co_await t->call(
        {.method = "PUT", .path = "/bkt/k", .body = "x", .payload_hash = "UNSIGNED-PAYLOAD", .chunked = true});
    EXPECT_EQ(r.status, 411);
    EXPECT_EQ(error_code(r), "MissingContentLength");
  });
}

TEST(PutObject, TakesChunksOfAnySizeWithoutCopying) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    std::string payload;
    for (int i = 0; i < 300'000; ++i) payload += static_cast<char>(i * 31 + i / 253);
    for (const size_t size : {size_t{997}, size_t{65536}, size_t{1} << 20}) {
      std::string body;
      for (size_t at = 0; at < payload.size(); at += size) {
        const std::string chunk = payload.substr(at, size);
        body += fmt::format("{:x}\r\n", chunk.size()) + chunk + "\r\n";
      }
      body += "0\r\nx-amz-checksum-crc64nvme:" + checksum_base64(ChecksumKind::crc64nvme, payload) + "\r\n\r\n";
      auto r = co_await t->call({.method = "PUT",
                                 .path = "/bkt/k",
                                 .headers = {{"x-amz-decoded-content-length", std::to_string(payload.size())},
                                             {"x-amz-trailer", "x-amz-checksum-crc64nvme"}},
                                 .body = body,
                                 .payload_hash = std::string(kUnsignedTrailer)});
      EXPECT_EQ(r.status, 200) << r.body;
      EXPECT_TRUE((co_await t->get("/bkt/k")).body == payload);
    }
    EXPECT_EQ(t->payload_copied(), 0u);
  });
}

std::string signed_upload(GatewayRig* t, const std::vector<std::string>& chunks, size_t total,
                          const std::vector<std::pair<std::string, std::string>>* trailers, bool sign_trailer,
                          const std::string& path = "/bkt/k") {
  S3Request request{
      .method = "PUT",
      .path = path,
      .headers = {{"content-encoding", "aws-chunked"}, {"x-amz-decoded-content-length", std::to_string(total)}},
      .payload_hash =
          trailers == nullptr ? "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" : "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"};
  if (trailers != nullptr) request.headers.emplace_back("x-amz-trailer", trailers->front().first);
  // The seed signature doesn't cover the body, so it can be had before the body exists.
  Authorization authorization;
  (void)t->signed_bytes(request, &authorization);
  request.body = signed_chunks(t->key_of(authorization), authorization, chunks, trailers, sign_trailer);
  return t->signed_bytes(request);
}

// P21 a, b, c and signed chunks.
TEST(PutObject, ChecksChunkAndTrailerSignatures) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    const std::string good = signed_upload(t, {"hello", " world"}, 11, nullptr, false);
    auto r = co_await t->send_raw(good);
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(r.header("etag"), kHelloMd5);
    for (size_t split = good.size() - 60; split < good.size(); ++split) {
      EXPECT_EQ((co_await t->send_raw(good, split)).status, 200);
    }
    std::string flipped = good;
    flipped[good.find("hello\r\n")] = 'j';
    r = co_await t->send_raw(flipped);
    EXPECT_EQ(r.status, 403);
    EXPECT_EQ(error_code(r), "SignatureDoesNotMatch");

    const std::vector<std::pair<std::string, std::string>> trailers = {{"x-amz-checksum-crc32", "DUoRhQ=="}};
    r = co_await t->send_raw(signed_upload(t, {"hello world"}, 11, &trailers, true));
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(r.header("x-amz-checksum-crc32"), "DUoRhQ==");
    r = co_await t->send_raw(signed_upload(t, {"hello world"}, 11, &trailers, false));
    EXPECT_EQ(r.status, 403) << r.body;
    EXPECT_EQ((co_await t->get("/bkt/k")).body, "hello world");
  });
}

// P31: an empty signed body has a length on the wire.
TEST(PutObject, StoresDirectoryMarkersOfHadoop) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    auto r = co_await t->send_raw(signed_upload(t, {}, 0, nullptr, false, "/bkt/dir/"));
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ((co_await t->call({.method = "HEAD", .path = "/bkt/dir"})).status, 404);
    r = co_await t->call({.method = "HEAD", .path = "/bkt/dir/"});
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("content-length"), "0");
    EXPECT_EQ((co_await t->put("/bkt/dir", "file")).status, 200);
    EXPECT_EQ((co_await t->put("/bkt/dir/x", "child")).status, 200);
    r = co_await t->call({.path = "/bkt", .query = "delimiter=%2F&list-type=2&max-keys=1&prefix=dir%2F"});
    EXPECT_EQ(xml_texts(r.body, "Key"), std::vector<std::string>{"dir/"});
    EXPECT_EQ(xml_text(r.body, "IsTruncated"), "true");
    r = co_await t->call({.path = "/bkt", .query = "delimiter=%2F&list-type=2&max-keys=2&prefix=dir%2F"});
    EXPECT_EQ(xml_texts(r.body, "Key"), (std::vector<std::string>{"dir/", "dir/x"}));
    EXPECT_EQ((co_await t->get("/bkt/dir")).body, "file");
    EXPECT_EQ((co_await t->get("/bkt/dir/x")).body, "child");
  });
}

struct BadUpload {
  const char* what;
  S3Request::Fields headers;
  std::string body;
  std::string hash;
  int status;
  const char* code;
};

// P21 c to g and their kin. Each leaves the object that was there before.
TEST(PutObject, RefusesWhatDoesNotProveItselfWhole) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    EXPECT_EQ((co_await t->put("/bkt/k", "before")).status, 200);
    const S3Request::Fields trailer = {{"x-amz-decoded-content-length", "11"},
                                       {"x-amz-trailer", "x-amz-checksum-crc32"}};
    const std::string u(kUnsignedTrailer);
    const std::string w = "hello world";
    const std::vector<BadUpload> cases = {
        {"flipped bit", trailer, "b\r\nhello wOrld\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n", u, 400, "BadDigest"},
        {"announced trailer missing", trailer, "b\r\nhello world\r\n0\r\n\r\n", u, 400, "MalformedTrailerError"},
        {"undeclared trailer", trailer, "b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\nx-other:1\r\n\r\n",
         u, 400, "MalformedTrailerError"},
        {"trailer in hex", trailer, "b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:0d4a1185\r\n\r\n", u, 400,
         "InvalidRequest"},
        {"longer than announced", trailer, "c\r\nhello world!\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n", u, 400,
         "IncompleteBody"},
        {"shorter than announced", trailer, "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n", u, 400,
         "IncompleteBody"},
        {"bad framing", trailer, "zz\r\nhello world\r\n", u, 400, "InvalidRequest"},
        {"bytes behind the end", trailer, "b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\nmore", u, 400,
         "InvalidRequest"},
        {"ends in a chunk", trailer, "b\r\nhello", u, 400, "IncompleteBody"},
        {"unknown trailer",
         {{"x-amz-decoded-content-length", "11"}, {"x-amz-trailer", "x-other"}},
         w,
         u,
         400,
         "InvalidRequest"},
        {"no decoded length", {}, "b\r\nhello world\r\n0\r\n\r\n", u, 411, "MissingContentLength"},
        {"sha256 in hex", {{"x-amz-checksum-sha256", std::string(64, 'a')}}, w, "", 400, "InvalidRequest"},
        {"unpadded base64", {{"x-amz-checksum-crc32", "DUoRhQ"}}, w, "", 400, "InvalidRequest"},
        {"two checksums",
         {{"x-amz-checksum-crc32", "DUoRhQ=="}, {"x-amz-checksum-crc32c", "yZRlqg=="}},
         w,
         "",
         400,
         "InvalidRequest"},
        {"wrong crc32c", {{"x-amz-checksum-crc32c", "yZRlqw=="}}, w, "", 400, "BadDigest"},
        {"unknown checksum", {{"x-amz-checksum-md4", "abcd"}}, w, "", 400, "InvalidRequest"},
        {"wrong md5", {{"content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="}}, w, "", 400, "BadDigest"},
        {"malformed md5", {{"content-md5", "nonsense"}}, w, "", 400, "InvalidDigest"},
        {"wrong payload hash", {}, w, std::string(64, 'a'), 400, "XAmzContentSHA256Mismatch"},
        {"unknown streaming", {}, w, "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", 400, "InvalidArgument"},
        {"metadata too large", {{"x-amz-meta-a", std::string(2048, 'a')}}, w, "", 400, "MetadataTooLarge"},
        {"encryption", {{"x-amz-server-side-encryption", "AES256"}}, w, "", 501, "NotImplemented"},
        {"public", {{"x-amz-acl", "public-read"}}, w, "", 501, "NotImplemented"},
        {"tags", {{"x-amz-tagging", "a=b"}}, w, "", 501, "NotImplemented"},
        {"object lock", {{"x-amz-object-lock-mode", "GOVERNANCE"}}, w, "", 501, "NotImplemented"},
        {"if-none-match", {{"if-none-match", "*"}}, w, "", 412, "PreconditionFailed"},
        {"if-match", {{"if-match", "\"0123\""}}, w, "", 412, "PreconditionFailed"},
    };
    for (const auto& c : cases) {
      auto r = co_await t->call(
          {.method = "PUT", .path = "/bkt/k", .headers = c.headers, .body = c.body, .payload_hash = c.hash});
      EXPECT_EQ(r.status, c.status) << c.what << ": " << r.body;
      EXPECT_EQ(error_code(r), c.code) << c.what << ": " << r.body;
      EXPECT_EQ((co_await t->get("/bkt/k")).body, "before") << c.what;
    }
  });
  EXPECT_EQ(rig.store.writers_open, 0u);
}

TEST(PutObject, ChecksEveryKindOfChecksum) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    const std::string text = "hello world";
    for (const ChecksumInfo& info : all_checksums()) {
      const std::string header(info.header);
      const std::string value = checksum_base64(info.kind, text);
      auto r = co_await t->put("/bkt/k", text, {{header, value}});
      EXPECT_EQ(r.status, 200) << header << r.body;
      EXPECT_EQ(r.header(header), value);
      r = co_await t->call({.method = "HEAD", .path = "/bkt/k", .headers = {{"x-amz-checksum-mode", "ENABLED"}}});
      EXPECT_EQ(r.header(header), value);
      EXPECT_EQ(r.header("x-amz-checksum-type"), "FULL_OBJECT");
      // Beside a part of the bytes it would be held against those.
      r = co_await t->get("/bkt/k", {{"range", "bytes=0-3"}, {"x-amz-checksum-mode", "ENABLED"}});
      EXPECT_EQ(r.status, 206);
      EXPECT_EQ(r.header(header), "");
      r = co_await t->get("/bkt/k");
      EXPECT_EQ(r.header(header), "");
    }
    EXPECT_EQ((co_await t->put("/bkt/k", text, {{"content-md5", md5_base64(text)}})).status, 200);
  });
}

// P26, as far as one gateway goes: the store decides, not the early look.
struct Racer {
  GatewayRig* rig;
  int index;
  int* wins;
  std::string* winner;
};
Task<void> race(Racer racer) {
  const std::string body = "body " + std::to_string(racer.index);
  const auto r = co_await racer.rig->put("/bkt/race", body, {{"if-none-match", "*"}});
  EXPECT_TRUE(r.status == 200 || r.status == 412 || r.status == 409) << r.status;
  if (r.status != 200) co_return;
  ++*racer.wins;
  *racer.winner = body;
}

TEST(PutObject, ExactlyOneOfManyConditionalWritesWins) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    for (int round = 0; round < 20; ++round) {
      int wins = 0;
      std::string winner;
      Scope scope(*t->http.reactor);
      for (int i = 0; i < 32; ++i) scope.spawn(&race, Racer{t, i, &wins, &winner});
      co_await scope.join();
      EXPECT_EQ(wins, 1);
      EXPECT_EQ((co_await t->get("/bkt/race")).body, winner);
      EXPECT_EQ((co_await t->call({.method = "DELETE", .path = "/bkt/race"})).status, 204);
    }
    auto r = co_await t->put("/bkt/none", "x", {{"if-match", "\"abc\""}});
    EXPECT_EQ(r.status, 404);
    EXPECT_EQ(error_code(r), "NoSuchKey");
    EXPECT_EQ((co_await t->put("/bkt/none", "x", {{"if-none-match", "*"}})).status, 200);
    EXPECT_EQ((co_await t->put("/bkt/none", "y", {{"if-match", "\"9dd4e461268c8034f5c8564e155c67a6\""}})).status, 200);
  });
}

TEST(PutObject, TakesNoStorageClassThatItDoesNotHave) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    co_await make_bucket(t);
    for (const char* known : {"STANDARD", "REDUCED_REDUNDANCY"}) {
      EXPECT_EQ((co_await t->put("/bkt/k", "x", {{"x-amz-storage-class", known}})).status, 200);
    }
    for (const char* other : {"GLACIER", "STANDARD_IA", "standard"}) {
      EXPECT_EQ(error_code(co_await t->put("/bkt/k", "y", {{"x-amz-storage-class", other}})), "InvalidStorageClass");
    }
    EXPECT_EQ((co_await t->get("/bkt/k")).body, "x");
  });
}

TEST(PutObject, TellsWhatTheStoreCannotDo) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    auto r = co_await t->put("/missing/k", "x");
    EXPECT_EQ(r.status, 404);
    EXPECT_EQ(error_code(r), "NoSuchBucket");
    co_await make_bucket(t);
    const struct {
      Errc error;
      int status;
      const char* code;
    } cases[] = {
        {Errc::no_space, 507, "InsufficientStorage"}, {Errc::busy, 503, "SlowDown"},
        {Errc::corrupt, 500, "InternalError"},        {Errc::io_error, 500, "InternalError"},
        {Errc::timed_out, 503, "ServiceUnavailable"}, {Errc::unavailable, 503, "ServiceUnavailable"},
    };
    for (const auto& c : cases) {
      t->store.faults.write = Error(c.error);
      r = co_await t->put("/bkt/k", "x");
      EXPECT_EQ(r.status, c.status);
      EXPECT_EQ(error_code(r), c.code);
      EXPECT_EQ(r.header("retry-after"), c.status == 503 ? "1" : "");
      t->store.faults.write.reset();
      t->store.faults.commit = Error(c.error);
      EXPECT_EQ((co_await t->put("/bkt/k", "x")).status, c.status);
      t->store.faults.commit.reset();
    }
    EXPECT_EQ((co_await t->get("/bkt/k")).status, 404);
  });
  EXPECT_EQ(rig.store.writers_open, 0u);
}

}  // namespace
}  // namespace cairn::s3
