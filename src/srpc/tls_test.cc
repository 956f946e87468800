// SRPC over TLS over real sockets: who is served and who isn't, and what each side is told.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hex.h"
#include "srpc/server_process.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/tcp/tls_connector.h"
#include "srpc/testing/host.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"
#include "srpc/tls/tls_key.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

class TlsOverSockets : public ::testing::Test {
 protected:
  void start(Tls tls, ServerOptions options = {}) {
    options.keys = &server_keys;
    server = std::make_unique<Server>(*host.reactor, host.registry, host.pool, options);
    methods = std::make_unique<Methods>(*server);
    auto opened = tcp::TcpListener::open(*host.tcp, *server, Address::loopback(0), tls);
    ASSERT_TRUE(opened) << opened.error().to_string();
    listener = std::move(*opened);
    address = Address::loopback(listener->port());
    host.start_thread();
  }
  void TearDown() override {
    if (!server) return;
    host.run(&stop, this);
    host.call([this] {
      listener.reset();
      server.reset();
      return 0;
    });
    host.stop_thread();
  }
  static Task<void> stop(TlsOverSockets* self) {
    co_await self->listener->close();
    co_await self->server->drain(self->host.reactor->now() + milliseconds(100));
  }

  // One call on a connection of its own: empty, or what went wrong.
  std::string call(const KeyRing& keys, bool tls, const Address& to) {
    return client.run(
        +[](Host* own, const KeyRing* ring, bool encrypted, Address there) -> Task<std::string> {
          std::unique_ptr<Connector> connector;
          if (encrypted) {
            connector = std::make_unique<tcp::TlsConnector>(*own->tcp, *ring, there);
          } else {
            connector = std::make_unique<tcp::TcpConnector>(*own->tcp, there);
          }
          const Duration long_time = seconds(1000);  // one attempt
          Channel channel(*own->reactor, own->metrics, std::move(connector),
                          {.backoff_min = long_time, .backoff_max = long_time, .keys = ring});
          std::string wrong;
          if (auto attempt = co_await channel.wait_attempt(); !attempt) {
            wrong = attempt.error().to_string();
          } else {
            auto reply = co_await channel.call<Echo>({.meta = {41, 0}});
            if (!reply) wrong = reply.error().to_string();
            EXPECT_EQ(channel.transport(), encrypted ? "tls" : "tcp");
          }
          co_await channel.close();
          co_return wrong;
        },
        &client, &keys, tls, to);
  }
  std::string call(const KeyRing& keys, bool tls) { return call(keys, tls, address); }
  static uint64_t metric(Host& of, std::string_view series) {
    const auto read = [&] {
      const std::string text = Registry::expose({{&of.registry, ""}});
      const std::string name = "\n" + std::string(series) + " ";
      const size_t at = text.find(name);
      return at == std::string::npos ? uint64_t{0} : std::stoull(text.substr(at + name.size()));
    };
    return of.call(read);
  }
  uint64_t closed_for(std::string_view reason) {
    return metric(host, "srpc_server_connections_closed_total{reason=\"" + std::string(reason) + "\"}");
  }
  template <typename Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 10'000; ++i) {
      if (condition()) return true;
      ::usleep(1000);
    }
    return false;
  }
  bool all_gone() {
    return eventually([this] { return host.call([this] { return server->connections() == 0; }); });
  }

  Host host{0, Mode::economy, size_t{8} << 20};
  Host client{1, Mode::economy, size_t{8} << 20};
  KeyRing server_keys{keys_of({1})};
  const KeyRing client_keys{keys_of({1})};
  const KeyRing wrong_keys{keys_of({2})};
  std::unique_ptr<Server> server;
  std::unique_ptr<Methods> methods;
  std::unique_ptr<tcp::TcpListener> listener;
  Address address;
};

// The first that a client with these keys says.
Bytes record_client_hello(Host& client, const KeyRing& keys) {
  RawListener listener;
  Bytes hello;
  std::thread taker([&] {
    RawPeer peer = listener.accept();
    hello = peer.receive_some();
    peer.close();
  });
  client.run(
      +[](Host* own, const KeyRing* ring, Address there) -> Task<void> {
        Channel channel(*own->reactor, own->metrics, std::make_unique<tcp::TlsConnector>(*own->tcp, *ring, there),
                        {.backoff_min = seconds(1000), .backoff_max = seconds(1000), .keys = ring});
        EXPECT_FALSE(co_await channel.wait_attempt());
        co_await channel.close();
      },
      &client, &keys, listener.address());
  taker.join();
  return hello;
}

