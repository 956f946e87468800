// What may happen to a channel: no server, one that dies at any point, one that talks nonsense. Each call is answered
// or fails, with a reason, and the channel finds back.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "srpc/channel.h"
#include "srpc/server.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

HelloReplyBody welcome_body(uint16_t credits) {
  HelloReplyBody body;
  body.version = kVersionMax;
  body.poll_groups = 1;
  body.credits = credits;
  body.byte_credits = 1 << 20;
  body.max_calls = 16;
  body.max_data = 1 << 20;
  return body;
}

Bytes welcome(uint16_t credits = 16) {
  return encode_message({.kind = Kind::hello_reply}, as_bytes(welcome_body(credits)));
}

Bytes reply_to(uint64_t id, size_t data = 0) {
  return encode_message({.kind = Kind::reply, .method = Echo::kId, .credits = 1, .request_id = id},
                        as_bytes(EchoBody{.number = 5, .delay_us = 0}), Bytes(data));
}

class HostileServer : public ::testing::Test {
 protected:
  HostileServer() : host(0) { host.start_thread(); }
  ~HostileServer() override {
    close();
    host.stop_thread();
  }
  void close() {
    if (channel) host.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, channel.get());
    host.call([this] {
      channel.reset();
      return 0;
    });
  }
  void make_channel(const Address& to, ChannelOptions options = {}) {
    host.call([&] {
      channel = std::make_unique<Channel>(*host.reactor, host.metrics,
                                          std::make_unique<tcp::TcpConnector>(*host.tcp, to), options);
      return 0;
    });
  }
  // One echo call, which has ended when `server`, run on a thread of its own, may end, too.
  Result<Message<EchoBody>> call_against(const std::function<void(RawListener&)>& server, RawListener& at,
                                         Duration timeout = seconds(10)) {
    std::thread thread([&] { server(at); });
    auto result = host.run(
        +[](Channel* c, Duration t) -> Task<Result<Message<EchoBody>>> {
          co_return co_await c->call<Echo>({.meta = {4, 0}}, {.deadline = c->loop().now() + t});
        },
        channel.get(), timeout);
    thread.join();
    return result;
  }

  Host host;
  std::unique_ptr<Channel> channel;
};

TEST_F(HostileServer, IsNotThere) {
  Address nowhere;
  {
    RawListener gone;
    nowhere = gone.address();
  }
  make_channel(nowhere);
  auto result = host.run(
      +[](Channel* c) -> Task<Result<Message<EchoBody>>> {
        co_return co_await c->call<Echo>({}, {.deadline = c->loop().now() + milliseconds(50)});
      },
      channel.get());
  EXPECT_EQ(result.code(), Errc::timed_out);
  EXPECT_NE(result.error().message().find("Connection refused"), std::string::npos) << result.error().to_string();
  EXPECT_NE(result.error().message().find(nowhere.to_string()), std::string::npos);
  EXPECT_GT(host.metrics.connect_failures.value(), 0U);
}

TEST_F(HostileServer, AcceptsAndSaysNothing) {
  RawListener listener;
  make_channel(listener.address(), {.connect_timeout = milliseconds(50)});
  std::vector<RawPeer> silent;
  auto result = call_against([&](RawListener& at) { silent.push_back(at.accept()); }, listener, milliseconds(500));
  EXPECT_EQ(result.code(), Errc::timed_out);
  EXPECT_NE(result.error().message().find("hello"), std::string::npos) << result.error().to_string();
}

// The server's side of one call, cut after each byte; the next connection is served whole.
TEST_F(HostileServer, DiesAtEveryByte) {
  RawListener listener;
  const Bytes hello = welcome();
  const uint64_t first_id = 1 << 16;  // the first use of the first slot
  const Bytes reply = reply_to(first_id, 5000);
  for (size_t n = 0; n < hello.size() + reply.size(); n += n < hello.size() + 400 ? 5 : 499) {
    SCOPED_TRACE(n);
    // After the second kind it shall not come back and take the next round's place.
    const Duration backoff = n < hello.size() ? milliseconds(1) : seconds(100);
    make_channel(listener.address(), {.backoff_min = backoff, .backoff_max = backoff});
    auto result = call_against(
        [&](RawListener& at) {
          RawPeer peer = at.accept();
          EXPECT_TRUE(peer.receive());  // the hello
          if (n < hello.size()) {
            EXPECT_TRUE(peer.send(std::span(hello).first(n)));
            n % 2 == 0 ? peer.reset() : peer.close();
            // The call has not been sent: it waits for the next connection.
            peer = at.accept();
            EXPECT_TRUE(peer.receive());
            EXPECT_TRUE(peer.send(hello));
            auto request = peer.receive();
            EXPECT_TRUE(request);
            if (request) EXPECT_TRUE(peer.send(reply_to(request->header.request_id)));
          } else {
            EXPECT_TRUE(peer.send(hello));
            auto request = peer.receive();
            EXPECT_TRUE(request && request->header.request_id == first_id);
            EXPECT_TRUE(peer.send(std::span(reply).first(n - hello.size())));
            n % 2 == 0 ? peer.reset() : peer.close();
          }
        },
        listener);
    if (n < hello.size()) {
      EXPECT_TRUE(result) << result.error().to_string();
    } else {
      // It was sent: its effect is unknown, so it isn't sent again.
      EXPECT_EQ(result.code(), Errc::closed);
    }
    close();
  }
}

