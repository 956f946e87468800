// A server of several poll groups as its clients see it: who is served where, that nothing crosses threads then, that
// one poll group or the whole process can stop while calls go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "reactor/scope.h"
#include "srpc/server_process.h"
#include "srpc/testing/methods.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr uint16_t kGroups = 4;

std::string way_name(const ::testing::TestParamInfo<Way>& info) { return info.param == Way::tcp ? "tcp" : "shm"; }

// Those of shared memory are all accepted by poll group 0, those of TCP by whichever the kernel picks.
class PollGroups : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    process = start(Address::loopback(0));
    ASSERT_NE(process, nullptr);
  }
  std::unique_ptr<ServerProcess> start(Address at) {
    auto started =
        ServerProcess::start({.at = at, .poll_groups = kGroups, .mode = Mode::economy, .memory = size_t{8} << 20},
                             [this](Server& server, ReactorHost&) {
                               methods.push_back(std::make_shared<Methods>(server));
                               return methods.back();
                             });
    EXPECT_TRUE(started) << started.error().to_string();
    return started ? *std::move(started) : nullptr;
  }
  static std::unique_ptr<ReactorHost> make_host(uint32_t index) {
    auto host = *ReactorHost::create(
        {.index = index, .mode = Mode::economy, .wake_cost = microseconds(50), .memory = size_t{8} << 20});
    host->start("client");
    return host;
  }
  std::unique_ptr<Channel> make_channel(ReactorHost& host, uint16_t poll_group) {
    return host.call([&] {
      return std::make_unique<Channel>(
          host.reactor(), host.metrics(), host.connector(process->address(), GetParam()),
          ChannelOptions{.poll_group = poll_group, .backoff_min = milliseconds(1), .backoff_max = milliseconds(20)});
    });
  }
  static void close(ReactorHost& host, std::unique_ptr<Channel>& channel) {
    host.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, channel.get());
    channel.reset();
  }
  int64_t served(size_t group) const {
    return process->host(group).registry().gauge("srpc_server_connections", "").value();
  }
  static void wait_until(const std::function<bool()>& done) {
    for (int i = 0; i < 10'000 && !done(); ++i) ::usleep(1000);
    EXPECT_TRUE(done());
  }

  std::vector<std::shared_ptr<Methods>> methods;
  std::unique_ptr<ServerProcess> process;
};
INSTANTIATE_TEST_SUITE_P(Ways, PollGroups, ::testing::Values(Way::tcp, Way::shm), &way_name);

Task<Result<Message<EchoBody>>> echo(Channel* channel, uint32_t delay_us, Duration within) {
  co_return co_await channel->call<Echo>({.meta = {1, delay_us}}, {.deadline = channel->loop().now() + within});
}

TEST_P(PollGroups, SpreadThoseWhoNamedNone) {
  constexpr size_t kClients = 40;
  const auto host = make_host(100);
  std::vector<std::unique_ptr<Channel>> channels;
  for (size_t i = 0; i < kClients; ++i) {
    channels.push_back(make_channel(*host, kAnyPollGroup));
    EXPECT_TRUE(host->run(&echo, channels.back().get(), 0U, seconds(30)));
  }
  // One at a time: only what is published a moment late may put a group ahead.
  for (uint16_t group = 0; group < kGroups; ++group) {
    EXPECT_NEAR(static_cast<double>(served(group)), double{kClients} / kGroups, 2) << "poll group " << group;
  }
  // Skewed: two poll groups lose all of theirs, and get those who come next.
  std::vector<std::unique_ptr<Channel>> left;
  for (auto& channel : channels) {
    const bool goes = host->call([&] { return channel->poll_group() < 2; });
    if (goes) {
      close(*host, channel);
    } else {
      left.push_back(std::move(channel));
    }
  }
  wait_until([&] { return served(0) == 0 && served(1) == 0; });
  for (size_t i = 0; i < 10; ++i) {
    left.push_back(make_channel(*host, kAnyPollGroup));
    EXPECT_TRUE(host->run(&echo, left.back().get(), 0U, seconds(30)));
    EXPECT_LT(host->call([&] { return left.back()->poll_group(); }), 2);
  }
  for (auto& channel : left) close(*host, channel);
}

