#include "gateway/http/body.h"

#include <gtest/gtest.h>

#include "gateway/http/testing/rig.h"
#include "gateway/http/testing/string_source.h"

namespace cairn::http {
namespace {

using testing::Rig;
using testing::StringSource;

class OpenGate final : public BodyGate {
 public:
  Task<Result<void>> on_first_use() override {
    ++uses;
    co_return Result<void>();
  }
  int uses = 0;
};

RequestHead chunked() {
  RequestHead head;
  head.framing = RequestHead::Framing::chunked;
  return head;
}

RequestHead of_length(uint64_t n) {
  RequestHead head;
  head.framing = RequestHead::Framing::length;
  head.content_length = n;
  return head;
}

Task<Result<std::string>> read_everything(Body* body) { co_return co_await read_text(*body, 1 << 20); }

constexpr std::string_view kChunked = "5\r\nhello\r\n1;ext=\"v\"\r\n \r\n5\r\nworld\r\n0\r\nTrailer: x\r\n\r\n";

TEST(Body, DecodesChunksHoweverTheyAreSplit) {
  Rig rig;
  for (size_t split = 0; split <= kChunked.size(); ++split) {
    StringSource wire(std::string(kChunked) + "GET /next", SIZE_MAX, split);
    OpenGate gate;
    const RequestHead head = chunked();
    Body body(head, wire, gate);
    const auto text = rig.run(&read_everything, &body);
    ASSERT_TRUE(text) << split << text.error().to_string();
    EXPECT_EQ(*text, "hello world");
    EXPECT_TRUE(body.complete());
    // Not a byte of what follows was touched.
    EXPECT_EQ(wire.rest(), "GET /next");
    EXPECT_EQ(gate.uses, 1);
  }
}

TEST(Body, TakesExactlyItsLength) {
  Rig rig;
  StringSource wire("hello world", 3);
  OpenGate gate;
  const RequestHead head = of_length(5);
  Body body(head, wire, gate);
  EXPECT_EQ(rig.run(&read_everything, &body).value(), "hello");
  EXPECT_EQ(wire.rest(), " world");
}

TEST(Body, EmptyBodiesNeedNoPermission) {
  Rig rig;
  StringSource wire("x");
  OpenGate gate;
  const RequestHead head = of_length(0);
  Body body(head, wire, gate);
  EXPECT_TRUE(body.complete());
  EXPECT_EQ(rig.run(&read_everything, &body).value(), "");
  EXPECT_EQ(gate.uses, 0);
}

TEST(Body, RefusesMalformedChunks) {
  Rig rig;
  const struct {
    std::string text;
    Errc code;
  } cases[] = {
      {"", Errc::closed},
      {"5\r\nhel", Errc::closed},
      {"5\r\nhello", Errc::closed},
      {"5\r\nhello\r\n0\r\n", Errc::closed},
      {"x\r\nhello\r\n", Errc::protocol_error},
      {"\r\n", Errc::protocol_error},
      {"-1\r\n", Errc::protocol_error},
      {"+5\r\nhello\r\n", Errc::protocol_error},
      {"0x5\r\nhello\r\n", Errc::protocol_error},
      {"5 5\r\nhello\r\n", Errc::protocol_error},
      {"10000000000000000\r\n", Errc::protocol_error},
      {"5\nhello\r\n", Errc::protocol_error},
      {"5\r\nhelloX\r\n", Errc::protocol_error},
      {"5\r\nhello\n0\r\n\r\n", Errc::protocol_error},
      {"5\r\rhello\r\n", Errc::protocol_error},
      {"0\r\nno colon\r\n\r\n", Errc::protocol_error},
      {"5;" + std::string(1000, 'x') + "\r\nhello\r\n", Errc::too_large},
      {"0\r\n" + std::string(3000, 'a') + ": b\r\n" + std::string(3000, 'a') + ": b\r\n\r\n", Errc::too_large},
  };
  for (const auto& c : cases) {
    StringSource wire(c.text, 7);
    OpenGate gate;
    const RequestHead head = chunked();
    Body body(head, wire, gate);
    const auto text = rig.run(&read_everything, &body);
    EXPECT_EQ(text.code(), c.code) << c.text.substr(0, 40);
    EXPECT_EQ(body.failure(), c.code);
    EXPECT_FALSE(body.complete());
  }
}

TEST(Body, PassesOnTimeouts) {
  Rig rig;
  StringSource wire("hel", SIZE_MAX, SIZE_MAX, Errc::timed_out);
  OpenGate gate;
  const RequestHead head = of_length(5);
  Body body(head, wire, gate);
  EXPECT_EQ(rig.run(&read_everything, &body).code(), Errc::timed_out);
}

}  // namespace
}  // namespace cairn::http
