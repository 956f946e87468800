// Several poll groups behind one port: a connection is served where its client wants, and stays there.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "srpc/channel.h"
#include "srpc/reactor_placement.h"
#include "srpc/server.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr uint16_t kGroups = 3;

class PlacementTest : public ::testing::Test {
 protected:
  struct Part {
    explicit Part(uint16_t index)
        : host(index, Mode::economy, size_t{16} << 20),
          server(*host.reactor, host.registry, host.pool, {.poll_group = index, .poll_groups = kGroups}),
          methods(server) {}
    Host host;
    Server server;
    Methods methods;
    std::unique_ptr<tcp::TcpListener> listener;
  };

  PlacementTest() : client(100, Mode::economy) {
    std::vector<Reactor*> reactors;
    for (uint16_t i = 0; i < kGroups; ++i) {
      parts.push_back(std::make_unique<Part>(i));
      reactors.push_back(parts.back()->host.reactor.get());
    }
    placement = std::make_unique<ReactorPlacement>(reactors);
    uint16_t port = 0;
    for (auto& part : parts) {
      const uint16_t index = part->server.options().poll_group;
      part->listener = std::move(*tcp::TcpListener::open(*part->host.tcp, part->server, Address::loopback(port)));
      port = part->listener->port();
      placement->open(index, part->server, {part->host.tcp.get(), part->host.shm.get()});
      part->server.set_placement(placement.get());
    }
    address = Address::loopback(port);
    for (auto& part : parts) part->host.start_thread();
    client.start_thread();
  }
  ~PlacementTest() override {
    for (auto& part : parts) {
      part->host.run(&stop, part.get(), placement.get());
      part->host.call([&] {
        part->listener.reset();
        return 0;
      });
      part->host.stop_thread();
    }
    client.stop_thread();
  }
  static Task<void> stop(Part* part, ReactorPlacement* placement) {
    co_await part->listener->close();
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

TEST_F(PlacementTest, ConnectionsWithoutAWishAreServedWhereTheyCome) {
  for (int i = 0; i < 30; ++i) client.run(&use_poll_group, &client, address, kAnyPollGroup, 1);
  uint64_t echoes = 0;
  for (auto& part : parts) echoes += part->host.call([&] { return part->methods.echoes; });
  EXPECT_EQ(echoes, 30U);
}

}  // namespace
}  // namespace cairn::srpc
