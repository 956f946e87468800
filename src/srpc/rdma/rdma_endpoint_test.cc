// Calls over RDMA between two threads: the whole of SRPC above queue pairs that are connected by hand.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "srpc/channel.h"
#include "srpc/rdma/rdma_poll_group.h"
#include "srpc/rdma/testing/fake_verbs.h"
#include "srpc/rdma/testing/rdma_pair.h"
#include "srpc/server.h"
#include "srpc/testing/host.h"
#include "srpc/testing/methods.h"

namespace cairn::srpc::rdma {
namespace {

using namespace testing;
using namespace srpc::testing;

class ByHand final : public Connector {
 public:
  ByHand(RdmaSide& client, RdmaSide& server, Server& to) : client_(client), server_(server), to_(to) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken) override {
    CO_TRY(auto ours, client_.group->prepare(Role::client));
    const QpAddress mine = ours->local();
    // The client's thread waits for the server's: a test may.
    CO_TRY(const QpAddress theirs, server_.host.call([&]() -> Result<QpAddress> {
      TRY(auto link, server_.group->prepare(Role::server));
      TRY(auto stream, link->connect(mine, "client"));
      to_.accept(server_.group->make_endpoint(std::move(stream)));
      return link->local();
    }));
    CO_TRY(auto stream, ours->connect(theirs, "server"));
    co_return client_.group->make_endpoint(std::move(stream));
  }
  const std::string& address() const override { return address_; }

 private:
  RdmaSide& client_;
  RdmaSide& server_;
  Server& to_;
  std::string address_ = "by hand";
};

class RdmaEndpoint : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client.open());
    ASSERT_TRUE(server.open());
    service = std::make_unique<Server>(*server_host.reactor, server_host.registry, server_host.pool, ServerOptions{});
    methods = std::make_unique<Methods>(*service);
    server_host.start_thread();
    client_host.start_thread();
    channel = make_channel();
  }
  void TearDown() override {
    drop(std::move(channel));
    server_host.run(
        +[](Server* it, Reactor* reactor) -> Task<void> { co_await it->drain(reactor->now() + milliseconds(100)); },
        service.get(), server_host.reactor);
    for (RdmaSide* side : {&client, &server}) {
      side->host.run(+[](RdmaPollGroup* it) -> Task<void> { co_await it->close(); }, side->group.get());
    }
    server_host.call([this] {
      service.reset();
      server.group.reset();
      return 0;
    });
    client_host.call([this] {
      client.group.reset();
      return 0;
    });
    client_host.stop_thread();
    server_host.stop_thread();
    client.rails.devices.clear();
    server.rails.devices.clear();
    EXPECT_EQ(client.verbs.objects().total(), 0);
    EXPECT_EQ(server.verbs.objects().total(), 0);
    for (const std::string& what : fabric.violations()) ADD_FAILURE() << what;
  }
  std::unique_ptr<Channel> make_channel() {
    return client_host.call([&] {
      return std::make_unique<Channel>(*client_host.reactor, client_host.metrics,
                                       std::make_unique<ByHand>(client, server, *service),
                                       ChannelOptions{.default_timeout = seconds(20)});
    });
  }
  void drop(std::unique_ptr<Channel> which) {
    client_host.run(+[](Channel* it) -> Task<void> { co_await it->close(); }, which.get());
    client_host.call([&] {
      which.reset();
      return 0;
    });
  }
  template <typename Condition>
  bool eventually(srpc::testing::Host& where, Condition condition) {
    for (int i = 0; i < 10'000; ++i) {
      if (where.call(condition)) return true;
      ::usleep(1000);
    }
    return false;
  }

  FakeFabric fabric;
  srpc::testing::Host client_host{0, GetParam()};
  srpc::testing::Host server_host{1, GetParam()};
  RdmaSide client{fabric, client_host, Role::client, {.name = "fake0", .address = "10.0.0.1"}};
  RdmaSide server{fabric, server_host, Role::server, {.name = "fake0", .address = "10.0.0.2"}};
  std::unique_ptr<Server> service;
  std::unique_ptr<Methods> methods;
  std::unique_ptr<Channel> channel;
};

Task<void> echo_one(Channel* channel, mem::Pool* pool, size_t size, int* good) {
  auto payload = co_await make_payload(pool, size);
  EXPECT_TRUE(payload);
  const uint32_t crc = crc_of(*payload);
  auto room = co_await pool->alloc_chain(std::max<size_t>(size, 1));
  EXPECT_TRUE(room);
  auto reply = co_await channel->call<Echo>({.meta = {size, 0}, .data = *std::move(payload)},
                                            {.reply_memory = *std::move(room)});
  EXPECT_TRUE(reply) << reply.error().to_string();
  if (reply && reply->data.size() == size && crc_of(reply->data) == crc) ++*good;
}