TEST_F(TlsOverSockets, BothSidesMustWantIt) {
  start(Tls::required);
  EXPECT_EQ(call(client_keys, true), "");
  EXPECT_EQ(metric(host, "srpc_tls_handshakes_total"), 1U);
  EXPECT_EQ(metric(client, "srpc_tls_handshakes_total"), 1U);
  const std::string plain = call(client_keys, false);
  EXPECT_NE(plain.find("tls_failed: this server takes TLS only"), std::string::npos) << plain;
  const std::string wrong = call(wrong_keys, true);
  EXPECT_NE(wrong.find("not_authenticated: TLS: the other side doesn't accept this side's cluster key"),
            std::string::npos)
      << wrong;
  EXPECT_EQ(metric(host, "srpc_tls_handshake_failures_total{reason=\"plain\"}"), 1U);
  EXPECT_EQ(metric(host, "srpc_tls_handshake_failures_total{reason=\"key\"}"), 1U);
  EXPECT_EQ(metric(client, "srpc_tls_handshake_failures_total{reason=\"key\"}"), 1U);
  EXPECT_EQ(closed_for("tls_failed"), 1U);
  EXPECT_EQ(closed_for("not_authenticated"), 1U);
  EXPECT_EQ(host.call([this] { return methods->echoes; }), 1U);
}

TEST_F(TlsOverSockets, AServerWithoutItSaysSo) {
  start(Tls::off);
  const std::string error = call(client_keys, true);
  EXPECT_NE(error.find("tls_failed: the server takes no TLS"), std::string::npos) << error;
  EXPECT_EQ(metric(client, "srpc_tls_handshake_failures_total{reason=\"plain\"}"), 1U);
  EXPECT_EQ(closed_for("bad_header"), 1U);
  RawPeer peer = RawPeer::connect(address.port());
  ASSERT_TRUE(peer.send(record_client_hello(client, client_keys)));
  std::string text;
  EXPECT_EQ(peer.goodbye(&text), CloseReason::bad_header);
  EXPECT_EQ(text, "not SRPC: the other side speaks TLS, this one doesn't");
  EXPECT_EQ(call(client_keys, false), "");
}

TEST_F(TlsOverSockets, MayBeLeftToTheClient) {
  start(Tls::allowed);
  EXPECT_EQ(call(client_keys, true), "");
  EXPECT_EQ(call(client_keys, false), "");
  EXPECT_NE(call(wrong_keys, true), "");
  EXPECT_NE(call(wrong_keys, false), "");
  EXPECT_EQ(metric(host, "srpc_tls_handshakes_total"), 1U);
  EXPECT_EQ(host.call([this] { return methods->echoes; }), 2U);
}

TEST_F(TlsOverSockets, NeedsAKey) {
  Server open_server(*host.reactor, host.registry, host.pool, {});
  const auto opened = tcp::TcpListener::open(*host.tcp, open_server, Address::loopback(0), Tls::allowed);
  EXPECT_EQ(opened.code(), Errc::invalid_argument);
  const auto process =
      ServerProcess::start({.at = Address::loopback(0), .memory = size_t{4} << 20, .tls = Tls::required},
                           [](Server&, ReactorHost&) { return nullptr; });
  EXPECT_EQ(process.code(), Errc::invalid_argument);
}

TEST_F(TlsOverSockets, KeysChangeWhileConnectionsStay) {
  start(Tls::required);
  KeyRing changing(keys_of({1}));
  const auto connector = [&] { return std::make_unique<tcp::TlsConnector>(*client.tcp, changing, address); };
  auto channel =
      std::make_unique<Channel>(*client.reactor, client.metrics, connector(), ChannelOptions{.keys = &changing});
  const auto oldest_answers = [&] {
    return client.run(
        +[](Channel* c) -> Task<bool> { co_return (co_await c->call<Echo>({.meta = {1, 0}})).has_value(); },
        channel.get());
  };
  EXPECT_TRUE(oldest_answers());
  for (const std::vector<uint8_t>& step : {std::vector<uint8_t>{1, 2}, {2, 1}, {2}}) {
    host.call([&] {
      server_keys.replace(keys_of(step));
      return 0;
    });
    changing.replace(keys_of(step));
    EXPECT_EQ(call(changing, true), "");
    EXPECT_TRUE(oldest_answers());
  }
  EXPECT_NE(call(client_keys, true), "");  // the old one
  EXPECT_TRUE(oldest_answers());
  client.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, channel.get());
}

TEST_F(TlsOverSockets, ARecordedHelloIsWorthNothing) {
  start(Tls::required, {.hello_timeout = milliseconds(200)});
  const Bytes hello = record_client_hello(client, client_keys);
  ASSERT_GT(hello.size(), 100U);
  EXPECT_EQ(hello[0], std::byte{22});
  for (int i = 0; i < 3; ++i) {
    RawPeer peer = RawPeer::connect(address.port());
    ASSERT_TRUE(peer.send(hello));
    EXPECT_FALSE(peer.receive_some().empty());  // the server's part, of which one must know the ephemeral key
    EXPECT_TRUE(peer.send(hello));
    EXPECT_TRUE(peer.ends());
  }
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(metric(host, "srpc_tls_handshakes_total"), 0U);
  EXPECT_EQ(host.call([this] { return methods->echoes; }), 0U);
  EXPECT_EQ(host.call([this] { return host.pool.free_bytes() == host.pool.total_bytes(); }), true);
}

