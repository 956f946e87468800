// Multipart uploads and copies: PAINS P27, P28 (copy ranges), P32.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "gateway/s3/digest.h"
#include "gateway/s3/multipart_operations.h"
#include "gateway/s3/testing/gateway_rig.h"

namespace cairn::s3 {
namespace {

using namespace testing;
using http::testing::TestResponse;

constexpr size_t kMiB = size_t{1} << 20;

std::string pattern(size_t size, int seed) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 + i / 4093 + static_cast<size_t>(seed));
  return text;
}

std::string md5_hex(const std::string& text) {
  Digest digest(DigestKind::md5);
  digest.update(std::as_bytes(std::span(text)));
  const std::string raw = digest.finish();
  return to_hex(std::as_bytes(std::span(raw)));
}

Task<std::string> create(GatewayRig* t, S3Request::Fields headers = {}) {
  (void)co_await t->call({.method = "PUT", .path = "/bkt"});
  const auto r =
      co_await t->call({.method = "POST", .path = "/bkt/big", .query = "uploads", .headers = std::move(headers)});
  EXPECT_EQ(r.status, 200) << r.body;
  co_return xml_text(r.body, "UploadId");
}

Task<TestResponse> put_part(GatewayRig* t, std::string id, int number, std::string body,
                            S3Request::Fields headers = {}) {
  co_return co_await t->call({.method = "PUT",
                              .path = "/bkt/big",
                              .query = fmt::format("partNumber={}&uploadId={}", number, id),
                              .headers = std::move(headers),
                              .body = std::move(body)});
}

std::string complete_body(const std::vector<std::pair<int, std::string>>& parts) {
  std::string body = "<CompleteMultipartUpload>";
  for (const auto& [number, etag] : parts)
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, etag);
  return body + "</CompleteMultipartUpload>";
}

Task<TestResponse> complete(GatewayRig* t, std::string id, std::string body) {
  co_return co_await t->call(
      {.method = "POST", .path = "/bkt/big", .query = "uploadId=" + id, .body = std::move(body)});
}

// P32, P27: the ETag that sync tools compute, and the repeat of a completion whose answer was lost.
TEST(Multipart, MakesOneObjectOfItsParts) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string id = co_await create(t, {{"content-type", "video/mp4"}, {"x-amz-meta-a", "b"}});
    const std::vector<std::string> bodies = {pattern(5 * kMiB, 1), pattern(5 * kMiB, 2), pattern(2 * kMiB + 1, 3)};
    std::vector<std::pair<int, std::string>> parts;
    std::vector<std::string> etags;
    for (size_t i = 0; i < bodies.size(); ++i) {
      const auto r = co_await put_part(t, id, static_cast<int>(i) + 1, bodies[i]);
      EXPECT_EQ(r.status, 200) << r.body;
      EXPECT_EQ(r.header("etag"), "\"" + md5_hex(bodies[i]) + "\"");
      parts.emplace_back(static_cast<int>(i) + 1, r.header("etag"));
      etags.push_back(md5_hex(bodies[i]));
    }
    auto r = co_await t->call({.path = "/bkt/big", .query = "max-parts=2&uploadId=" + id});
    EXPECT_EQ(xml_texts(r.body, "PartNumber"), (std::vector<std::string>{"1", "2"}));
    EXPECT_EQ(xml_text(r.body, "IsTruncated"), "true");
    r = co_await t->call({.path = "/bkt", .query = "uploads"});
    EXPECT_EQ(xml_texts(r.body, "UploadId"), std::vector<std::string>{id});

    const std::string expected = "\"" + multipart_etag(etags).value() + "\"";
    r = co_await complete(t, id, complete_body(parts));
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(xml_text(r.body, "ETag"), "&quot;" + multipart_etag(etags).value() + "&quot;") << r.body;
    EXPECT_TRUE(expected.ends_with("-3\""));
    const auto again = co_await complete(t, id, complete_body(parts));
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(xml_text(again.body, "ETag"), xml_text(r.body, "ETag"));
    EXPECT_EQ(t->store.completions, 1u);

    r = co_await t->get("/bkt/big");
    EXPECT_TRUE(r.body == bodies[0] + bodies[1] + bodies[2]);
    EXPECT_EQ(r.header("etag"), expected);
    EXPECT_EQ(r.header("content-type"), "video/mp4");
    EXPECT_EQ(r.header("x-amz-meta-a"), "b");
    r = co_await t->call({.path = "/bkt/big", .query = "partNumber=2"});
    EXPECT_EQ(r.status, 206);
    EXPECT_TRUE(r.body == bodies[1]);
    EXPECT_EQ(r.header("x-amz-mp-parts-count"), "3");
    EXPECT_EQ(r.header("content-range"), fmt::format("bytes {}-{}/{}", 5 * kMiB, 10 * kMiB - 1, 12 * kMiB + 1));

    // A copy has one piece, so its ETag is the content's MD5.
    r = co_await t->call({.method = "PUT", .path = "/bkt/copy", .headers = {{"x-amz-copy-source", "/bkt/big"}}});
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(xml_text(r.body, "ETag"), "&quot;" + md5_hex(bodies[0] + bodies[1] + bodies[2]) + "&quot;");
    r = co_await t->get("/bkt/copy");
    EXPECT_TRUE(r.body == bodies[0] + bodies[1] + bodies[2]);
    EXPECT_EQ(r.header("x-amz-meta-a"), "b");
  });
  EXPECT_EQ(rig.store.writers_open, 0u);
}

