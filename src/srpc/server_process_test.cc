// ReactorHost and ServerProcess: a server and clients as a program puts them together, and what a channel tells of its
// server.
#include "srpc/server_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <vector>

#include "reactor/listener.h"
#include "reactor/socket.h"
#include "srpc/testing/methods.h"

namespace cairn::srpc {
namespace {

using testing::Echo;
using testing::Methods;

std::unique_ptr<ReactorHost> make_host() {
  auto host = ReactorHost::create({.mode = Mode::economy, .wake_cost = microseconds(50), .memory = size_t{16} << 20});
  EXPECT_TRUE(host) << host.error().to_string();
  return *std::move(host);
}

class ServerProcessTest : public ::testing::Test {
 protected:
  static constexpr uint16_t kGroups = 2;

  std::unique_ptr<ServerProcess> start(Address at, bool shared_memory = true) {
    auto process = ServerProcess::start({.at = at,
                                         .poll_groups = kGroups,
                                         .mode = Mode::economy,
                                         .memory = size_t{16} << 20,
                                         .shared_memory = shared_memory},
                                        [this](Server& server, ReactorHost&) {
                                          methods.push_back(std::make_shared<Methods>(server));
                                          return methods.back();
                                        });
    if (!process) {
      error = std::move(process).error().to_string();
      return nullptr;
    }
    return *std::move(process);
  }

