#include "reactor/socket.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "reactor/deadline.h"
#include "reactor/listener.h"
#include "reactor/mailbox.h"
#include "reactor/reactor.h"

namespace cairn {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t counter(const Registry& registry, const std::string& name) {
  const std::string text = Registry::expose({{&registry, ""}});
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? UINT64_MAX : std::stoull(text.substr(at + name.size() + 2));
}

class SocketTest : public ::testing::TestWithParam<Mode> {
 protected:
  SocketTest() : rng(1) {
    reactor = *Reactor::create({.mode = GetParam(), .wake_cost = microseconds(30), .rng = rng, .registry = registry});
  }

  SeededRng rng;
  Registry registry;
  std::unique_ptr<Reactor> reactor;
};
INSTANTIATE_TEST_SUITE_P(Modes, SocketTest, ::testing::Values(Mode::performance, Mode::economy, Mode::automatic),
                         [](const auto& info) {
                           return std::string(info.param == Mode::performance ? "performance"
                                              : info.param == Mode::economy   ? "economy"
                                                                              : "automatic");
                         });

struct Pair {
  Socket client;
  Socket server;
};

Task<Result<Pair>> connect_pair(Reactor* reactor) {
  CO_TRY(auto listener, Listener::open(*reactor, Address::loopback(0), {}));
  CO_TRY(auto client, co_await Socket::connect(*reactor, listener.local()));
  CO_TRY(auto server, co_await listener.accept());
  EXPECT_EQ(client.peer(), listener.local());
  EXPECT_EQ(client.local(), server.peer());
  co_return Pair{std::move(client), std::move(server)};
}

Task<Result<std::string>> recv_text(Socket* socket, size_t size, CancelToken token = {}) {
  std::vector<std::byte> buffer(size);
  size_t got = 0;
  while (got < size) {
    CO_TRY(const size_t n, co_await socket->recv(std::span(buffer).subspan(got), token));
    if (n == 0) break;
    got += n;
  }
  co_return text_of(std::span(buffer).first(got));
}

Task<void> echo(Socket socket) {
  std::vector<std::byte> buffer(1000);
  for (;;) {
    auto n = co_await socket.recv(buffer);
    if (!n || *n == 0) co_return;
    if (!co_await socket.send_all(std::span<const std::byte>(buffer.data(), *n))) co_return;
  }
}

Task<void> echo_and_half_close(Reactor* reactor) {
  auto pair = co_await connect_pair(reactor);
  EXPECT_TRUE(pair) << pair.error().to_string();
  Scope scope(*reactor);
  scope.spawn(&echo, std::move(pair->server));
  Socket client = std::move(pair->client);
  for (int i = 0; i < 300; ++i) {
    const std::string text = "message " + std::to_string(i);
    EXPECT_TRUE(co_await client.send_all(bytes_of(text)));
    EXPECT_EQ(*co_await recv_text(&client, text.size()), text);
  }
  EXPECT_TRUE(co_await client.send_all(bytes_of("the last words")));
  client.shutdown_send();
  EXPECT_EQ(*co_await recv_text(&client, 1000), "the last words");  // then the end
  EXPECT_EQ(*co_await recv_text(&client, 1000), "");                // and again
  co_await scope.join();
}

TEST_P(SocketTest, EchoesUntilTheHalfClose) { reactor->run_task(&echo_and_half_close, reactor.get()); }

Task<void> peek_and_vectors(Reactor* reactor) {
  auto pair = *co_await connect_pair(reactor);
  std::string a = "first ", b, c = "third";
  iovec out[] = {{a.data(), a.size()}, {b.data(), 0}, {c.data(), c.size()}};
  EXPECT_TRUE(co_await pair.client.send_all(out));
  std::byte buffer[4];
  EXPECT_EQ(*co_await pair.server.peek(buffer), 4u);
  EXPECT_EQ(text_of(buffer), "firs");
  EXPECT_EQ(*co_await pair.server.recv(std::span(buffer).first(2)), 2u);
  EXPECT_EQ(text_of(std::span(buffer).first(2)), "fi");
  std::string d(3, '-'), e(20, '-');
  iovec in[] = {{d.data(), d.size()}, {e.data(), e.size()}};
  EXPECT_EQ(*co_await pair.server.recv_vectors(in), 9u);
  EXPECT_EQ(d + e.substr(0, 6), "rst third");
  EXPECT_TRUE(co_await pair.client.send_all(std::span<iovec>()));  // nothing: done
  iovec partial[] = {{a.data(), a.size()}};
  EXPECT_EQ(*co_await pair.client.send(partial), a.size());
  EXPECT_EQ(*co_await recv_text(&pair.server, a.size()), a);
}

TEST_P(SocketTest, PeeksAndUsesVectors) { reactor->run_task(&peek_and_vectors, reactor.get()); }

// The end comes together with the last bytes, just before them in time, or long after: a receiver that waits in the
// ring must see it in each case, though it doesn't try a receive that can't succeed.
Task<void> bytes_then_end(Reactor* reactor, Duration before, Duration between) {
  auto pair = *co_await connect_pair(reactor);
  Scope scope(*reactor);
  std::string got;
  struct Receive {
    static Task<void> all(Socket* socket, std::string* text) {
      std::byte buffer[100];
      for (;;) {
        auto n = co_await socket->recv(buffer);
        EXPECT_TRUE(n);
        if (!n || *n == 0) co_return;
        *text += text_of(std::span(buffer).first(*n));
      }
    }
  };
  scope.spawn(&Receive::all, &pair.server, &got);
  (void)co_await reactor->sleep(before);
  EXPECT_TRUE(co_await pair.client.send_all(bytes_of("one ")));
  (void)co_await reactor->sleep(before);
  EXPECT_TRUE(co_await pair.client.send_all(bytes_of("two")));
  if (between.ns > 0) (void)co_await reactor->sleep(between);
  pair.client.shutdown_send();
  co_await scope.join();
  EXPECT_EQ(got, "one two");
}

TEST_P(SocketTest, TheEndIsSeenWheneverItComes) {
  for (const Duration before : {Duration{}, microseconds(10), milliseconds(1)}) {
    for (const Duration between : {Duration{}, microseconds(10), milliseconds(1)}) {
      for (int i = 0; i < 10; ++i) reactor->run_task(&bytes_then_end, reactor.get(), before, between);
    }
  }
}

// More than any socket buffer holds, in pieces of odd sizes: the sender is blocked again and again.
std::vector<std::byte> big_pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761) >> 13);
  return bytes;
}