TEST_F(TlsOverSockets, DiesAtEveryByteOfTheHandshake) {
  start(Tls::required);
  const Bytes hello = record_client_hello(client, client_keys);
  for (size_t n = 0; n <= hello.size(); ++n) {
    RawPeer peer = RawPeer::connect(address.port());
    ASSERT_TRUE(peer.send(std::span(hello).first(n)));
    n % 2 == 0 ? peer.reset() : peer.close();
  }
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(call(client_keys, true), "");
}

// One that begins and doesn't go on has the time for a hello, and holds up nobody meanwhile.
TEST_F(TlsOverSockets, ASlowHandshakeDisturbsNobody) {
  start(Tls::required, {.hello_timeout = milliseconds(500)});
  const Bytes hello = record_client_hello(client, client_keys);
  std::vector<RawPeer> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(RawPeer::connect(address.port()));
    ASSERT_TRUE(slow.back().send(std::span(hello).first(static_cast<size_t>(i) * 10)));
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(call(client_keys, true), "");
  for (RawPeer& peer : slow) EXPECT_TRUE(peer.ends());
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(closed_for("hello_timeout"), 20U);
}

TEST_F(TlsOverSockets, AThousandHandshakesLeaveNothing) {
  start(Tls::required);
  for (int i = 0; i < 1000; ++i) {
    const bool right = i % 4 != 3;
    ASSERT_EQ(call(right ? client_keys : wrong_keys, true).empty(), right);
  }
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(metric(host, "srpc_tls_handshakes_total"), 750U);
  EXPECT_EQ(metric(host, "srpc_tls_handshake_failures_total{reason=\"key\"}"), 250U);
}

// Connections to a poll group that the client names go there after the handshake and the proof.
TEST_F(TlsOverSockets, ConnectionsFindTheirPollGroup) {
  std::vector<std::shared_ptr<Methods>> served;
  const KeyRing ring(keys_of({1}));
  auto process = ServerProcess::start({.at = Address::loopback(0),
                                       .poll_groups = 2,
                                       .mode = Mode::economy,
                                       .memory = size_t{16} << 20,
                                       .shared_memory = false,
                                       .tls = Tls::required,
                                       .server = {.keys = &ring}},
                                      [&](Server& one, ReactorHost&) {
                                        served.push_back(std::make_shared<Methods>(one));
                                        return served.back();
                                      });
  ASSERT_TRUE(process) << process.error().to_string();
  for (int i = 0; i < 20; ++i) {
    const auto wanted = static_cast<uint16_t>(i % 2);
    client.run(
        +[](Host* own, const KeyRing* keys, Address there, uint16_t group) -> Task<void> {
          Channel channel(*own->reactor, own->metrics, std::make_unique<tcp::TlsConnector>(*own->tcp, *keys, there),
                          {.poll_group = group, .keys = keys});
          auto payload = co_await make_payload(&own->pool, 1'000'000);
          const uint32_t crc = crc_of(*payload);
          auto reply = co_await channel.call<Echo>({.meta = {1, 0}, .data = *std::move(payload)});
          EXPECT_TRUE(reply) << reply.error().to_string();
          if (reply) EXPECT_EQ(crc_of(reply->data), crc);
          if (channel.connected()) EXPECT_EQ(channel.poll_group(), group);
          co_await channel.close();
        },
        &client, &client_keys, (*process)->address(), wanted);
  }
  (*process)->stop(seconds(1));
}

// OpenSSL's own client, with the key as anybody would give it one.
TEST_F(TlsOverSockets, OpenSslsClientCompletesTheHandshake) {
  start(Tls::required);
  const auto run = [&](const SharedKey& key, const std::string& version) {
    const Sha256 secret = tls::tls_secret(key);
    const std::string command = "openssl s_client -connect 127.0.0.1:" + std::to_string(address.port()) + " " +
                                version + " -psk_identity " + tls::tls_identity(key) + " -psk " + to_hex(secret) +
                                " -ciphersuites TLS_AES_128_GCM_SHA256 </dev/null 2>&1";
    std::string said;
    FILE* program = ::popen(command.c_str(), "r");
    std::array<char, 4096> piece{};
    while (const size_t n = ::fread(piece.data(), 1, piece.size(), program)) said.append(piece.data(), n);
    ::pclose(program);
    return said;
  };
  const std::string said = run(key_of(1), "-tls1_3");
  EXPECT_NE(said.find("Reused, TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256"), std::string::npos) << said;
  EXPECT_EQ(metric(host, "srpc_tls_handshakes_total"), 1U);
  EXPECT_NE(run(key_of(2), "-tls1_3").find("handshake failure"), std::string::npos);
  EXPECT_NE(run(key_of(1), "-tls1_2").find("alert protocol version"), std::string::npos);
  EXPECT_EQ(metric(host, "srpc_tls_handshakes_total"), 1U);
  EXPECT_TRUE(all_gone());
}

}  // namespace
}  // namespace cairn::srpc