// The same of a server that knows the key.
TEST_F(HostileServer, DiesAtEveryByteOfItsProof) {
  RawListener listener;
  const KeyRing ring(keys_of({1}));
  const Bytes challenge = encode_message({.kind = Kind::challenge}, as_bytes(ChallengeBody{}));
  const auto welcome_for = [&](const RawPeer::Received& hello) {
    const SessionKey session(key_of(1), handshake_transcript(hello.metadata, as_bytes(ChallengeBody{})));
    HelloReplyBody body = welcome_body(16);
    body.proof = session.server_proof(as_bytes(body));
    return encode_message({.kind = Kind::hello_reply}, as_bytes(body));
  };
  const size_t welcome_bytes = kHeaderBytes + sizeof(HelloReplyBody) + 4;
  for (size_t n = 0; n < challenge.size() + welcome_bytes; n += 5) {
    SCOPED_TRACE(n);
    make_channel(listener.address(), {.backoff_min = milliseconds(1), .backoff_max = milliseconds(1), .keys = &ring});
    auto result = call_against(
        [&](RawListener& at) {
          for (const bool whole : {false, true}) {
            RawPeer peer = at.accept();
            const auto hello = peer.receive();
            ASSERT_TRUE(hello);
            ASSERT_TRUE(
                peer.send(std::span(challenge).first(whole ? challenge.size() : std::min(n, challenge.size()))));
            if (whole || n >= challenge.size()) {
              const auto proof = peer.receive();
              ASSERT_TRUE(proof);
              EXPECT_EQ(proof->metadata, client_proof(key_of(1), hello->metadata, as_bytes(ChallengeBody{})));
              const Bytes welcome = welcome_for(*hello);
              ASSERT_TRUE(peer.send(std::span(welcome).first(whole ? welcome.size() : n - challenge.size())));
            }
            if (!whole) {
              n % 2 == 0 ? peer.reset() : peer.close();
              continue;
            }
            const auto request = peer.receive();
            ASSERT_TRUE(request);
            EXPECT_TRUE(peer.send(reply_to(request->header.request_id)));
          }
        },
        listener);
    EXPECT_TRUE(result) << result.error().to_string();
    close();
  }
}