Task<void> send_big(Socket* socket, const std::vector<std::byte>* bytes) {
  std::vector<iovec> vectors;
  size_t at = 0;
  for (size_t piece = 1; at < bytes->size(); piece = piece * 3 % 70'001 + 1) {
    const size_t n = std::min(piece, bytes->size() - at);
    vectors.push_back({const_cast<std::byte*>(bytes->data()) + at, n});
    at += n;
  }
  EXPECT_TRUE(co_await socket->send_all(vectors));
  socket->shutdown_send();
}

Task<void> transfer_big(Reactor* reactor) {
  auto pair = *co_await connect_pair(reactor);
  const auto bytes = big_pattern(24 << 20);
  Scope scope(*reactor);
  scope.spawn(&send_big, &pair.client, &bytes);
  std::vector<std::byte> got(bytes.size() + 1);
  size_t size = 0;
  for (;;) {
    auto n = co_await pair.server.recv(std::span(got).subspan(size, std::min<size_t>(got.size() - size, 99'991)));
    EXPECT_TRUE(n);
    if (!n || *n == 0) break;
    size += *n;
    if (size % 7 == 0) (void)co_await reactor->sleep(microseconds(200));  // lets the sender's buffer fill up
  }
  got.resize(size);
  EXPECT_TRUE(got == bytes);
  co_await scope.join();
}

TEST_P(SocketTest, SendsMoreThanTheBuffersHold) { reactor->run_task(&transfer_big, reactor.get()); }

Task<void> ask(Socket* socket, int number, int times, int* answered) {
  for (int i = 0; i < times; ++i) {
    const std::string text = "client " + std::to_string(number) + " asks " + std::to_string(i);
    EXPECT_TRUE(co_await socket->send_all(bytes_of(text)));
    auto answer = co_await recv_text(socket, text.size());
    EXPECT_TRUE(answer);
    if (!answer) co_return;
    EXPECT_EQ(*answer, text);
    ++*answered;
  }
}

Task<void> many_connections(Reactor* reactor, Registry* registry, size_t connections) {
  auto listener = *Listener::open(*reactor, Address::loopback(0), {});
  Scope servers(*reactor);
  std::vector<std::unique_ptr<Socket>> clients;
  for (size_t i = 0; i < connections; ++i) {
    auto client = co_await Socket::connect(*reactor, listener.local());
    EXPECT_TRUE(client) << client.error().to_string();
    if (!client) co_return;
    clients.push_back(std::make_unique<Socket>(std::move(*client)));
    auto server = co_await listener.accept();
    EXPECT_TRUE(server) << server.error().to_string();
    if (!server) co_return;
    servers.spawn(&echo, std::move(*server));
  }
  // All of them at once.
  int answered = 0;
  {
    Scope scope(*reactor);
    for (size_t i = 0; i < clients.size(); ++i) scope.spawn(&ask, clients[i].get(), static_cast<int>(i), 3, &answered);
    co_await scope.join();
  }
  EXPECT_EQ(answered, static_cast<int>(3 * connections));

  // Quiet now: they have cooled down, and rounds cost no system call, however many connections there are.
  EXPECT_TRUE(co_await reactor->sleep(milliseconds(5)));
  EXPECT_EQ(reactor->hot().size(), 0u);
  const uint64_t enters = counter(*registry, "reactor_io_uring_enters_total");
  for (int i = 0; i < 1000; ++i) co_await reactor->yield();
  EXPECT_LE(counter(*registry, "reactor_io_uring_enters_total") - enters, 2u);

  // One of them wakes up in the crowd.
  co_await ask(clients[clients.size() / 2].get(), 0, 50, &answered);
  EXPECT_EQ(answered, static_cast<int>(3 * connections + 50));
  clients.clear();
  co_await servers.join();
}

TEST_P(SocketTest, QuietConnectionsCostNothing) {
  // Two descriptors each.
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const size_t connections = limit.rlim_cur >= 2200 ? 1000 : limit.rlim_cur / 2 - 50;
  reactor->run_task(&many_connections, reactor.get(), &registry, connections);
}

// --- ends ---

Task<void> expect_recv(Socket* socket, CancelToken token, Errc expected, int* ended) {
  std::byte buffer[16];
  auto got = co_await socket->recv(buffer, token);
  EXPECT_EQ(got.code(), expected);
  ++*ended;
}
Task<void> expect_send(Socket* socket, CancelToken token, Errc expected, int* ended) {
  const std::vector<std::byte> much(32 << 20);
  auto sent = co_await socket->send_all(much, token);
  EXPECT_EQ(sent.code(), expected);
  ++*ended;
}
Task<void> expect_accept(Listener* listener, CancelToken token, Errc expected, int* ended) {
  auto accepted = co_await listener->accept(token);
  EXPECT_EQ(accepted.code(), expected);
  ++*ended;
}

// The operation waits hot, armed in the ring, or hasn't begun: cancelling must work in each state.
Task<void> cancel_everything(Reactor* reactor, Duration delay) {
  auto pair = *co_await connect_pair(reactor);
  auto listener = *Listener::open(*reactor, Address::loopback(0), {});
  int ended = 0;
  CancelSource source;
  Scope scope(*reactor);
  scope.spawn(&expect_recv, &pair.client, CancelToken(source), Errc::cancelled, &ended);
  scope.spawn(&expect_send, &pair.client, CancelToken(source), Errc::cancelled, &ended);
  scope.spawn(&expect_accept, &listener, CancelToken(source), Errc::cancelled, &ended);
  if (delay.ns > 0) (void)co_await reactor->sleep(delay);
  source.cancel();
  EXPECT_EQ(ended, 0);  // resumed by the loop, not inside cancel()
  co_await scope.join();
  EXPECT_EQ(ended, 3);
  // Cancelled before the call: nothing is tried.
  co_await expect_recv(&pair.server, source, Errc::cancelled, &ended);
  // The connection itself is as good as before.
  std::vector<std::byte> sink(1 << 20);
  EXPECT_GT(*co_await pair.server.recv(sink), 0u);
  EXPECT_TRUE(co_await pair.server.send_all(bytes_of("still here")));
  EXPECT_EQ(*co_await recv_text(&pair.client, 10), "still here");
}

TEST_P(SocketTest, CancelsWaitsInEveryState) {
  for (const Duration delay : {Duration{}, microseconds(50), milliseconds(3)}) {
    reactor->run_task(&cancel_everything, reactor.get(), delay);
  }
}

Task<void> time_out(Reactor* reactor) {
  auto pair = *co_await connect_pair(reactor);
  int ended = 0;
  Deadline deadline(*reactor, reactor->now() + milliseconds(2));
  co_await expect_recv(&pair.client, deadline.token(), Errc::timed_out, &ended);
}

TEST_P(SocketTest, DeadlinesEndWaits) { reactor->run_task(&time_out, reactor.get()); }

Task<void> close_everything(Reactor* reactor, Duration delay) {
  auto pair = *co_await connect_pair(reactor);
  auto listener = *Listener::open(*reactor, Address::loopback(0), {});
  int ended = 0;
  Scope scope(*reactor);
  scope.spawn(&expect_recv, &pair.client, CancelToken(), Errc::closed, &ended);
  scope.spawn(&expect_send, &pair.client, CancelToken(), Errc::closed, &ended);
  scope.spawn(&expect_accept, &listener, CancelToken(), Errc::closed, &ended);
  if (delay.ns > 0) (void)co_await reactor->sleep(delay);
  pair.client.close();
  listener.close();
  pair.client.close();  // twice is as good as once
  co_await scope.join();
  EXPECT_EQ(ended, 3);
  EXPECT_FALSE(pair.client);
  EXPECT_FALSE(pair.client.peer().valid());
  co_await expect_recv(&pair.client, {}, Errc::closed, &ended);
  // The peer hears of it, after what was sent.
  std::vector<std::byte> sink(1 << 20);
  for (;;) {
    auto n = co_await pair.server.recv(sink);
    EXPECT_TRUE(n || n.code() == Errc::closed);
    if (!n || *n == 0) break;
  }
}

TEST_P(SocketTest, ClosingEndsWaits) {
  for (const Duration delay : {Duration{}, milliseconds(3)}) {
    reactor->run_task(&close_everything, reactor.get(), delay);
  }
}

Task<void> reset_by_peer(Reactor* reactor) {
  auto pair = *co_await connect_pair(reactor);
  const linger now{.l_onoff = 1, .l_linger = 0};
  EXPECT_EQ(::setsockopt(pair.server.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  int ended = 0;
  Scope scope(*reactor);
  scope.spawn(&expect_recv, &pair.client, CancelToken(), Errc::closed, &ended);
  (void)co_await reactor->sleep(milliseconds(1));
  pair.server.close();
  co_await scope.join();
  auto sent = co_await pair.client.send_all(bytes_of("anybody?"));
  EXPECT_EQ(sent.code(), Errc::closed);  // and no SIGPIPE
}

TEST_P(SocketTest, AResetIsAnErrorNotASignal) { reactor->run_task(&reset_by_peer, reactor.get()); }

Task<void> refused(Reactor* reactor) {
  Address nobody;
  {
    auto listener = *Listener::open(*reactor, Address::loopback(0), {});
    nobody = listener.local();
  }
  auto socket = co_await Socket::connect(*reactor, nobody);
  EXPECT_EQ(socket.code(), Errc::unavailable);
  if (!socket) EXPECT_NE(socket.error().message().find(nobody.to_string()), std::string::npos);
  EXPECT_EQ((co_await Socket::connect(*reactor, Address())).code(), Errc::invalid_argument);
}

TEST_P(SocketTest, ConnectTellsThatNobodyListens) { reactor->run_task(&refused, reactor.get()); }

Task<void> connect_to_full_backlog(Reactor* reactor) {
  // A backlog that is full lets a connect wait; nobody needs a network for it.
  auto listener = *Listener::open(*reactor, Address::loopback(0), {.backlog = 0});
  std::vector<Socket> fillers;
  for (int i = 0; i < 8; ++i) {
    Deadline deadline(*reactor, reactor->now() + milliseconds(20));
    auto socket = co_await Socket::connect(*reactor, listener.local(), deadline.token());
    if (!socket) {
      EXPECT_EQ(socket.code(), Errc::timed_out);
      co_return;
    }
    fillers.push_back(std::move(*socket));
  }
  ADD_FAILURE() << "the backlog never filled up";
}

TEST_P(SocketTest, ConnectCanBeCancelled) { reactor->run_task(&connect_to_full_backlog, reactor.get()); }

TEST_P(SocketTest, ATakenPortSaysSo) {
  auto first = Listener::open(*reactor, Address::loopback(0), {});
  ASSERT_TRUE(first);
  auto second = Listener::open(*reactor, first->local(), {});
  EXPECT_EQ(second.code(), Errc::busy);
  EXPECT_NE(second.error().message().find("another process uses the port"), std::string::npos);
  auto shared = Listener::open(*reactor, Address::loopback(0), {.reuse_port = true});
  EXPECT_TRUE(Listener::open(*reactor, shared->local(), {.reuse_port = true}));
}

Task<void> ipv6(Reactor* reactor, bool* skipped) {
  auto listener = Listener::open(*reactor, *Address::parse("[::1]:0"), {});
  if (!listener) {
    *skipped = true;
    co_return;
  }
  auto client = co_await Socket::connect(*reactor, listener->local());
  EXPECT_TRUE(client);
  auto server = co_await listener->accept();
  EXPECT_TRUE(server);
  EXPECT_TRUE(server->peer().is_loopback());
}

TEST_P(SocketTest, SpeaksIpv6) {
  bool skipped = false;
  reactor->run_task(&ipv6, reactor.get(), &skipped);
  if (skipped) GTEST_SKIP() << "no IPv6 here";
}

// --- hand over ---

Task<void> serve_and_stop(Reactor* reactor, Socket socket) {
  co_await echo(std::move(socket));
  reactor->stop();
}

Task<void> hand_over(Reactor* reactor, Mailbox<Fd>* mailbox, bool quiet_first) {
  auto pair = *co_await connect_pair(reactor);
  // The first bytes tell who it is for; they stay in the kernel. In the quiet case the socket hangs in the ring's poll
  // when it is given away.
  Scope scope(*reactor);
  if (quiet_first) {
    CancelSource source;
    int ended = 0;
    scope.spawn(&expect_recv, &pair.server, CancelToken(source), Errc::cancelled, &ended);
    (void)co_await reactor->sleep(milliseconds(2));
    source.cancel();
    co_await scope.join();
  }
  EXPECT_TRUE(co_await pair.client.send_all(bytes_of("hello, other one")));
  std::byte first[5];
  EXPECT_EQ(*co_await pair.server.peek(first), 5u);
  EXPECT_TRUE(mailbox->try_send(pair.server.release()));
  EXPECT_FALSE(pair.server);
  EXPECT_EQ(*co_await recv_text(&pair.client, 16), "hello, other one");
  int answered = 0;
  co_await ask(&pair.client, 1, 50, &answered);
  EXPECT_EQ(answered, 50);
  pair.client.shutdown_send();
  EXPECT_EQ(*co_await recv_text(&pair.client, 1), "");
}

TEST_P(SocketTest, AConnectionMovesToAnotherReactor) {
  for (const bool quiet_first : {false, true}) {
    SeededRng other_rng(2);
    Registry other_registry;
    auto other = *Reactor::create(
        {.index = 1, .mode = GetParam(), .wake_cost = microseconds(30), .rng = other_rng, .registry = other_registry});
    Scope scope(*other);
    Mailbox<Fd> mailbox(*other, 4,
                        [&](Fd fd) { scope.spawn(&serve_and_stop, other.get(), Socket(*other, std::move(fd))); });
    std::thread thread([&] { other->run(); });
    reactor->run_task(&hand_over, reactor.get(), &mailbox, quiet_first);
    thread.join();
    EXPECT_EQ(scope.running(), 0u);
    EXPECT_EQ(counter(other_registry, "reactor_cross_thread_hops_total"), 1u);
  }
}

// A peer that always has more to say must not keep the others from their turn.
Task<void> flood(Socket* socket, const bool* stop) {
  const std::vector<std::byte> bytes(1 << 16);
  while (!*stop) {
    if (!co_await socket->send_all(bytes)) co_return;
  }
}
Task<void> drain(Socket* socket) {
  std::byte buffer[64];  // small: there is always more
  for (;;) {
    auto n = co_await socket->recv(buffer);
    if (!n || *n == 0) co_return;
  }
}

Task<void> fairness(Reactor* reactor) {
  auto noisy = *co_await connect_pair(reactor);
  auto quiet = *co_await connect_pair(reactor);
  bool stop = false;
  Scope scope(*reactor);
  scope.spawn(&drain, &noisy.server);
  scope.spawn(&flood, &noisy.client, &stop);
  scope.spawn(&echo, std::move(quiet.server));
  int answered = 0;
  co_await ask(&quiet.client, 1, 20, &answered);
  EXPECT_EQ(answered, 20);
  stop = true;
  noisy.client.close();
  noisy.server.close();
  quiet.client.close();
  co_await scope.join();
}

TEST_P(SocketTest, ANoisyConnectionStarvesNobody) { reactor->run_task(&fairness, reactor.get()); }

}  // namespace
}  // namespace cairn
