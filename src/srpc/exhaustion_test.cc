// Memory for payload runs out, at any time: requests wait in order, nothing deadlocks, the reactor never blocks.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "srpc/channel.h"
#include "srpc/server.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

// A server with memory for a handful of requests, and clients with plenty.
class Exhaustion : public ::testing::Test {
 protected:
  static constexpr size_t kPayload = 200'000;  // takes a block of 256 KiB

  Exhaustion()
      : clients(0),
        host(1, Mode::automatic, size_t{2} << 20),
        server(*host.reactor, host.registry, host.pool, {}),
        methods(server) {
    listener = std::move(*tcp::TcpListener::open(*host.tcp, server, Address::loopback(0)));
    address = Address::loopback(listener->port());
    host.start_thread();
    clients.start_thread();
  }
  ~Exhaustion() override {
    for (auto& channel : channels) clients.run(&close, channel.get());
    host.run(&stop, this);
    host.call([this] {
      listener.reset();
      return 0;
    });
    host.stop_thread();
  }
  static Task<void> close(Channel* channel) { co_await channel->close(); }
  static Task<void> stop(Exhaustion* self) {
    co_await self->listener->close();
    co_await self->server.drain(self->host.reactor->now() + milliseconds(100));
  }
  void connect(size_t count) {
    clients.call([&] {
      for (size_t i = 0; i < count; ++i) {
        channels.push_back(std::make_unique<Channel>(*clients.reactor, clients.metrics,
                                                     std::make_unique<tcp::TcpConnector>(*clients.tcp, address)));
      }
      return 0;
    });
  }

  Host clients;
  Host host;
  Server server;
  Methods methods;
  std::unique_ptr<tcp::TcpListener> listener;
  Address address;
  std::vector<std::unique_ptr<Channel>> channels;
};

Task<void> put_again(Channel* channel, mem::BufChain payload, uint32_t crc, int times, int* done) {
  for (int i = 0; i < times; ++i) {
    auto reply =
        co_await channel->call<Put>({.meta = {}, .data = payload}, {.deadline = channel->loop().now() + seconds(120)});
    EXPECT_TRUE(reply) << reply.error().to_string();
    if (!reply) co_return;
    EXPECT_EQ(reply->meta.crc, crc);
    ++*done;
  }
}

Task<void> put_everywhere(std::vector<std::unique_ptr<Channel>>* channels, mem::Pool* pool, size_t size, int each,
                          int times, int* done) {
  auto payload = co_await make_payload(pool, size);
  const uint32_t crc = crc_of(*payload);
  Scope scope(pool->loop());
  for (auto& channel : *channels) {
    for (int i = 0; i < each; ++i) scope.spawn(&put_again, channel.get(), *payload, crc, times, done);
  }
  co_await scope.join();
}

// P06: 64 connections with 64 requests each want seven times what a buffer for each would take.
TEST_F(Exhaustion, ManyClientsShareAFewBuffers) {
  connect(64);
  int done = 0;
  clients.run(&put_everywhere, &channels, &clients.pool, kPayload, 64, 1, &done);
  EXPECT_EQ(done, 64 * 64);
  EXPECT_EQ(clients.metrics.errors.value(), 0U);
  EXPECT_EQ(clients.metrics.connects.value(), 64U);
}

// P06: nothing is free while clients connect and call; new connections are accepted and small calls answered all the
// same.
TEST_F(Exhaustion, NothingIsFreeAtFirst) {
  std::vector<mem::Buf> hoard;
  host.call([&] {
    while (auto buf = host.pool.try_alloc(mem::kClassBytes[3], mem::Purpose::internal))
      hoard.push_back(*std::move(buf));
    return 0;
  });
  ASSERT_FALSE(hoard.empty());
  connect(10);
  int done = 0;
  Scope scope(*clients.reactor);
  clients.call([&] {
    scope.spawn(&put_everywhere, &channels, &clients.pool, kPayload, 3, 1, &done);
    return 0;
  });
  for (int i = 0; i < 20; ++i) {
    RawPeer peer = RawPeer::connect(address.port());
    ASSERT_TRUE(peer.send(hello_message()));
    ASSERT_TRUE(peer.receive());
    ASSERT_TRUE(
        peer.send(encode_message({.kind = Kind::request, .method = Echo::kId, .request_id = 1}, as_bytes(EchoBody{}))));
    const auto reply = peer.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.status, 0U);
  }
  EXPECT_EQ(clients.call([&] { return done; }), 0);
  host.call([&] {
    hoard.clear();
    return 0;
  });
  for (int i = 0; i < 20'000 && clients.call([&] { return scope.running(); }) > 0; ++i) ::usleep(1000);
  EXPECT_EQ(done, 30);
}

// Clients that die while their requests wait for memory leave nothing behind.
TEST_F(Exhaustion, ClientsDieWhileTheyWait) {
  const Bytes request =
      encode_message({.kind = Kind::request, .method = Put::kId, .request_id = 1}, {}, Bytes(kPayload));
  std::vector<RawPeer> peers;
  for (int i = 0; i < 40; ++i) {
    peers.push_back(RawPeer::connect(address.port()));
    ASSERT_TRUE(peers.back().send(hello_message()));
    ASSERT_TRUE(peers.back().receive());
    // All but the last byte: those that got memory hold it.
    ASSERT_TRUE(peers.back().send(std::span(request).first(request.size() - 1)));
  }
  for (size_t i = 0; i < peers.size(); ++i) i % 2 == 0 ? peers[i].reset() : peers[i].close();
  connect(1);
  int done = 0;
  clients.run(&put_everywhere, &channels, &clients.pool, kPayload, 5, 3, &done);
  EXPECT_EQ(done, 15);
}