TEST_F(HostileServer, TalksNonsense) {
  struct Case {
    const char* what;
    Bytes after_hello;
    CloseReason reason;
  };
  Bytes bad_crc = reply_to(1 << 16);
  bad_crc[30] ^= std::byte{4};
  const std::vector<Case> cases = {
      {"an id nobody uses", reply_to((1 << 16) + 3), CloseReason::bad_sequence},
      {"an old use of the slot", reply_to(0), CloseReason::bad_sequence},
      {"an id beyond the table", reply_to(0xffff), CloseReason::bad_sequence},
      {"two replies", reply_to(1 << 16) + reply_to(1 << 16), CloseReason::bad_sequence},
      {"a request", encode_message({.kind = Kind::request}), CloseReason::bad_sequence},
      {"a notice", encode_message({.kind = Kind::notice}), CloseReason::bad_sequence},
      {"hello again", welcome(), CloseReason::bad_sequence},
      {"too many credits", encode_message({.kind = Kind::credit, .credits = 60'000}), CloseReason::bad_sequence},
      {"a broken header", bad_crc, CloseReason::bad_header},
      {"too much data", encode_message({.kind = Kind::reply, .request_id = 1 << 16}, {}, Bytes(3 << 20)),
       CloseReason::too_large},
  };
  RawListener listener;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    make_channel(listener.address(), {.backoff_min = seconds(100), .backoff_max = seconds(100), .max_data = 1 << 20});
    CloseReason said = CloseReason::none;
    auto result = call_against(
        [&](RawListener& at) {
          RawPeer peer = at.accept();
          EXPECT_TRUE(peer.receive());
          EXPECT_TRUE(peer.send(welcome()));
          EXPECT_TRUE(peer.receive());
          (void)peer.send(c.after_hello);
          said = peer.goodbye();
          EXPECT_TRUE(peer.ends());
        },
        listener);
    EXPECT_EQ(close_reason_name(said), close_reason_name(c.reason));
    if (std::string_view(c.what) != "two replies") {
      EXPECT_EQ(result.code(), errc_of(c.reason)) << result.error().to_string();
    }
    close();
  }
}

TEST_F(HostileServer, DamagesPayload) {
  RawListener listener;
  make_channel(listener.address());
  auto result = call_against(
      [&](RawListener& at) {
        RawPeer peer = at.accept();
        EXPECT_TRUE(peer.receive());
        EXPECT_TRUE(peer.send(welcome()));
        EXPECT_TRUE(peer.receive());
        Bytes reply = reply_to(1 << 16, 9000);
        reply[reply.size() - 5000] ^= std::byte{1};
        EXPECT_TRUE(peer.send(reply));
      },
      listener, seconds(2));
  EXPECT_EQ(result.code(), Errc::corrupt);
}

TEST_F(HostileServer, FallsSilent) {
  RawListener listener;
  make_channel(listener.address(), {.keepalive = milliseconds(20), .silence_timeout = milliseconds(200)});
  auto result = call_against(
      [&](RawListener& at) {
        RawPeer peer = at.accept();
        EXPECT_TRUE(peer.receive());
        EXPECT_TRUE(peer.send(welcome()));
        EXPECT_TRUE(peer.receive());
        // Pings come, and nobody answers: half-open, as far as the client can tell.
        bool pinged = false;
        std::string text;
        while (auto message = peer.receive()) {
          pinged = pinged || message->header.kind == Kind::ping;
          if (message->header.kind == Kind::goodbye) text = message->text();
        }
        EXPECT_TRUE(pinged);
        EXPECT_NE(text.find("nothing came"), std::string::npos);
      },
      listener);
  EXPECT_EQ(result.code(), Errc::closed);
}

TEST_F(HostileServer, StaysOpenWhenOnlyIdle) {
  Host server_host(1);
  Server server(*server_host.reactor, server_host.registry, server_host.pool, {.idle_timeout = milliseconds(200)});
  Methods methods(server);
  auto listener = std::move(*tcp::TcpListener::open(*server_host.tcp, server, Address::loopback(0)));
  server_host.start_thread();
  make_channel(Address::loopback(listener->port()), {.keepalive = milliseconds(20)});
  const auto echo = +[](Channel* c) -> Task<Result<Message<EchoBody>>> { co_return co_await c->call<Echo>({}); };
  EXPECT_TRUE(host.run(echo, channel.get()));
  ::usleep(600'000);
  EXPECT_TRUE(host.run(echo, channel.get()));
  EXPECT_EQ(host.metrics.connects.value(), 1U);
  close();
  server_host.run(
      +[](tcp::TcpListener* l, Server* s) -> Task<void> {
        co_await l->close();
        co_await s->drain(s->loop().now() + seconds(1));
      },
      listener.get(), &server);
  server_host.call([&] {
    listener.reset();
    return 0;
  });
  server_host.stop_thread();
}

TEST_F(HostileServer, ComesBackAfterARestart) {
  uint16_t port = 0;
  for (int life = 0; life < 4; ++life) {
    Host server_host(1);
    Server server(*server_host.reactor, server_host.registry, server_host.pool, {});
    Methods methods(server);
    auto opened = tcp::TcpListener::open(*server_host.tcp, server, Address::loopback(port));
    ASSERT_TRUE(opened) << opened.error().to_string();
    auto listener = std::move(*opened);
    port = listener->port();
    server_host.start_thread();
    if (!channel)
      make_channel(Address::loopback(port), {.backoff_min = milliseconds(1), .backoff_max = milliseconds(20)});
    // The first call after a restart may still meet the old connection.
    const auto echo = +[](Channel* c) -> Task<bool> {
      for (int i = 0; i < 100; ++i) {
        if (co_await c->call<Echo>({})) co_return true;
      }
      co_return false;
    };
    EXPECT_TRUE(host.run(echo, channel.get()));
    server_host.run(
        +[](tcp::TcpListener* l, Server* s) -> Task<void> {
          co_await l->close();
          co_await s->drain(s->loop().now() + milliseconds(200));
        },
        listener.get(), &server);
    server_host.call([&] {
      listener.reset();
      return 0;
    });
    server_host.stop_thread();
  }
  EXPECT_EQ(host.metrics.connects.value(), 4U);
}

}  // namespace
}  // namespace cairn::srpc
