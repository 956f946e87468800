#include "srpc/inproc/local_endpoint.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/metrics.h"
#include "mem/pool.h"
#include "srpc/channel.h"
#include "srpc/inproc/local_connector.h"
#include "srpc/server.h"
#include "srpc/testing/manual_loop.h"

namespace cairn::srpc {
namespace {

struct EchoBody {
  Le64 number;
};
struct Echo {
  static constexpr MethodId kId{7};
  static constexpr std::string_view kName = "echo";
  using Request = EchoBody;
  using Reply = EchoBody;
};

Task<Result<Message<EchoBody>>> echo(CallContext&, Message<EchoBody> request) {
  co_return Message<EchoBody>{.meta = {request.meta.number.get() + 1}, .tail = {}, .data = std::move(request.data)};
}

struct World {
  World() : memory(std::make_unique<std::byte[]>(4 << 20)) {
    const auto at = (reinterpret_cast<uintptr_t>(memory.get()) + 4095) / 4096 * 4096;
    pool = std::make_unique<mem::Pool>(loop, registry, std::span(reinterpret_cast<std::byte*>(at), 3 << 20), 0);
    server = std::make_unique<Server>(loop, registry, *pool, ServerOptions{});
    server->register_method<Echo>(&echo);
  }
  ~World() {
    loop.run([](Server* s) -> Task<void> { co_await s->drain(s->loop().now() + seconds(1)); }, server.get());
  }

  testing::ManualLoop loop;
  Registry registry;
  ChannelMetrics metrics{registry};
  std::unique_ptr<std::byte[]> memory;
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<Server> server;
};

Task<Result<Message<EchoBody>>> call_echo(Channel* channel, uint64_t number, mem::BufChain data) {
  co_return co_await channel->call<Echo>({.meta = {number}, .tail = {}, .data = std::move(data)});
}

Task<void> close(Channel* channel) { co_await channel->close(); }

TEST(Inproc, EchoesByReference) {
  World world;
  Channel channel(world.loop, world.metrics, std::make_unique<inproc::LocalConnector>(*world.server));
  mem::Buf buf = *world.pool->try_alloc(8192);
  const std::byte* at = buf.data();
  auto reply = world.loop.run(&call_echo, &channel, uint64_t{41}, mem::BufChain(std::move(buf)));
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(reply->meta.number, 42U);
  EXPECT_EQ(reply->data.slices().front().data(), at);
  EXPECT_EQ(world.pool->copied().value(), 0U);
  world.loop.run(&close, &channel);
}

}  // namespace
}  // namespace cairn::srpc