// A reply lands in the memory that its caller has taken for it, when nothing else is free.
TEST_F(Exhaustion, RepliesLandInMemoryTakenBefore) {
  connect(1);
  clients.run(
      +[](Channel* channel, mem::Pool* pool) -> Task<void> {
        auto memory = co_await pool->alloc_chain(kPayload);
        const std::byte* const place = memory->slices().front().data();
        std::vector<mem::Buf> hoard;
        while (auto buf = pool->try_alloc(mem::kPage, mem::Purpose::internal)) hoard.push_back(*std::move(buf));
        for (const size_t size : {kPayload, kPayload / 2}) {
          CallOptions options;
          options.reply_memory = *memory;
          auto reply = co_await channel->call<Get>({.meta = {.bytes = static_cast<uint32_t>(size), .crc = 0}}, options);
          EXPECT_TRUE(reply) << reply.error().to_string();
          if (!reply) co_return;
          EXPECT_EQ(reply->data.size(), size);
          EXPECT_EQ(reply->data.slices().front().data(), place);
          EXPECT_EQ(crc_of(reply->data), reply->meta.crc);
        }
      },
      channels[0].get(), &clients.pool);
}

// Two nodes that are each other's clients: what each holds until the other has taken it is all that its clients may
// have.
class Neighbours : public ::testing::Test {
 protected:
  static constexpr size_t kMemory = size_t{4} << 20;
  struct Node {
    explicit Node(uint32_t index)
        : host(index, Mode::automatic, kMemory, kMemory / 4),
          server(*host.reactor, host.registry, host.pool, {}),
          methods(server),
          listener(*tcp::TcpListener::open(*host.tcp, server, Address::loopback(0))) {}
    Host host;
    Server server;
    Methods methods;
    std::unique_ptr<tcp::TcpListener> listener;
    std::unique_ptr<Channel> channel;  // to the other
  };

  Neighbours() {
    for (Node& node : nodes) node.host.start_thread();
    for (size_t i = 0; i < 2; ++i) {
      Node& node = nodes[i];
      const Address other = Address::loopback(nodes[1 - i].listener->port());
      node.host.call([&] {
        node.channel = std::make_unique<Channel>(*node.host.reactor, node.host.metrics,
                                                 std::make_unique<tcp::TcpConnector>(*node.host.tcp, other));
        return 0;
      });
    }
  }
  ~Neighbours() override {
    for (Node& node : nodes) node.host.run(&close, &node);
    for (Node& node : nodes) node.host.run(&stop, &node);
    for (Node& node : nodes) {
      node.host.call([&] {
        node.listener.reset();
        return 0;
      });
    }
    for (Node& node : nodes) node.host.stop_thread();
  }
  static Task<void> close(Node* node) {
    co_await node->channel->close();
    node->channel.reset();
  }
  static Task<void> stop(Node* node) {
    co_await node->listener->close();
    co_await node->server.drain(node->host.reactor->now() + milliseconds(100));
  }

  Node nodes[2] = {Node(0), Node(1)};
};

Task<void> upload(Channel* channel, mem::Pool* pool, int pieces, int* done) {
  for (int i = 0; i < pieces; ++i) {
    auto piece = co_await make_payload(pool, size_t{256} << 10);
    auto reply = co_await channel->call<Put>({.meta = {}, .data = *std::move(piece)},
                                             {.deadline = channel->loop().now() + seconds(60)});
    EXPECT_TRUE(reply) << reply.error().to_string();
    if (!reply) co_return;
    ++*done;
  }
}

TEST_F(Neighbours, DoNotWaitForEachOthersMemory) {
  constexpr int kUploads = 40;
  constexpr int kPieces = 20;
  int done[2] = {0, 0};
  std::unique_ptr<Scope> scopes[2];
  for (size_t i = 0; i < 2; ++i) {
    Node& node = nodes[i];
    scopes[i] = std::make_unique<Scope>(*node.host.reactor);
    node.host.call([&] {
      for (int k = 0; k < kUploads; ++k) {
        scopes[i]->spawn(&upload, node.channel.get(), &node.host.pool, kPieces, &done[i]);
      }
      return 0;
    });
  }
  for (size_t i = 0; i < 2; ++i) {
    nodes[i].host.run(+[](Scope* scope) -> Task<void> { co_await scope->join(); }, scopes[i].get());
    EXPECT_EQ(done[i], kUploads * kPieces);
  }
}

// More than the server will ever have: refused with the reason, not left to hang.
TEST_F(Exhaustion, OneRequestLargerThanAllMemory) {
  connect(1);
  clients.run(
      +[](Channel* channel, mem::Pool* pool) -> Task<void> {
        auto payload = co_await make_payload(pool, 3 << 20);
        auto reply = co_await channel->call<Put>({.meta = {}, .data = *payload});
        EXPECT_EQ(reply.code(), Errc::too_large);
        EXPECT_NE(reply.error().message().find("takes at most 1048576"), std::string::npos) << reply.error().message();
      },
      channels[0].get(), &clients.pool);
}

}  // namespace
}  // namespace cairn::srpc
