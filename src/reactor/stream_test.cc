#include "reactor/stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "reactor/listener.h"
#include "reactor/reactor.h"
#include "reactor/scope.h"

namespace cairn {
namespace {

// The same tests for every kind of stream.
class StreamTest : public ::testing::TestWithParam<const char*> {
 protected:
  StreamTest() {
    reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
    if (std::string_view(GetParam()) == "pipe") {
      std::tie(left, right) = make_pipe(*reactor, 1000);
    } else {
      EXPECT_TRUE(reactor->run_task(&connect, this));
    }
  }

  static Task<Result<void>> connect(StreamTest* test) {
    CO_TRY(auto listener, Listener::open(*test->reactor, Address::loopback(0), {}));
    CO_TRY(auto client, co_await Socket::connect(*test->reactor, listener.local()));
    CO_TRY(auto server, co_await listener.accept());
    test->left = std::make_unique<SocketStream>(std::move(client));
    test->right = std::make_unique<SocketStream>(std::move(server));
    co_return Result<void>();
  }

  SeededRng rng{1};
  Registry registry;
  std::unique_ptr<Reactor> reactor;
  std::unique_ptr<Stream> left;
  std::unique_ptr<Stream> right;
};
INSTANTIATE_TEST_SUITE_P(Kinds, StreamTest, ::testing::Values("pipe", "socket"),
                         [](const auto& info) { return std::string(info.param); });

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
  return bytes;
}

Task<void> send_then_end(Stream* stream, size_t size) {
  const auto bytes = pattern(size);
  EXPECT_TRUE(co_await stream->send_all(std::span<const std::byte>(bytes), {}));
  stream->shutdown_send();
}

Task<void> transfer(Reactor* reactor, Stream* left, Stream* right) {
  Scope scope(*reactor);
  scope.spawn(&send_then_end, left, 5'000'000);
  std::vector<std::byte> got(5'000'000);
  std::byte peeked[3];
  EXPECT_GE(*co_await right->peek(peeked, {}), 1u);
  EXPECT_TRUE(co_await right->recv_all(std::span(got).first(777), {}));
  EXPECT_EQ(peeked[0], got[0]);
  size_t at = 777;
  while (at < got.size()) {
    iovec vectors[] = {{got.data() + at, std::min<size_t>(got.size() - at, 10)}, {nullptr, 0}};
    const size_t rest = std::min<size_t>(got.size() - at - vectors[0].iov_len, 3000);
    if (rest > 0) vectors[1] = {got.data() + at + vectors[0].iov_len, rest};
    auto n = co_await right->recv_vectors(std::span(vectors, rest > 0 ? 2 : 1), {});
    EXPECT_TRUE(n && *n > 0);
    if (!n || *n == 0) break;
    at += *n;
  }
  EXPECT_TRUE(got == pattern(5'000'000));
  std::byte more[4];
  EXPECT_EQ(*co_await right->recv(more, {}), 0u);
  EXPECT_EQ((co_await right->recv_all(more, {})).code(), Errc::closed);
  // The other direction still works.
  EXPECT_TRUE(co_await right->send_all(std::span<const std::byte>(more), {}));
  EXPECT_TRUE(co_await left->recv_all(more, {}));
  co_await scope.join();
}

TEST_P(StreamTest, CarriesBytesThenTheEnd) { reactor->run_task(&transfer, reactor.get(), left.get(), right.get()); }

Task<void> expect_recv(Stream* stream, CancelToken token, Errc expected) {
  std::byte buffer[10];
  EXPECT_EQ((co_await stream->recv(buffer, token)).code(), expected);
}
Task<void> expect_send(Stream* stream, CancelToken token, Errc expected) {
  const auto much = pattern(32 << 20);
  EXPECT_EQ((co_await stream->send_all(std::span<const std::byte>(much), token)).code(), expected);
}

Task<void> cancel_both(Reactor* reactor, Stream* stream) {
  CancelSource source;
  Scope scope(*reactor);
  scope.spawn(&expect_recv, stream, CancelToken(source), Errc::timed_out);
  scope.spawn(&expect_send, stream, CancelToken(source), Errc::timed_out);
  (void)co_await reactor->sleep(milliseconds(1));
  source.cancel(Errc::timed_out);
  co_await scope.join();
}

TEST_P(StreamTest, CancelsBothDirections) { reactor->run_task(&cancel_both, reactor.get(), left.get()); }

Task<void> close_both(Reactor* reactor, Stream* left, Stream* right) {
  Scope scope(*reactor);
  scope.spawn(&expect_recv, left, CancelToken(), Errc::closed);
  scope.spawn(&expect_send, left, CancelToken(), Errc::closed);
  (void)co_await reactor->sleep(milliseconds(1));
  left->close();
  co_await scope.join();
  co_await expect_recv(left, {}, Errc::closed);
  co_await expect_send(left, {}, Errc::closed);
  // The peer may still read what was sent, and then meets the end, one way or the other.
  for (;;) {
    std::byte buffer[1000];
    auto n = co_await right->recv(buffer, {});
    if (!n || *n == 0) break;
  }
  co_await expect_send(right, {}, Errc::closed);
}

TEST_P(StreamTest, ClosingEndsEverything) { reactor->run_task(&close_both, reactor.get(), left.get(), right.get()); }

Task<void> peer_vanishes(Reactor* reactor, std::unique_ptr<Stream> left, Stream* right) {
  Scope scope(*reactor);
  scope.spawn(&expect_send, right, CancelToken(), Errc::closed);
  (void)co_await reactor->sleep(milliseconds(1));
  left.reset();
  co_await scope.join();
}

TEST_P(StreamTest, ASenderHearsThatItsPeerIsGone) {
  reactor->run_task(&peer_vanishes, reactor.get(), std::move(left), right.get());
}

}  // namespace
}  // namespace cairn
