// Several poll groups behind one port: a connection is served where its client wants, and stays there.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "srpc/channel.h"
#include "srpc/reactor_placement.h"
#include "srpc/server.h"
#include "srpc/shm/shm_connector.h"
#include "srpc/shm/shm_listener.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr uint16_t kGroups = 3;

class PlacementTest : public ::testing::Test {
 protected:
  struct Part {
    // Each thread looks at a ring of its own.
    Part(uint16_t index, const std::optional<KeyRing>& its_keys)
        : keys(its_keys),
          host(index, Mode::economy, size_t{16} << 20),
          server(*host.reactor, host.registry, host.pool,
                 {.poll_group = index, .poll_groups = kGroups, .keys = keys ? &*keys : nullptr}),
          methods(server) {}
    const std::optional<KeyRing> keys;
    Host host;
    Server server;
    Methods methods;
    std::unique_ptr<tcp::TcpListener> listener;
    std::unique_ptr<shm::ShmListener> shm_listener;
  };

  explicit PlacementTest(const std::optional<KeyRing>& keys = std::nullopt) : client(100, Mode::economy) {
    std::vector<Reactor*> reactors;
    for (uint16_t i = 0; i < kGroups; ++i) {
      parts.push_back(std::make_unique<Part>(i, keys));
      reactors.push_back(parts.back()->host.reactor);
    }
    placement = std::make_unique<ReactorPlacement>(reactors);
    uint16_t port = 0;
    for (auto& part : parts) {
      const uint16_t index = part->server.options().poll_group;
      part->listener = std::move(*tcp::TcpListener::open(*part->host.tcp, part->server, Address::loopback(port)));
      port = part->listener->port();
      placement->open(index, part->server, {part->host.tcp, part->host.shm});
      part->server.set_placement(placement.get());
    }
    address = Address::loopback(port);
    // One of them takes those who come by shared memory.
    parts[0]->shm_listener = std::move(*shm::ShmListener::open(*parts[0]->host.shm, parts[0]->server, address));
    for (auto& part : parts) part->host.start_thread();
    client.start_thread();
  }
  ~PlacementTest() override {
    for (auto& part : parts) {
      part->host.run(&stop, part.get(), placement.get());
      part->host.call([&] {
        part->listener.reset();
        part->shm_listener.reset();
        return 0;
      });
      part->host.stop_thread();
    }
    client.stop_thread();
  }
  static Task<void> stop(Part* part, ReactorPlacement* placement) {
    co_await part->listener->close();
    if (part->shm_listener) co_await part->shm_listener->close();
    placement->close(part->server.options().poll_group);
    co_await part->server.drain(part->server.loop().now() + milliseconds(200));
  }

  Host client;
  std::vector<std::unique_ptr<Part>> parts;
  std::unique_ptr<ReactorPlacement> placement;
  Address address;
};

Task<void> use_poll_group(Host* client, Address to, uint16_t wanted, int calls) {
  Channel channel(*client->reactor, client->metrics, std::make_unique<tcp::TcpConnector>(*client->tcp, to),
                  {.poll_group = wanted});
  for (int i = 0; i < calls; ++i) {
    auto reply = co_await channel.call<Echo>({.meta = {1, 0}});
    EXPECT_TRUE(reply) << reply.error().to_string();
  }
  EXPECT_EQ(channel.poll_groups(), kGroups);
  if (wanted != kAnyPollGroup) EXPECT_EQ(channel.poll_group(), wanted);
  co_await channel.close();
}

TEST_F(PlacementTest, ServesWhereTheClientWants) {
  constexpr int kConnections = 10;  // so that the kernel gives some to each listener
  constexpr int kCalls = 20;
  for (uint16_t wanted = 0; wanted < kGroups; ++wanted) {
    for (int i = 0; i < kConnections; ++i) client.run(&use_poll_group, &client, address, wanted, kCalls);
  }
  for (auto& part : parts) {
    EXPECT_EQ(part->host.call([&] { return part->methods.echoes; }), uint64_t{kConnections} * kCalls);
    EXPECT_EQ(part->host.call([&] { return part->server.connections(); }), 0U);
  }
}

TEST_F(PlacementTest, MovesNoMore) {
  // One connection for each poll group; once it is placed, calls enter no thread but their own.
  for (uint16_t wanted = 0; wanted < kGroups; ++wanted) {
    client.run(
        +[](std::vector<std::unique_ptr<Part>>* parts, Host* own, Address to, uint16_t group) -> Task<void> {
          co_await own->reactor->yield();
          Channel channel(*own->reactor, own->metrics, std::make_unique<tcp::TcpConnector>(*own->tcp, to),
                          {.poll_group = group});
          EXPECT_TRUE(co_await channel.call<Echo>({}));
          const auto hops = [&] {
            uint64_t sum = own->reactor->hops().value();
            for (auto& part : *parts) sum += part->host.reactor->hops().value();
            return sum;
          };
          const uint64_t before = hops();
          for (int i = 0; i < 200; ++i) EXPECT_TRUE(co_await channel.call<Echo>({}));
          EXPECT_EQ(hops(), before);
          co_await channel.close();
        },
        &parts, &client, address, wanted);
  }
}