// P27
TEST(Multipart, RefusesWrongCompletions) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string id = co_await create(t);
    const std::string small = pattern(1000, 1);
    const std::string e1 = (co_await put_part(t, id, 1, small)).header("etag");
    const std::string e2 = (co_await put_part(t, id, 2, small)).header("etag");
    const struct {
      std::string id;
      std::string body;
      int status;
      const char* code;
    } cases[] = {
        {"unknown", complete_body({{1, e1}}), 404, "NoSuchUpload"},
        {id, complete_body({{2, e2}, {1, e1}}), 400, "InvalidPartOrder"},
        {id, complete_body({{1, e1}, {1, e1}}), 400, "InvalidPartOrder"},
        {id, complete_body({{1, e1}, {2, e2}}), 400, "EntityTooSmall"},
        {id, complete_body({{1, "\"00000000000000000000000000000000\""}}), 400, "InvalidPart"},
        {id, complete_body({{3, e1}}), 400, "InvalidPart"},
        {id, complete_body({}), 400, "MalformedXML"},
        {id, "", 400, "MalformedXML"},
    };
    for (const auto& c : cases) {
      const auto r = co_await complete(t, c.id, c.body);
      EXPECT_EQ(r.status, c.status) << c.code << r.body;
      EXPECT_EQ(error_code(r), c.code) << r.body;
    }
    // A part that is sent again replaces the first one; the old ETag is of no use any more.
    const std::string e1b = (co_await put_part(t, id, 1, pattern(1000, 9))).header("etag");
    EXPECT_EQ(error_code(co_await complete(t, id, complete_body({{1, e1}}))), "InvalidPart");
    EXPECT_EQ((co_await complete(t, id, complete_body({{1, e1b}}))).status, 200);
    EXPECT_TRUE((co_await t->get("/bkt/big")).body == pattern(1000, 9));
    for (const int number : {0, 10001, -1}) {
      EXPECT_EQ(error_code(co_await put_part(t, id, number, "x")), "InvalidArgument");
    }
    EXPECT_EQ(error_code(co_await put_part(t, id, 1, "x")), "NoSuchUpload");
    const std::string other = co_await create(t);
    EXPECT_EQ((co_await t->call({.method = "DELETE", .path = "/bkt/big", .query = "uploadId=" + other})).status, 204);
    EXPECT_EQ(error_code(co_await t->call({.method = "DELETE", .path = "/bkt/big", .query = "uploadId=" + other})),
              "NoSuchUpload");
  });
}

// P27: a completion that takes long keeps the connection alive, and may still fail.
TEST(Multipart, LongCompletionsSendBlanksAndTheOutcomeLater) {
  GatewayRig rig({.patience = milliseconds(20)});
  rig.tell([](GatewayRig* t) -> Task<void> {
    t->store.faults.completion_takes = milliseconds(150);
    std::string id = co_await create(t);
    std::string etag = (co_await put_part(t, id, 1, "x")).header("etag");
    auto r = co_await complete(t, id, complete_body({{1, etag}}));
    EXPECT_EQ(r.status, 200);
    EXPECT_TRUE(r.complete);
    EXPECT_EQ(r.header("transfer-encoding"), "chunked");
    EXPECT_TRUE(r.body.starts_with("<?xml"));
    EXPECT_NE(r.body.find("CompleteMultipartUploadResult"), std::string::npos);
    EXPECT_EQ(r.body.find("<?xml", 1), std::string::npos);
    EXPECT_NE(r.body.find("\n   "), std::string::npos);  // several blanks

    id = co_await create(t);
    etag = (co_await put_part(t, id, 1, "x")).header("etag");
    t->store.faults.commit = Error(Errc::no_space);
    r = co_await complete(t, id, complete_body({{1, etag}}));
    EXPECT_EQ(r.status, 200);
    EXPECT_TRUE(r.complete);
    EXPECT_EQ(error_code(r), "InsufficientStorage");
  });
}

