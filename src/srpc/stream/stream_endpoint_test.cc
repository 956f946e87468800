// The end of a connection, seen from the side that ends it. The stream is a fake: it gives what the test lets arrive,
// and like a socket it tells only once of what has come.
#include "srpc/stream/stream_endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "mem/arena.h"
#include "mem/pool.h"
#include "reactor/scope.h"
#include "reactor/testing/test_loop.h"

namespace cairn::srpc::stream {
namespace {

struct FakeStream final : ByteStream {
  // Outlives the stream.
  struct Wire {
    StreamEvents* events = nullptr;
    size_t unread = 0;   // bytes that have come from the peer, all zero
    bool ended = false;  // the peer has ended, behind them
    size_t sent = 0;
    bool flush_wanted = false;
    bool shut_down = false;
    std::optional<size_t> unread_at_close;
  };

  explicit FakeStream(Wire& w) : wire(w) {}
  ~FakeStream() override { wire.unread_at_close = wire.unread; }
  void start(StreamEvents& events) override { wire.events = &events; }
  Moved receive(std::span<iovec> vectors) override {
    if (wire.unread == 0) return {wire.ended ? Moved::How::end : Moved::How::would_block};
    const size_t n = std::min(wire.unread, vectors[0].iov_len);
    wire.unread -= n;
    return {Moved::How::some, n};
  }
  Moved send(std::span<iovec> vectors) override {
    size_t n = 0;
    for (const iovec& vector : vectors) n += vector.iov_len;
    wire.sent += n;
    return {Moved::How::some, n};
  }
  void set_receiving(bool) override {}
  void want_flush() override { wire.flush_wanted = true; }
  void shutdown_send() override { wire.shut_down = true; }
  const std::string& peer() const override { return name; }

  Wire& wire;
  std::string name = "fake";
};

struct Events final : EndpointEvents {
  void on_message(Incoming&) override { ++messages; }
  void on_closed(const Close& why) override { closed = why; }
  int messages = 0;
  std::optional<Close> closed;
};

class StreamEndpointTest : public ::testing::Test {
 protected:
  StreamEndpointTest()
      : arena(*mem::Arena::create(size_t{1} << 20)),
        pool(loop, registry, arena.memory(), 0),
        scope(loop),
        endpoint(std::make_unique<StreamEndpoint>(
            StreamEndpoint::Context{.loop = loop, .pool = pool, .scope = scope, .requests = mem::Purpose::client},
            std::make_unique<FakeStream>(wire))) {
    endpoint->start(events);
  }

  TestLoop loop;
  Registry registry;
  mem::Arena arena;
  mem::Pool pool;
  Scope scope;
  FakeStream::Wire wire;
  Events events;
  std::unique_ptr<StreamEndpoint> endpoint;
};

// A peer that was told to go may have sent much by then. A TCP connection that is closed before it is read is reset,
// and a reset may take our goodbye with it.
TEST_F(StreamEndpointTest, ReadsToTheEndBeforeItCloses) {
  Header goodbye;
  goodbye.kind = Kind::goodbye;
  endpoint->send(goodbye, {}, {});
  endpoint->close({CloseReason::over_credit, ""});
  ASSERT_TRUE(wire.flush_wanted);
  wire.events->on_flush();
  EXPECT_EQ(wire.sent, kHeaderBytes);
  EXPECT_TRUE(wire.shut_down);
  wire.unread = size_t{8} << 20;
  wire.ended = true;
  wire.events->on_receivable();
  loop.run_until_idle();
  EXPECT_EQ(wire.unread_at_close, 0U);
  ASSERT_TRUE(events.closed);
  EXPECT_EQ(events.closed->reason, CloseReason::over_credit);
}

// A peer that neither ends nor reads doesn't keep it.
TEST_F(StreamEndpointTest, ClosesWhenThePeerDoesNot) {
  endpoint->close({CloseReason::idle_timeout, ""});
  EXPECT_TRUE(wire.shut_down);
  EXPECT_FALSE(wire.unread_at_close);
  loop.run_until_idle();
  EXPECT_TRUE(wire.unread_at_close);
  ASSERT_TRUE(events.closed);
  EXPECT_EQ(events.closed->reason, CloseReason::idle_timeout);
}

// on_sent comes when it was asked for, also when nothing had to wait, and only then.
TEST_F(StreamEndpointTest, TellsWhenEverythingIsSent) {
  struct Sent final : EndpointEvents {
    void on_message(Incoming&) override {}
    void on_closed(const Close&) override {}
    void on_sent() override { ++count; }
    int count = 0;
  } sent;
  FakeStream::Wire other;
  StreamEndpoint asked({.loop = loop, .pool = pool, .scope = scope}, std::make_unique<FakeStream>(other));
  asked.start(sent);
  Header pong;
  pong.kind = Kind::pong;
  asked.send(pong, {}, {});
  other.events->on_flush();
  EXPECT_EQ(sent.count, 0);
  asked.send(pong, {}, {});
  asked.tell_when_sent();
  EXPECT_EQ(sent.count, 0);
  other.events->on_flush();
  EXPECT_EQ(sent.count, 1);
  asked.send(pong, {}, {});
  other.events->on_flush();
  EXPECT_EQ(sent.count, 1);
}

}  // namespace
}  // namespace cairn::srpc::stream