// A burst is spread as well, although nobody has arrived yet when the next one is placed.
TEST_P(PollGroups, SpreadABurst) {
  constexpr size_t kClients = 40;
  const auto host = make_host(100);
  std::vector<std::unique_ptr<Channel>> channels;
  for (size_t i = 0; i < kClients; ++i) channels.push_back(make_channel(*host, kAnyPollGroup));
  for (auto& channel : channels) EXPECT_TRUE(host->run(&echo, channel.get(), 0U, seconds(30)));
  for (uint16_t group = 0; group < kGroups; ++group) EXPECT_GE(served(group), int64_t{kClients} / kGroups / 2);
  for (auto& channel : channels) close(*host, channel);
}

struct Barrier {
  std::atomic<size_t> arrived{0};
  static Task<void> wait(Barrier* barrier, Loop* loop, size_t all) {
    ++barrier->arrived;
    while (barrier->arrived < all) (void)co_await loop->sleep(milliseconds(1));
  }
};

struct Together {
  Together(const Address& address, Way by) : to(address), way(by) {}
  std::vector<ReactorHost*> hosts;  // all reactors of both sides
  const Address to;
  const Way way;
  Barrier connected, measured, done, compared;

  uint64_t hops() const {
    uint64_t sum = 0;
    for (ReactorHost* host : hosts) sum += host->reactor().hops().value();
    return sum;
  }
  static Task<uint64_t> calls(Together* all, ReactorHost* own, uint16_t group) {
    Channel channel(own->reactor(), own->metrics(), own->connector(all->to, all->way), {.poll_group = group});
    auto payload = co_await make_payload(&own->pool(), 5000);
    EXPECT_TRUE(co_await channel.call<Echo>({}));
    EXPECT_EQ(channel.poll_group(), group);
    co_await Barrier::wait(&all->connected, &own->reactor(), kGroups);
    const uint64_t before = all->hops();
    co_await Barrier::wait(&all->measured, &own->reactor(), kGroups);
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(co_await channel.call<Echo>({.data = *payload}));
    co_await Barrier::wait(&all->done, &own->reactor(), kGroups);
    const uint64_t after = all->hops();
    co_await Barrier::wait(&all->compared, &own->reactor(), kGroups);
    co_await channel.close();
    co_return after - before;
  }
};

// One client process with four threads, each with a channel to a poll group of its own.
TEST_P(PollGroups, FourThreadsNeverCross) {
  std::vector<std::unique_ptr<ReactorHost>> clients;
  Together all(process->address(), GetParam());
  for (uint16_t i = 0; i < kGroups; ++i) {
    clients.push_back(make_host(100U + i));
    all.hosts.push_back(clients.back().get());
    all.hosts.push_back(&process->host(i));
  }
  std::vector<std::future<uint64_t>> hops;
  for (uint16_t i = 0; i < kGroups; ++i) hops.push_back(clients[i]->begin(&Together::calls, &all, clients[i].get(), i));
  for (auto& each : hops) EXPECT_EQ(each.get(), 0U);
}

// --- Stopping ---