// P27: two completions at once are a completion and its repeat, wherever they meet.
TEST(Multipart, CompletionsAtOnceGiveTheSameAnswer) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string id = co_await create(t);
    const std::string etag = md5_hex("x");
    EXPECT_EQ((co_await put_part(t, id, 1, "x")).status, 200);
    object::ObjectStore::Completion& beside = t->store.faults.completed_beside.emplace();
    beside.parts.push_back({.number = 1, .etag = etag});
    beside.etag = multipart_etag({etag}).value();
    const auto r = co_await complete(t, id, complete_body({{1, etag}}));
    EXPECT_EQ(r.status, 200) << r.body;
    EXPECT_EQ(t->store.completions, 1u);
  });
}

TEST(Multipart, CombinesChecksums) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string first = pattern(5 * kMiB, 1);
    const std::string second = pattern(1234, 2);
    for (const auto& [kind, type] : {std::pair{ChecksumKind::crc32, "COMPOSITE"},
                                     {ChecksumKind::crc32c, "FULL_OBJECT"},
                                     {ChecksumKind::crc64nvme, "FULL_OBJECT"},
                                     {ChecksumKind::sha256, "COMPOSITE"}}) {
      const ChecksumInfo& info = checksum_info(kind);
      const std::string id =
          co_await create(t, {{"x-amz-checksum-algorithm", std::string(info.name)}, {"x-amz-checksum-type", type}});
      // One part with its checksum, one without: the server computes what it needs.
      auto r = co_await put_part(t, id, 1, first, {{std::string(info.header), checksum_base64(kind, first)}});
      EXPECT_EQ(r.status, 200) << r.body;
      const std::string e1 = r.header("etag");
      r = co_await put_part(t, id, 2, second);
      EXPECT_EQ(r.header(std::string(info.header)), checksum_base64(kind, second));
      const std::string e2 = r.header("etag");
      const auto wrong = kind == ChecksumKind::crc32 ? ChecksumKind::sha1 : ChecksumKind::crc32;
      r = co_await put_part(t, id, 2, second,
                            {{std::string(checksum_info(wrong).header), checksum_base64(wrong, second)}});
      EXPECT_EQ(error_code(r), "InvalidRequest");
      r = co_await complete(t, id, complete_body({{1, e1}, {2, e2}}));
      EXPECT_EQ(r.status, 200) << r.body;
      const PartChecksum parts[] = {{checksum_base64(kind, first), first.size()},
                                    {checksum_base64(kind, second), second.size()}};
      const bool full = std::string_view(type) == "FULL_OBJECT";
      const std::string expected =
          full ? checksum_base64(kind, first + second) : combine_composite(kind, parts).value();
      EXPECT_EQ(xml_text(r.body, "Checksum" + std::string(info.name)), expected);
      r = co_await t->call({.method = "HEAD", .path = "/bkt/big", .headers = {{"x-amz-checksum-mode", "ENABLED"}}});
      EXPECT_EQ(r.header(std::string(info.header)), expected);
      EXPECT_EQ(r.header("x-amz-checksum-type"), type);
    }
  });
}

// The checksum headers of a completion speak of the object that it makes, not of the document that asks for it.
TEST(Multipart, HoldsExpectationsAgainstTheObject) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string body = "hello world";
    const std::string crc = checksum_base64(ChecksumKind::crc32, body);
    const std::string id =
        co_await create(t, {{"x-amz-checksum-algorithm", "CRC32"}, {"x-amz-checksum-type", "FULL_OBJECT"}});
    const std::string etag = (co_await put_part(t, id, 1, body)).header("etag");
    const std::string document = complete_body({{1, etag}});
    const struct {
      S3Request::Fields headers;
      int status;
      const char* code;
    } cases[] = {
        {{{"x-amz-checksum-crc32", "AAAAAA=="}}, 400, "BadDigest"},
        {{{"x-amz-checksum-crc32", checksum_base64(ChecksumKind::crc32, document)}}, 400, "BadDigest"},
        {{{"x-amz-checksum-sha1", checksum_base64(ChecksumKind::sha1, body)}}, 400, "InvalidRequest"},
        {{{"x-amz-checksum-type", "COMPOSITE"}}, 400, "InvalidRequest"},
        {{{"x-amz-mp-object-size", "12"}}, 400, "InvalidRequest"},
        {{{"content-md5", md5_base64(body)}}, 400, "BadDigest"},
        {{{"x-amz-checksum-crc32", crc},
          {"x-amz-checksum-type", "FULL_OBJECT"},
          {"x-amz-mp-object-size", "11"},
          {"content-md5", md5_base64(document)}},
         200,
         ""},
    };
    for (const auto& c : cases) {
      const auto r = co_await t->call(
          {.method = "POST", .path = "/bkt/big", .query = "uploadId=" + id, .headers = c.headers, .body = document});
      EXPECT_EQ(r.status, c.status) << r.body;
      EXPECT_EQ(error_code(r), c.code) << r.body;
    }
  });
}

