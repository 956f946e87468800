#include "reactor/socket.h"

#include <gtest/gtest.h>

#include <vector>

#include "reactor/listener.h"
#include "reactor/reactor.h"

namespace cairn {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class SocketTest : public testing::TestWithParam<Mode> {
 protected:
  SocketTest() : rng(1) {
    auto made = Reactor::create({.mode = GetParam(), .wake_cost = microseconds(30), .rng = rng, .registry = registry});
    reactor = std::move(*made);
  }

  SeededRng rng;
  Registry registry;
  std::unique_ptr<Reactor> reactor;
};
INSTANTIATE_TEST_SUITE_P(Modes, SocketTest, testing::Values(Mode::performance, Mode::economy, Mode::automatic));

Task<void> echo(Socket socket) {
  std::vector<std::byte> buffer(1000);
  for (;;) {
    auto n = co_await socket.recv(buffer);
    EXPECT_TRUE(n) << n.error().to_string();
    if (!n || *n == 0) co_return;
    auto sent = co_await socket.send_all(std::span<const std::byte>(buffer.data(), *n));
    EXPECT_TRUE(sent);
  }
}

Task<Result<std::string>> ask(Reactor* reactor) {
  auto listener = Listener::open(*reactor, Address::loopback(0), {});
  if (!listener) co_return std::move(listener).error();
  Scope scope(*reactor);
  CO_TRY(auto client, co_await Socket::connect(*reactor, listener->local()));
  CO_TRY(auto server, co_await listener->accept());
  EXPECT_EQ(client.peer(), listener->local());
  EXPECT_EQ(client.local(), server.peer());
  scope.spawn(&echo, std::move(server));
  std::string answer;
  for (int i = 0; i < 100; ++i) {
    CO_TRY(co_await client.send_all(bytes_of("hello")));
    std::byte buffer[10];
    size_t got = 0;
    while (got < 5) {
      CO_TRY(const size_t n, co_await client.recv(std::span(buffer).subspan(got)));
      got += n;
    }
    answer.assign(reinterpret_cast<const char*>(buffer), got);
  }
  client.close();
  co_await scope.join();
  co_return answer;
}

TEST_P(SocketTest, EchoesBytes) {
  auto answer = reactor->run_task(&ask, reactor.get());
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(*answer, "hello");
}

}  // namespace
}  // namespace cairn