TEST_P(PollGroups, OneStopsWhileTheOthersGoOn) {
  const auto host = make_host(100);
  auto named = make_channel(*host, 1);
  auto other = make_channel(*host, 2);
  // One that named none and is served by poll group 1.
  std::vector<std::unique_ptr<Channel>> free;
  do {
    free.push_back(make_channel(*host, kAnyPollGroup));
    EXPECT_TRUE(host->run(&echo, free.back().get(), 0U, seconds(30)));
  } while (host->call([&] { return free.back()->poll_group(); }) != 1 && free.size() < 20);
  EXPECT_TRUE(host->run(&echo, other.get(), 0U, seconds(30)));
  EXPECT_TRUE(host->run(&echo, named.get(), 0U, seconds(30)));
  const uint64_t connects = host->metrics().connects.value();

  auto under_way = host->begin(&echo, named.get(), 100'000U, seconds(30));
  auto under_way_too = host->begin(&echo, free.back().get(), 100'000U, seconds(30));
  wait_until([&] { return process->host(1).registry().gauge("srpc_server_calls_running", "").value() == 2; });
  process->drain(1, seconds(20));
  EXPECT_TRUE(under_way.get());
  EXPECT_TRUE(under_way_too.get());

  // Who named none comes back to another one, also if it is poll group 1 that accepts him.
  for (auto& channel : free) {
    EXPECT_TRUE(host->run(&echo, channel.get(), 0U, seconds(30)));
    EXPECT_NE(host->call([&] { return channel->poll_group(); }), 1);
  }
  for (int i = 0; i < 20; ++i) {
    free.push_back(make_channel(*host, kAnyPollGroup));
    EXPECT_TRUE(host->run(&echo, free.back().get(), 0U, seconds(30)));
    EXPECT_NE(host->call([&] { return free.back()->poll_group(); }), 1);
  }
  // Who named it waits, and hears why.
  const auto refused = host->run(&echo, named.get(), 0U, milliseconds(200));
  EXPECT_EQ(refused.code(), Errc::timed_out);
  EXPECT_NE(refused.error().message().find("this poll group is stopping"), std::string::npos)
      << refused.error().message();
  // The others noticed nothing.
  EXPECT_TRUE(host->run(&echo, other.get(), 0U, seconds(30)));
  EXPECT_EQ(host->metrics().closed[static_cast<size_t>(CloseReason::connection_lost)]->value(), 0U);
  EXPECT_GT(host->metrics().connects.value(), connects);
  close(*host, named);
  close(*host, other);
  for (auto& channel : free) close(*host, channel);
}

// At the end of its grace what doesn't end is cancelled.
TEST_P(PollGroups, OneStopsAlsoIfItsCallsDoNotEnd) {
  const auto host = make_host(100);
  auto channel = make_channel(*host, 3);
  auto hangs = host->begin(
      +[](Channel* c) -> Task<Errc> {
        co_return (co_await c->call<Hang>({}, {.deadline = c->loop().now() + seconds(20)})).code();
      },
      channel.get());
  wait_until([&] { return process->host(3).registry().gauge("srpc_server_calls_running", "").value() == 1; });
  process->drain(3, milliseconds(50));
  EXPECT_NE(hangs.get(), Errc::ok);
  EXPECT_EQ(process->host(3).registry().gauge("srpc_server_calls_running", "").value(), 0);
  close(*host, channel);
}

struct Load {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> answered{0};
  std::atomic<uint64_t> failed{0};
};

Task<void> one_after_the_other(Load* load, Channel* channel) {
  while (!load->stop) {
    auto reply = co_await channel->call<Again>({.meta = {1, 300}}, {.deadline = channel->loop().now() + seconds(60)});
    ++(reply ? load->answered : load->failed);
    if (!reply) ADD_FAILURE() << reply.error().to_string();
  }
}

Task<void> keep_calling(Load* load, std::vector<Channel*> channels) {
  Scope scope(channels.front()->loop());
  for (Channel* channel : channels) {
    for (int i = 0; i < 8; ++i) scope.spawn(&one_after_the_other, load, channel);
  }
  co_await scope.join();
}

// Poll group by poll group, then as a whole, and back again, under load: calls that may be repeated don't fail.
TEST_P(PollGroups, NoRepeatableCallFailsWhenTheProcessIsReplaced) {
  const auto host = make_host(100);
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<Channel*> pointers;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(make_channel(*host, kAnyPollGroup));
    pointers.push_back(channels.back().get());
  }
  Load load;
  auto calling = host->begin(&keep_calling, &load, pointers);
  const auto some_more = [&] {
    const uint64_t before = load.answered;
    wait_until([&] { return load.answered > before + 100 || load.failed > 0; });
  };
  some_more();
  for (int life = 0; life < 3; ++life) {
    for (size_t group = 0; group < kGroups - 1; ++group) {
      process->drain(group, seconds(20));
      some_more();
    }
    const Address at = process->address();
    process->stop(seconds(20));
    process.reset();
    process = start(at);
    ASSERT_NE(process, nullptr);
    some_more();
  }
  load.stop = true;
  calling.get();
  EXPECT_EQ(load.failed, 0U);
  for (auto& channel : channels) close(*host, channel);
}

}  // namespace
}  // namespace cairn::srpc