// SDKs with streaming defaults send even documents in chunks.
TEST(Multipart, CompletesFromAnAwsChunkedDocument) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string id = co_await create(t);
    const std::string etag = (co_await put_part(t, id, 1, "x")).header("etag");
    const std::string document = complete_body({{1, etag}});
    const auto call = [&](std::string body) {
      return t->call({.method = "POST",
                      .path = "/bkt/big",
                      .query = "uploadId=" + id,
                      .headers = {{"content-encoding", "aws-chunked"},
                                  {"x-amz-decoded-content-length", std::to_string(document.size())}},
                      .body = std::move(body),
                      .payload_hash = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"});
    };
    EXPECT_EQ(error_code(co_await call(fmt::format("{:x}\r\n{}", document.size(), document))), "IncompleteBody");
    EXPECT_EQ((co_await call(fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", document.size(), document))).status, 200);
    EXPECT_EQ((co_await t->get("/bkt/big")).body, "x");
    // Without any length, in HTTP's own chunks.
    const auto r = co_await t->call(
        {.method = "POST", .path = "/bkt/big", .query = "uploadId=" + id, .body = document, .chunked = true});
    EXPECT_EQ(r.status, 200) << r.body;
  });
}

TEST(Multipart, RefusesToBeginWhatCannotBeKept) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    for (const auto& [name, value] : S3Request::Fields{{"x-amz-server-side-encryption", "AES256"},
                                                       {"x-amz-acl", "public-read"},
                                                       {"x-amz-tagging", "a=b"},
                                                       {"x-amz-tagging", "COPY"},
                                                       {"x-amz-object-lock-mode", "COMPLIANCE"}}) {
      for (const char* query : {"uploads", ""}) {
        const auto r = co_await t->call(
            {.method = *query ? "POST" : "PUT", .path = "/bkt/k", .query = query, .headers = {{name, value}}});
        EXPECT_EQ(error_code(r), "NotImplemented") << name << r.body;
      }
    }
    EXPECT_EQ(
        error_code(co_await t->call({.method = "PUT", .path = "/pub", .headers = {{"x-amz-acl", "public-read"}}})),
        "NotImplemented");
    // The error keeps its headers.
    const auto r = co_await t->call(
        {.method = "POST", .path = "/none/k", .query = "uploads", .headers = {{"x-amz-checksum-algorithm", "CRC32"}}});
    EXPECT_EQ(error_code(r), "NoSuchBucket");
    EXPECT_EQ(r.header("x-amz-request-id"), xml_text(r.body, "RequestId"));
    EXPECT_EQ(r.header("x-amz-checksum-algorithm"), "");
  });
}

// P28, P32: ranges of copied parts, odd ones included; the bytes are aligned anew.
TEST(PartCopy, TakesRangesAnywhere) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    const std::string source = pattern(6 * kMiB + 77, 5);
    const std::string id = co_await create(t);
    EXPECT_EQ((co_await t->put("/bkt/src", source)).status, 200);
    t->store.faults.piece_bytes = 1'000'000;  // pieces that end anywhere
    std::vector<std::pair<int, std::string>> parts;
    std::string whole;
    const std::vector<std::pair<size_t, size_t>> ranges = {
        {1, 5 * kMiB}, {0, 5 * kMiB + 4096}, {4095, 5 * kMiB + 9000}, {6 * kMiB + 70, 6 * kMiB + 76}};
    for (const auto& [first, last] : ranges) {
      const int number = static_cast<int>(parts.size()) + 1;
      const auto r =
          co_await t->call({.method = "PUT",
                            .path = "/bkt/big",
                            .query = fmt::format("partNumber={}&uploadId={}", number, id),
                            .headers = {{"x-amz-copy-source", "bkt/src"},
                                        {"x-amz-copy-source-range", fmt::format("bytes={}-{}", first, last)}}});
      EXPECT_EQ(r.status, 200) << r.body;
      const std::string piece = source.substr(first, last - first + 1);
      EXPECT_EQ(xml_text(r.body, "ETag"), "&quot;" + md5_hex(piece) + "&quot;");
      parts.emplace_back(number, md5_hex(piece));
      whole += piece;
    }
    for (const char* range : {"bytes=5-7000000", "x", "bytes=5-", "bytes=-5", "bytes=7-5"}) {
      const auto r =
          co_await t->call({.method = "PUT",
                            .path = "/bkt/big",
                            .query = "partNumber=9&uploadId=" + id,
                            .headers = {{"x-amz-copy-source", "bkt/src"}, {"x-amz-copy-source-range", range}}});
      EXPECT_EQ(r.status, 400) << range;
      EXPECT_EQ(error_code(r), "InvalidArgument") << range;
    }
    EXPECT_EQ((co_await complete(t, id, complete_body(parts))).status, 200);
    EXPECT_TRUE((co_await t->get("/bkt/big")).body == whole);
  });
}