Task<void> echo_many(Channel* channel, mem::Pool* pool, std::vector<size_t> sizes, bool together, int* good) {
  Scope scope(channel->loop());
  for (const size_t size : sizes) {
    scope.spawn(&echo_one, channel, pool, size, good);
    if (!together) co_await scope.join();
  }
  co_await scope.join();
}

TEST_P(RdmaEndpoint, CallsOfAllSizes) {
  int good = 0;
  const std::vector<size_t> sizes = {0, 1, 64, 1000, 4095, 4096, 4097, 65536, 999'999, 1 << 20, (4 << 20) + 1};
  client_host.run(&echo_many, channel.get(), &client_host.pool, sizes, false, &good);
  EXPECT_EQ(good, static_cast<int>(sizes.size()));
  good = 0;
  client_host.run(&echo_many, channel.get(), &client_host.pool, std::vector<size_t>(300, 20'000), true, &good);
  EXPECT_EQ(good, 300);
  EXPECT_GT(server.metric("srpc_rdma_reads_total"), 300U);
  EXPECT_GT(server.metric("srpc_rdma_writes_total"), 300U);
  EXPECT_EQ(client.metric("srpc_rdma_reads_total"), 0U);
  EXPECT_EQ(fabric.rnr_waits(), 0U);
}

// Payload goes from one side's memory to the other's.
TEST_P(RdmaEndpoint, CopiesNoAlignedPayload) {
  int good = 0;
  client_host.run(&echo_many, channel.get(), &client_host.pool, std::vector<size_t>{4096, 65536, 1 << 20}, false,
                  &good);
  EXPECT_EQ(good, 3);
  EXPECT_EQ(client_host.pool.copied().value() + server_host.pool.copied().value(), 0U);
}

// The server's process dies with calls under way: they end, and everything comes back.
TEST_P(RdmaEndpoint, CallsEndWhenTheServerDies) {
  int good = 0;
  client_host.run(&echo_many, channel.get(), &client_host.pool, std::vector<size_t>{0}, false, &good);
  EXPECT_EQ(good, 1);
  const Errc outcome = client_host.run(
      +[](Channel* c, FakeHost* verbs) -> Task<Errc> {
        Scope scope(c->loop());
        int other = 0;
        verbs->kill();
        scope.spawn(+[](Channel* on, int*) -> Task<void> { (void)co_await on->call<Hang>({}); }, c, &other);
        const auto echo = co_await c->call<Echo>({.meta = {1, 0}}, {.deadline = c->loop().now() + seconds(2)});
        co_await scope.join();
        co_return echo.code();
      },
      channel.get(), &server.verbs);
  EXPECT_NE(outcome, Errc::ok);
}

// Connections that come and go leave nothing behind.
TEST_P(RdmaEndpoint, ComingAndGoing) {
  for (int i = 0; i < 50; ++i) {
    auto another = make_channel();
    int good = 0;
    client_host.run(&echo_many, another.get(), &client_host.pool, std::vector<size_t>{64, 8192}, true, &good);
    EXPECT_EQ(good, 2);
    drop(std::move(another));
  }
  // The one of the channel that is there all the time.
  EXPECT_TRUE(eventually(client_host, [&] { return client.verbs.objects().queue_pairs == 1; }));
  EXPECT_TRUE(eventually(server_host, [&] { return server.verbs.objects().queue_pairs == 1; }));
  EXPECT_LE(server.verbs.objects().completion_queues, 1);
  EXPECT_LE(server.verbs.objects().regions, 2);  // the arena, and a slab of slots
}

INSTANTIATE_TEST_SUITE_P(Modes, RdmaEndpoint, ::testing::Values(Mode::automatic, Mode::economy, Mode::performance),
                         [](const auto& info) {
                           return info.param == Mode::automatic ? "automatic"
                                  : info.param == Mode::economy ? "economy"
                                                                : "performance";
                         });

// Asleep, a reactor is woken by its completion channel and by nothing else.
class RdmaAsleep : public RdmaEndpoint {};

TEST_P(RdmaAsleep, CompletionsWake) {
  int good = 0;
  const auto events = [&] { return server_host.call([&] { return server.metric("srpc_rdma_events_total"); }); };
  client_host.run(&echo_many, channel.get(), &client_host.pool, std::vector<size_t>{0}, false, &good);
  const uint64_t before = events();
  client_host.run(&echo_many, channel.get(), &client_host.pool, std::vector<size_t>(100, 64), false, &good);
  EXPECT_EQ(good, 101);
  EXPECT_GT(events(), before);
}

INSTANTIATE_TEST_SUITE_P(Modes, RdmaAsleep, ::testing::Values(Mode::economy), [](const auto&) { return "economy"; });

}  // namespace
}  // namespace cairn::srpc::rdma