TEST_F(PlacementTest, RefusesWhatDoesNotExist) {
  RawPeer peer = RawPeer::connect(address.port());
  ASSERT_TRUE(peer.send(hello_message(kGroups)));
  std::string text;
  EXPECT_EQ(peer.goodbye(&text), CloseReason::no_poll_group);
  EXPECT_NE(text.find("there are 3"), std::string::npos) << text;
}

// A client that doesn't wait for the hello's answer can't have its requests follow it to another thread.
TEST_F(PlacementTest, RefusesImpatientClients) {
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    RawPeer peer = RawPeer::connect(address.port());
    const Bytes both = hello_message(1) + encode_message({.kind = Kind::ping});
    ASSERT_TRUE(peer.send(both));
    const auto first = peer.receive();
    ASSERT_TRUE(first);
    if (first->header.kind == Kind::goodbye) {
      ++refused;
    } else {
      EXPECT_EQ(first->header.kind, Kind::hello_reply);  // it had come to the right one
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(PlacementTest, ConnectionsWithoutAWishAreServedSomewhere) {
  for (int i = 0; i < 30; ++i) client.run(&use_poll_group, &client, address, kAnyPollGroup, 1);
  uint64_t echoes = 0;
  for (auto& part : parts) echoes += part->host.call([&] { return part->methods.echoes; });
  EXPECT_EQ(echoes, 30U);
}

class PlacementWithKeys : public PlacementTest {
 protected:
  PlacementWithKeys() : PlacementTest(KeyRing(keys_of({1}))) {}
  uint64_t placed() {
    uint64_t sum = 0;
    for (auto& part : parts) {
      sum += part->host.call(
          [&] { return part->host.registry.counter("srpc_server_connections_placed_total", "").value(); });
    }
    return sum;
  }
  const KeyRing right{keys_of({1})};
  const KeyRing wrong{keys_of({2})};
};

// The poll group that accepted the connection asks for the key, the one that serves it proves that the server has it.
TEST_F(PlacementWithKeys, ServesWhereTheClientWants) {
  const auto use = +[](Host* own, Connector* connector, uint16_t wanted, const KeyRing* keys) -> Task<void> {
    Channel channel(*own->reactor, own->metrics, std::unique_ptr<Connector>(connector),
                    {.poll_group = wanted, .keys = keys});
    for (int i = 0; i < 10; ++i) {
      auto reply = co_await channel.call<Echo>({.meta = {1, 0}});
      EXPECT_TRUE(reply) << reply.error().to_string();
    }
    EXPECT_EQ(channel.poll_group(), wanted);
    co_await channel.close();
  };
  for (uint16_t wanted = 0; wanted < kGroups; ++wanted) {
    for (int i = 0; i < 6; ++i) {
      client.run(use, &client, static_cast<Connector*>(new tcp::TcpConnector(*client.tcp, address)), wanted, &right);
    }
    client.run(use, &client, static_cast<Connector*>(new shm::ShmConnector(*client.shm, address)), wanted, &right);
    EXPECT_EQ(parts[wanted]->host.call([&] { return parts[wanted]->methods.echoes; }), 70U);
  }
  EXPECT_GT(placed(), 0U);
}

TEST_F(PlacementWithKeys, GivesNobodyAwayWhoHasNotProvedTheKey) {
  const auto fail = +[](Host* own, Address to, uint16_t wanted, const KeyRing* keys) -> Task<void> {
    Channel channel(*own->reactor, own->metrics, std::make_unique<tcp::TcpConnector>(*own->tcp, to),
                    {.poll_group = wanted, .backoff_min = seconds(100), .backoff_max = seconds(100), .keys = keys});
    EXPECT_FALSE(co_await call_once_turned_away(&channel));
    EXPECT_NE(channel.last_error().find("not_authenticated"), std::string::npos) << channel.last_error();
    co_await channel.close();
  };
  for (int i = 0; i < 6; ++i) {
    client.run(fail, &client, address, uint16_t{1}, &wrong);
    client.run(fail, &client, address, uint16_t{1}, static_cast<const KeyRing*>(nullptr));
  }
  EXPECT_EQ(placed(), 0U);
  for (auto& part : parts) EXPECT_EQ(part->host.call([&] { return part->methods.echoes; }), 0U);
}

// A proof with a request behind it, which can't follow to another thread.
TEST_F(PlacementWithKeys, RefusesImpatientClients) {
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    RawPeer peer = RawPeer::connect(address.port());
    const Bytes hello = hello_with_key(1);
    ASSERT_TRUE(peer.send(encode_message({.kind = Kind::hello}, hello)));
    const auto challenge = peer.receive();
    ASSERT_TRUE(challenge && challenge->header.kind == Kind::challenge);
    const Bytes proof = client_proof(key_of(1), hello, challenge->metadata);
    ASSERT_TRUE(peer.send(encode_message({.kind = Kind::proof}, proof) + encode_message({.kind = Kind::ping})));
    const auto next = peer.receive();
    ASSERT_TRUE(next);
    if (next->header.kind == Kind::goodbye) {
      ++refused;
    } else {
      EXPECT_EQ(next->header.kind, Kind::hello_reply);  // it had come to the right one
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace cairn::srpc
