// Answers to reads, over a transport that copies: they land in memory that was taken before they were asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "client/srpc_client.h"
#include "replica/methods.h"
#include "srpc/server.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"

namespace cairn::client {
namespace {

namespace methods = replica::methods;

constexpr uint32_t kLength = 200'000;

// Answers reads with what was asked for, or with too much.
class Reads {
 public:
  explicit Reads(srpc::Server& server) { server.register_method<methods::ChunkRead>(*this, &Reads::read); }

  uint32_t excess = 0;  // set while nobody asks

 private:
  Task<Result<srpc::Message<srpc::None>>> read(srpc::CallContext& context,
                                               srpc::Message<methods::ChunkReadRequest> request) {
    CO_TRY(auto data, co_await context.pool.alloc_chain(request.meta.length + excess, mem::Purpose::client));
    for (const mem::Buf& slice : data.slices()) {
      mem::Buf writable = slice;
      std::fill_n(writable.writable(), writable.size(), std::byte{'x'});
    }
    co_return srpc::Message<srpc::None>{.meta = {}, .data = std::move(data)};
  }
};

class ReplyMemory : public ::testing::Test, SrpcClient::Connectors {
 protected:
  ReplyMemory() {
    node.start_thread();
    client = std::make_unique<SrpcClient>(
        SrpcClient::Context{
            .loop = *own.reactor, .registry = own.registry, .pool = own.pool, .connectors = *this, .client_id = {}},
        *control::make_single_node_map(Id128{{9}}, {.id = Id128{{1}}, .name = "node", .address = "", .poll_groups = 1},
                                       {{.id = Id128{{2}}, .node = Id128{{1}}, .shards = 1}}, 1));
  }
  ~ReplyMemory() override {
    own.run(&SrpcClient::close, client.get());
    node.run(&stop, this);
    node.call([this] {
      listener.reset();
      return 0;
    });
    node.stop_thread();
  }
  static Task<void> stop(ReplyMemory* self) {
    co_await self->listener->close();
    co_await self->server.drain(self->node.reactor->now());
  }
  std::unique_ptr<srpc::Connector> make(const control::NodeEntry&, uint16_t) override {
    return std::make_unique<srpc::tcp::TcpConnector>(*own.tcp, Address::loopback(listener->port()));
  }

  using Read = std::optional<Result<mem::BufChain>>;
  static Task<void> read(ReplyMemory* self, Read* result) {
    const CallContext context{.deadline = self->own.reactor->now() + seconds(20)};
    result->emplace(co_await self->client->chunk_read(engine::ChunkId{}, 0, kLength, context));
  }
  // Everything that is free when the read has begun is taken, so that its answer finds nothing else.
  static Task<void> read_with_nothing_free(ReplyMemory* self, Read* result) {
    mem::Pool& pool = self->own.pool;
    Scope scope(*self->own.reactor);
    scope.spawn(&ReplyMemory::read, self, result);
    // A round begins the read; to connect and to be answered takes many.
    co_await self->own.reactor->yield();
    EXPECT_LE(pool.free_bytes() + kLength, pool.total_bytes()) << "it asks before it has memory for the answer";
    std::vector<mem::Buf> hoard;
    while (auto buf = pool.try_alloc(mem::kPage, mem::Purpose::internal)) hoard.push_back(*std::move(buf));
    co_await scope.join();
  }

  srpc::testing::Host own{0, Mode::economy, size_t{4} << 20};
  srpc::testing::Host node{1, Mode::economy, size_t{4} << 20};
  srpc::Server server{*node.reactor, node.registry, node.pool, {}};
  Reads reads{server};
  std::unique_ptr<srpc::tcp::TcpListener> listener =
      *srpc::tcp::TcpListener::open(*node.tcp, server, Address::loopback(0));
  std::unique_ptr<SrpcClient> client;
};

TEST_F(ReplyMemory, IsTakenBeforeItIsAskedFor) {
  Read result;
  own.run(&read_with_nothing_free, this, &result);
  ASSERT_TRUE(*result) << result->error().to_string();
  EXPECT_EQ((*result)->size(), kLength);
  (*result)->for_each([](std::span<const std::byte> bytes) {
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{'x'}; }));
  });
  result.reset();
  EXPECT_EQ(own.pool.free_bytes(), own.pool.total_bytes());
}

TEST_F(ReplyMemory, AnAnswerWithMoreThanAskedForIsRefused) {
  reads.excess = 1;
  Read result;
  own.run(&read, this, &result);
  EXPECT_EQ(result->code(), Errc::protocol_error);
  EXPECT_EQ(own.pool.free_bytes(), own.pool.total_bytes());
}

}  // namespace
}  // namespace cairn::client
