#include "gateway/http/head_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::http {
namespace {

struct Parsed {
  std::string bytes;
  RequestHead head;
  std::optional<HeadError> error;
};

std::unique_ptr<Parsed> parse(std::string bytes, HeadLimits limits = {}) {
  auto parsed = std::make_unique<Parsed>();
  parsed->bytes = std::move(bytes);
  parsed->error = parse_head(parsed->bytes, limits, parsed->head);
  return parsed;
}

TEST(HeadParser, ReadsARequest) {
  const auto p =
      parse("PUT /b/k%20y?x=1&y HTTP/1.1\r\nHost: h:9000\r\nX-Amz-Date:  now \r\nCONTENT-length: 11\r\n\r\n");
  ASSERT_FALSE(p->error) << p->error->reason;
  EXPECT_EQ(p->head.method, Method::put);
  EXPECT_EQ(p->head.path(), "/b/k%20y");
  EXPECT_EQ(p->head.query(), "x=1&y");
  EXPECT_EQ(p->head.host, "h:9000");
  EXPECT_EQ(p->head.headers.value("x-AMZ-date"), "now");
  EXPECT_EQ(p->head.headers.begin()[1].name, "x-amz-date");
  EXPECT_EQ(p->head.framing, RequestHead::Framing::length);
  EXPECT_EQ(p->head.content_length, 11u);
  EXPECT_TRUE(p->head.keep_alive);
  EXPECT_FALSE(p->head.expects_continue);
}

TEST(HeadParser, DecidesOnTheConnection) {
  const struct {
    const char* text;
    bool keep;
  } cases[] = {
      {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: h\r\nConnection: te, Close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
  };
  for (const auto& c : cases) {
    const auto p = parse(c.text);
    ASSERT_FALSE(p->error) << c.text;
    EXPECT_EQ(p->head.keep_alive, c.keep) << c.text;
  }
}

TEST(HeadParser, ReadsAbsoluteTargets) {
  const auto p = parse("GET http://other:80/a?b HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_FALSE(p->error);
  EXPECT_EQ(p->head.host, "other:80");
  EXPECT_EQ(p->head.target, "/a?b");
}

TEST(HeadParser, KeepsRawBytesOfTheTarget) {
  const auto p = parse("GET /b/\xc3\xa9/..//./x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_FALSE(p->error) << p->error->reason;
  EXPECT_EQ(p->head.path(), "/b/\xc3\xa9/..//./x");
}

// Each of these is read differently by different servers: accepted here, it could carry a second request past a proxy.
TEST(HeadParser, RefusesWhatCouldBeReadInTwoWays) {
  const struct {
    const char* what;
    std::string text;
    int status;
  } cases[] = {
      {"CL and TE", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400},
      {"TE and CL", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400},
      {"two equal CL", "Content-Length: 5\r\nContent-Length: 5\r\n", 400},
      {"two CL", "Content-Length: 5\r\nContent-Length: 6\r\n", 400},
      {"CL list", "Content-Length: 5, 5\r\n", 400},
      {"CL sign", "Content-Length: +5\r\n", 400},
      {"CL negative", "Content-Length: -5\r\n", 400},
      {"CL hex", "Content-Length: 0x5\r\n", 400},
      {"CL blank inside", "Content-Length: 5 5\r\n", 400},
      {"CL empty", "Content-Length:\r\n", 400},
      {"CL beyond 64 bits", "Content-Length: 99999999999999999999\r\n", 400},
      {"TE identity", "Transfer-Encoding: identity\r\n", 501},
      {"TE gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n", 501},
      {"TE xchunked", "Transfer-Encoding: xchunked\r\n", 501},
      {"two TE", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"blank before colon", "X-A : b\r\n", 400},
      {"blank before CL's colon", "Content-Length : 5\r\n", 400},
      {"no colon", "garbage\r\n", 400},
      {"empty name", ": b\r\n", 400},
      {"folded line", "X-A: b\r\n c\r\n", 400},
      {"folded with tab", "X-A: b\r\n\tc\r\n", 400},
      {"NUL", std::string("X-A: b\0c\r\n", 10), 400},
      {"bell", "X-A: b\ac\r\n", 400},
      {"DEL", "X-A: b\x7f\r\n", 400},
      {"bare CR", "X-A: b\rContent-Length: 5\r\n", 400},
      {"bare LF", "X-A: b\nContent-Length: 5\r\n", 400},
      {"second Host", "Host: other\r\n", 400},
      {"name with slash", "X/A: b\r\n", 400},
      {"unknown expectation", "Expect: 200-ok\r\n", 417},
  };
  for (const auto& c : cases) {
    const auto p = parse("PUT / HTTP/1.1\r\nHost: h\r\n" + c.text + "\r\n");
    ASSERT_TRUE(p->error) << c.what;
    EXPECT_EQ(p->error->status, c.status) << c.what << ": " << p->error->reason;
    EXPECT_FALSE(p->error->reason.empty());
  }
}

TEST(HeadParser, RefusesBadRequestLines) {
  using namespace std::string_literals;
  const struct {
    std::string text;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},  // no Host
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
      {"GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505},
      {"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / http/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /\r\nHost: h\r\n\r\n", 400},
      {"GET b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"G\"T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x00\x01\r\n\r\n"s, 400},  // a TLS client on the plain port
  };
  for (const auto& c : cases) {
    const auto p = parse(c.text);
    ASSERT_TRUE(p->error) << c.text;
    EXPECT_EQ(p->error->status, c.status) << c.text << p->error->reason;
  }
}

TEST(HeadParser, KeepsToItsLimits) {
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 200; ++i) many += "A: b\r\n";
  EXPECT_EQ(parse(many + "\r\n")->error.value().status, 431);
  EXPECT_EQ(parse("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n")->error.value().status, 414);
  EXPECT_FALSE(parse("GET /" + std::string(8000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n")->error);
}

TEST(HeadScan, FindsTheEndWhereverTheBytesAreSplit) {
  const std::string text = "GET / HTTP/1.1\r\nHost: h\r\n\r\nnext";
  for (size_t split = 0; split < 27; ++split) {
    EXPECT_EQ(scan_head(text.substr(0, split), 0).state, HeadScan::State::incomplete) << split;
    const auto scan = scan_head(text, split);
    EXPECT_EQ(scan.state, HeadScan::State::complete) << split;
    EXPECT_EQ(scan.size, 27u) << split;
  }
  EXPECT_EQ(scan_head("GET / HTTP/1.1\nHost: h\n\n", 0).state, HeadScan::State::malformed);
}

}  // namespace
}  // namespace cairn::http