TEST(CopyObject, JudgesItsSourceAndKeepsItsRules) {
  GatewayRig rig;
  rig.tell([](GatewayRig* t) -> Task<void> {
    (void)co_await t->call({.method = "PUT", .path = "/bkt"});
    (void)co_await t->put("/bkt/a%20b", "hello world", {{"x-amz-meta-old", "1"}, {"content-type", "text/plain"}});
    const std::string etag = "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"";
    const struct {
      const char* target;
      S3Request::Fields headers;
      int status;
      const char* code;
    } cases[] = {
        {"/bkt/c", {{"x-amz-copy-source", "bkt/a%20b"}}, 200, ""},
        {"/bkt/c", {{"x-amz-copy-source", "/bkt/a%20b"}, {"x-amz-copy-source-if-match", etag}}, 200, ""},
        {"/bkt/c",
         {{"x-amz-copy-source", "bkt/a%20b"}, {"x-amz-copy-source-if-match", "\"x\""}},
         412,
         "PreconditionFailed"},
        {"/bkt/c",
         {{"x-amz-copy-source", "bkt/a%20b"}, {"x-amz-copy-source-if-none-match", etag}},
         412,
         "PreconditionFailed"},
        {"/bkt/c", {{"x-amz-copy-source", "bkt/none"}}, 404, "NoSuchKey"},
        {"/bkt/c", {{"x-amz-copy-source", "none/a"}}, 404, "NoSuchBucket"},
        {"/bkt/c", {{"x-amz-copy-source", "nonsense"}}, 400, "InvalidArgument"},
        {"/bkt/c", {{"x-amz-copy-source", "bkt/a%20b"}, {"x-amz-metadata-directive", "GUESS"}}, 400, "InvalidArgument"},
        {"/bkt/a%20b", {{"x-amz-copy-source", "bkt/a%20b"}}, 400, "InvalidRequest"},
        {"/bkt/a%20b",
         {{"x-amz-copy-source", "bkt/a%20b"}, {"x-amz-metadata-directive", "REPLACE"}, {"x-amz-meta-new", "2"}},
         200,
         ""},
        {"/bkt/c",
         {{"x-amz-copy-source", "bkt/c"}, {"x-amz-storage-class", "STANDARD"}, {"x-amz-tagging-directive", "REPLACE"}},
         200,
         ""},
        {"/bkt/c", {{"x-amz-copy-source", "bkt/c"}, {"x-amz-checksum-algorithm", "SHA256"}}, 200, ""},
    };
    for (const auto& c : cases) {
      const auto r = co_await t->call({.method = "PUT", .path = c.target, .headers = c.headers});
      EXPECT_EQ(r.status, c.status) << r.body;
      EXPECT_EQ(error_code(r), c.code) << r.body;
    }
    auto r = co_await t->get("/bkt/c");
    EXPECT_EQ(r.body, "hello world");
    EXPECT_EQ(r.header("x-amz-meta-old"), "1");
    EXPECT_EQ(r.header("content-type"), "text/plain");
    r = co_await t->get("/bkt/a%20b");
    EXPECT_EQ(r.body, "hello world");
    EXPECT_EQ(r.header("x-amz-meta-new"), "2");
    EXPECT_EQ(r.header("x-amz-meta-old"), "");
    // Whole pages pass by reference.
    EXPECT_EQ((co_await t->put("/bkt/aligned", std::string(3 * kMiB, 'x'))).status, 200);
    const uint64_t before = t->payload_copied();
    EXPECT_EQ((co_await t->call({.method = "PUT", .path = "/bkt/d", .headers = {{"x-amz-copy-source", "bkt/aligned"}}}))
                  .status,
              200);
    EXPECT_EQ(t->payload_copied(), before);
  });
}

}  // namespace
}  // namespace cairn::s3