  std::vector<std::shared_ptr<Methods>> methods;
  std::string error;
};

struct Told {
  std::string transport;
  uint16_t poll_group = 0;
  uint16_t poll_groups = 0;
  uint16_t credits = 0;
  bool server_has_id = false;
  Errc echo = Errc::ok;
  Errc ping = Errc::ok;
};

Task<Told> talk(ReactorHost* host, Address to, Way way, uint16_t poll_group) {
  Channel channel(host->reactor(), host->metrics(), host->connector(to, way), {.poll_group = poll_group});
  Told told;
  told.echo = (co_await channel.call<Echo>({})).code();
  told.ping = (co_await channel.ping()).code();
  EXPECT_TRUE(channel.connected());
  if (channel.connected()) {
    told.transport = channel.transport();
    told.poll_group = channel.poll_group();
    told.poll_groups = channel.agreed().poll_groups;
    told.credits = channel.agreed().credits;
    told.server_has_id = channel.agreed().server_id != Id128{}.bytes;
  }
  co_await channel.close();
  co_return told;
}

TEST_F(ServerProcessTest, ServesEveryPollGroupByEveryWay) {
  const auto process = start(Address::loopback(0));
  ASSERT_NE(process, nullptr) << error;
  const auto host = make_host();
  struct Row {
    Way way;
    const char* transport;
  };
  for (const Row row : {Row{Way::tcp, "tcp"}, Row{Way::shm, "shm"}, Row{Way::near, "shm"}}) {
    for (uint16_t group = 0; group < kGroups; ++group) {
      const Told told = host->run(&talk, host.get(), process->address(), row.way, group);
      EXPECT_EQ(told.echo, Errc::ok);
      EXPECT_EQ(told.ping, Errc::ok);
      EXPECT_EQ(told.transport, row.transport);
      EXPECT_EQ(told.poll_group, group);
      EXPECT_EQ(told.poll_groups, kGroups);
      EXPECT_EQ(told.credits, ServerOptions{}.credits);
      EXPECT_TRUE(told.server_has_id);
    }
  }
  process->stop(seconds(5));
  EXPECT_EQ(methods[0]->echoes, 3U);
  EXPECT_EQ(methods[1]->echoes, 3U);
}

TEST_F(ServerProcessTest, WithoutSharedMemoryNearIsTcp) {
  const auto process = start(Address::loopback(0), false);
  ASSERT_NE(process, nullptr) << error;
  const auto host = make_host();
  EXPECT_EQ(host->run(&talk, host.get(), process->address(), Way::near, kAnyPollGroup).transport, "tcp");
}

TEST_F(ServerProcessTest, HostsWithThreadsTalkSideBySide) {
  const auto process = start(Address::loopback(0));
  ASSERT_NE(process, nullptr) << error;
  std::vector<std::unique_ptr<ReactorHost>> hosts;
  std::vector<std::future<Told>> told;
  for (uint16_t i = 0; i < 4; ++i) {
    hosts.push_back(make_host());
    hosts.back()->start("client");
    told.push_back(hosts.back()->begin(&talk, hosts.back().get(), process->address(), Way::near,
                                       static_cast<uint16_t>(i % kGroups)));
  }
  for (auto& future : told) EXPECT_EQ(future.get().echo, Errc::ok);
}

TEST_F(ServerProcessTest, APortInUseIsAnError) {
  const auto process = start(Address::loopback(0));
  ASSERT_NE(process, nullptr) << error;
  EXPECT_EQ(start(process->address()), nullptr);
  EXPECT_THAT(error, ::testing::StartsWith("busy: can't listen on 127.0.0.1:"));
}

struct Attempt {
  Errc outcome = Errc::ok;
  bool reached = false;
};

Task<Attempt> attempt(ReactorHost* host, Address to) {
  Channel channel(host->reactor(), host->metrics(), host->connector(to, Way::tcp));
  Attempt attempt;
  attempt.outcome = (co_await channel.wait_attempt()).code();
  attempt.reached = channel.reached_peer();
  EXPECT_EQ((co_await channel.ping()).code(), Errc::closed);
  co_await channel.close();
  EXPECT_EQ((co_await channel.wait_attempt()).code(), Errc::closed);
  co_return attempt;
}

TEST(ChannelAttempt, EndsWhereNobodyListens) {
  const auto port = HeldPort::take(Address::loopback(0));
  ASSERT_TRUE(port);
  const auto host = make_host();
  const Attempt made = host->run(&attempt, host.get(), port->address());
  EXPECT_EQ(made.outcome, Errc::unavailable);
  EXPECT_FALSE(made.reached);
}

TEST(ChannelAttempt, EndsWhereSomethingElseAnswers) {
  const auto port = HeldPort::take(Address::loopback(0));
  ASSERT_TRUE(port);
  const auto host = make_host();
  const auto other = make_host();
  other->start("other");
  auto listener = other->call([&] { return *Listener::open(other->reactor(), port->address(), {.reuse_port = true}); });
  auto answered = other->begin(
      +[](Listener* from) -> Task<bool> {
        auto socket = co_await from->accept();
        if (!socket) co_return false;
        static constexpr std::string_view kAnswer =
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        co_return (co_await socket->send_all(std::as_bytes(std::span(kAnswer)))).has_value();
      },
      &listener);
  const Attempt made = host->run(&attempt, host.get(), port->address());
  EXPECT_TRUE(answered.get());
  EXPECT_EQ(made.outcome, Errc::protocol_error);
  EXPECT_TRUE(made.reached);
  other->call([&] { listener.close(); });
}

// The connection goes while a ping is under way, and a cancelled ping leaves nothing behind.
Task<void> ping_and_lose(ReactorHost* host, Address to, ServerProcess* process, ReactorHost* stopper) {
  Channel channel(host->reactor(), host->metrics(), host->connector(to, Way::tcp));
  EXPECT_TRUE(co_await channel.wait_connected());
  CancelSource source;
  source.cancel();
  EXPECT_EQ((co_await channel.ping(source)).code(), Errc::cancelled);
  EXPECT_TRUE(co_await channel.ping());
  auto stopped = stopper->begin(
      +[](ServerProcess* stopping) -> Task<bool> {
        stopping->stop({});
        co_return true;
      },
      process);
  for (;;) {
    const auto pinged = co_await channel.ping();
    if (pinged) continue;
    EXPECT_EQ(pinged.error().code(), Errc::closed) << pinged.error().to_string();
    break;
  }
  EXPECT_TRUE(stopped.get());
  co_await channel.close();
}

TEST_F(ServerProcessTest, PingsEndWithTheConnection) {
  const auto process = start(Address::loopback(0));
  ASSERT_NE(process, nullptr) << error;
  const auto host = make_host();
  const auto stopper = make_host();
  stopper->start("stopper");
  host->run(&ping_and_lose, host.get(), process->address(), process.get(), stopper.get());
}

}  // namespace
}  // namespace cairn::srpc
