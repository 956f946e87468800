// TCP connections that go over to RDMA while calls go on, and everything that keeps them from it: no call notices, what
// failed is counted and tried again. Over the fake devices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "srpc/channel.h"
#include "srpc/rdma/testing/fake_verbs.h"
#include "srpc/rdma/upgrades.h"
#include "srpc/server.h"
#include "srpc/server_process.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc::rdma {
namespace {

using namespace srpc::testing;
using testing::FakeDevice;
using testing::FakeFabric;
using testing::FakeHost;

// Short enough for a test, long enough to be seen.
constexpr UpgradeOptions kSoon = {.retry = {.first = milliseconds(30), .most = milliseconds(200)},
                                  .proof_timeout = seconds(5)};

// One process: its devices, and a reactor on a thread of its own.
struct Process {
  Process(FakeFabric& fabric, uint32_t index, UpgradeOptions upgrades, size_t devices = 1, bool with_rdma = true)
      : verbs(fabric.add_host()) {
    for (size_t i = 0; i < devices; ++i) {
      rails.push_back(
          &verbs.add_device({.name = fmt::format("fake{}", i), .address = fmt::format("10.0.{}.{}", i, index + 1)}));
    }
    base = verbs.objects().total();
    open(index, upgrades, with_rdma);
  }
  void open(uint32_t index, UpgradeOptions upgrades, bool with_rdma) {
    std::optional<RdmaOptions> options;
    if (with_rdma) options = RdmaOptions{.verbs = &verbs, .upgrades = upgrades};
    host = std::make_unique<Host>(index, Mode::automatic, size_t{16} << 20, 0, std::move(options));
    idle = verbs.objects().total();
  }
  uint64_t metric(std::string_view name, const std::string& labels = "") {
    return host->registry.counter(name, "", labels).value();
  }
  uint64_t fallbacks(std::string_view reason) {
    return metric("srpc_rdma_fallbacks_total", fmt::format("reason=\"{}\"", reason));
  }
  int64_t connections(std::string_view transport) {
    return host->registry.gauge("srpc_upgradable_connections", "", fmt::format("transport=\"{}\"", transport)).value();
  }

  FakeHost& verbs;
  std::vector<FakeDevice*> rails;
  std::unique_ptr<Host> host;
  int base = 0;
  int idle = 0;  // objects of verbs without a connection
};

class UpgradeTest : public ::testing::Test {
 protected:
  void start(UpgradeOptions upgrades = kSoon, size_t devices = 1, bool client_rdma = true, bool server_rdma = true) {
    client = std::make_unique<Process>(fabric, 0, upgrades, devices, client_rdma);
    there = std::make_unique<Process>(fabric, 1, upgrades, devices, server_rdma);
    serve();
  }
  void serve() {
    server = std::make_unique<Server>(*there->host->reactor, there->host->registry, there->host->pool, ServerOptions{});
    methods = std::make_unique<Methods>(*server);
    listener = std::move(*tcp::TcpListener::open(*there->host->tcp, *server, Address::loopback(0)));
    address = Address::loopback(listener->port());
    there->host->start_thread();
    client->host->start_thread();
  }
  void TearDown() override {
    while (!channels.empty()) close(*channels.back());
    there->host->run(&stop, this);
    there->host->call([this] {
      listener.reset();
      server.reset();
      methods.reset();
      return 0;
    });
    client.reset();
    there.reset();
    EXPECT_EQ(fabric.violations(), std::vector<std::string>());
  }
  static Task<void> stop(UpgradeTest* self) {
    co_await self->listener->close();
    co_await self->server->drain(self->there->host->reactor->now() + milliseconds(200));
  }

  Channel& connect(tcp::Upgrade upgrade = tcp::Upgrade::if_possible, ChannelOptions options = {}) {
    return client->host->call([&]() -> std::reference_wrapper<Channel> {
      channels.push_back(std::make_unique<Channel>(
          *client->host->reactor, client->host->metrics,
          std::make_unique<tcp::TcpConnector>(*client->host->tcp, address, upgrade), options));
      return *channels.back();
    });
  }
  void close(Channel& channel) {
    client->host->run(+[](Channel* c) -> Task<void> { co_await c->close(); }, &channel);
    client->host->call([&] {
      std::erase_if(channels, [&](const auto& owned) { return owned.get() == &channel; });
      return 0;
    });
  }
  // Echo calls one after the other, of different sizes; all must be right. How many failed.
  static Task<int> echo(Channel* channel, mem::Pool* pool, int count, size_t largest) {
    int failed = 0;
    for (int i = 0; i < count; ++i) {
      const size_t size = largest == 0 ? 0 : static_cast<size_t>(i) * 7919 % (largest + 1);
      mem::BufChain payload;
      if (size > 0) payload = *co_await make_payload(pool, size);
      const uint32_t crc = crc_of(payload);
      auto reply = co_await channel->call<Echo>(
          {.meta = {.number = static_cast<uint64_t>(i), .delay_us = 0}, .tail = {}, .data = std::move(payload)});
      const bool right = reply && reply->meta.number == static_cast<uint64_t>(i) + 1 && reply->data.size() == size &&
                         crc_of(reply->data) == crc;
      EXPECT_TRUE(reply) << reply.error().to_string();
      EXPECT_EQ(right, reply.has_value());
      if (!right) ++failed;
    }
    co_return failed;
  }
  static Task<void> add_failures(Channel* channel, mem::Pool* pool, int count, int* failed) {
    *failed += co_await echo(channel, pool, count, 60'000);
  }
  static Task<void> many_echoes(Channel* channel, mem::Pool* pool, int* failed) {
    Scope scope(channel->loop());
    for (int i = 0; i < 32; ++i) scope.spawn(&add_failures, channel, pool, 20, failed);
    co_await scope.join();
  }
  int echo(Channel& channel, int count, size_t largest = 0) {
    return client->host->run(
        +[](Channel* c, mem::Pool* p, int n, size_t l) { return echo(c, p, n, l); }, &channel, &client->host->pool,
        count, largest);
  }
  // The longest that anything should take, ten times over.
  static constexpr int kTries = 60'000;
  static Task<bool> until(Channel* channel, std::string_view transport) {
    for (int i = 0; i < kTries; ++i) {
      if (channel->connected() && channel->transport() == transport) co_return true;
      (void)co_await channel->loop().sleep(microseconds(500), {});
    }
    co_return false;
  }
  void wait_for(Channel& channel, std::string_view transport) {
    EXPECT_TRUE(client->host->run(&until, &channel, transport)) << "never over " << transport;
  }
  void wait_connected(Channel& channel) {
    client->host->run(
        +[](Channel* c) -> Task<void> {
          auto connected = co_await c->wait_connected();
          EXPECT_TRUE(connected);
        },
        &channel);
  }
  std::string transport(Channel& channel) {
    return client->host->call([&] { return std::string(channel.connected() ? channel.transport() : "none"); });
  }
  template <typename Condition>
  static void wait_until(Condition condition) {
    for (int i = 0; i < kTries / 2 && !condition(); ++i) ::usleep(1000);
    EXPECT_TRUE(condition());
  }

  FakeFabric fabric;
  std::unique_ptr<Process> client;
  std::unique_ptr<Process> there;  // where the server is
  std::unique_ptr<Server> server;
  std::unique_ptr<Methods> methods;
  std::unique_ptr<tcp::TcpListener> listener;
  Address address;
  std::vector<std::unique_ptr<Channel>> channels;
};

// --- It works ---

TEST_F(UpgradeTest, CallsGoOnWhileItChanges) {
  start();
  for (int round = 0; round < 20; ++round) {
    Channel& channel = connect();
    int failed = 0;
    client->host->run(&many_echoes, &channel, &client->host->pool, &failed);
    EXPECT_EQ(failed, 0);
    wait_for(channel, "rdma");
    EXPECT_EQ(echo(channel, 50, 300'000), 0);
    close(channel);
  }
  EXPECT_EQ(client->host->metrics.connects.value(), 20U);  // none was lost
  EXPECT_EQ(client->connections("rdma") + client->connections("tcp"), 0);
}

TEST_F(UpgradeTest, IsCountedByWhatCarriesIt) {
  start();
  Channel& upgraded = connect();
  wait_for(upgraded, "rdma");
  Channel& plain = connect(tcp::Upgrade::no);
  EXPECT_EQ(echo(plain, 100, 10'000), 0);
  EXPECT_EQ(transport(plain), "tcp");
  EXPECT_EQ(client->connections("rdma"), 1);
  EXPECT_EQ(client->connections("tcp"), 0);  // the other one can't
  wait_until([&] { return there->connections("rdma") == 1; });
  EXPECT_EQ(there->connections("tcp"), 0);
  close(upgraded);
  EXPECT_EQ(client->connections("rdma"), 0);
  wait_until([&] { return there->connections("rdma") == 0; });
}

TEST_F(UpgradeTest, SidesWithoutRdmaStayWithTcp) {
  for (const auto& [client_has, server_has] :
       {std::pair(false, true), std::pair(true, false), std::pair(false, false)}) {
    start(kSoon, 1, client_has, server_has);
    Channel& channel = connect();
    EXPECT_EQ(echo(channel, 300, 50'000), 0);
    EXPECT_EQ(transport(channel), "tcp");
    EXPECT_EQ(client->host->call([&] { return channel.features() & kFeatureRdma; }), 0U);
    if (server_has || client_has) TearDown();
  }
}

// --- P02: whatever fails, at whichever end ---

struct FailingVerb {
  Verb verb;
  int error;
  bool at_server;
};
class FailingVerbs : public UpgradeTest, public ::testing::WithParamInterface<FailingVerb> {};

std::vector<FailingVerb> failing_verbs() {
  std::vector<FailingVerb> cases;
  for (const bool at_server : {false, true}) {
    for (const Verb verb :
         {Verb::create_comp_channel, Verb::create_cq, Verb::req_notify_cq, Verb::create_qp, Verb::reg_mr,
          Verb::modify_qp_init, Verb::modify_qp_rtr, Verb::modify_qp_rts, Verb::post_recv}) {
      for (const int error : {ENOMEM, EINVAL}) cases.push_back({verb, error, at_server});
    }
  }
  return cases;
}
std::string name_of_case(const ::testing::TestParamInfo<FailingVerb>& info) {
  std::string name =
      fmt::format("{}_{}_{}", verb_name(info.param.verb), info.param.error == ENOMEM ? "ENOMEM" : "EINVAL",
                  info.param.at_server ? "server" : "client");
  std::erase_if(name, [](char c) { return c == '(' || c == ')'; });
  return name;
}
INSTANTIATE_TEST_SUITE_P(P02, FailingVerbs, ::testing::ValuesIn(failing_verbs()), &name_of_case);

TEST_P(FailingVerbs, LeaveTheConnectionOnTcpAndAreTriedAgain) {
  start({.retry = {.first = milliseconds(300), .most = seconds(1)}});
  Process& bad = GetParam().at_server ? *there : *client;
  bad.verbs.fail_call(1, GetParam().error, GetParam().verb);
  Channel& channel = connect();
  EXPECT_EQ(echo(channel, 1000), 0);
  wait_until([&] { return bad.verbs.failed_call(); });
  EXPECT_EQ(echo(channel, 10, 100'000), 0);
  wait_until([&] { return bad.fallbacks(verb_name(GetParam().verb)) == 1; });
  wait_for(channel, "rdma");
  EXPECT_EQ(echo(channel, 100, 100'000), 0);
  EXPECT_EQ(client->host->metrics.connects.value(), 1U);  // all on one connection
  EXPECT_EQ(client->host->metrics.errors.value(), 0U);
}

// Those that the device needs once: the process starts, and stays with TCP.
TEST_F(UpgradeTest, ADeviceThatDoesNotOpen) {
  for (const Verb verb :
       {Verb::get_device_list, Verb::open_device, Verb::query_device, Verb::query_port, Verb::alloc_pd, Verb::reg_mr}) {
    SCOPED_TRACE(verb_name(verb));
    client = std::make_unique<Process>(fabric, 0, kSoon);
    there = std::make_unique<Process>(fabric, 1, kSoon, 1, false);
    there->verbs.fail_call(1, ENOMEM, verb);
    there->open(1, kSoon, true);
    EXPECT_TRUE(there->verbs.failed_call());
    serve();
    Channel& channel = connect();
    EXPECT_EQ(echo(channel, 1000), 0);
    wait_until([&] { return there->fallbacks(verb_name(verb)) >= 1 && client->fallbacks("peer") >= 1; });
    EXPECT_EQ(transport(channel), "tcp");
    if (verb != Verb::reg_mr) TearDown();
  }
}

// Queue pairs come up without a packet; only the proof shows that nothing gets through.
TEST_F(UpgradeTest, AWayThatIsClosedToRdma) {
  start({.retry = {.first = milliseconds(50), .most = milliseconds(50)}, .proof_timeout = milliseconds(20)});
  fabric.hold();
  Channel& channel = connect();
  EXPECT_EQ(echo(channel, 1000), 0);
  wait_until([&] { return client->fallbacks("no_way") >= 2 && there->fallbacks("peer") >= 2; });
  EXPECT_EQ(transport(channel), "tcp");
  fabric.release();
  wait_for(channel, "rdma");
  EXPECT_EQ(echo(channel, 100, 100'000), 0);
  EXPECT_EQ(client->host->metrics.connects.value(), 1U);
}

// --- P03: who starts first ---

TEST_F(UpgradeTest, RdmaMayOpenLaterThanTcp) {
  for (const bool server_late : {true, false}) {
    SCOPED_TRACE(server_late);
    start();
    Process& late = server_late ? *there : *client;
    RdmaPollGroup* group = late.host->call([&] {
      RdmaPollGroup* opened = late.host->upgrades->group();
      late.host->upgrades->close("not open yet");
      return opened;
    });
    std::vector<Channel*> early;
    for (int i = 0; i < 8; ++i) early.push_back(&connect());
    for (Channel* channel : early) EXPECT_EQ(echo(*channel, 20, 1 << 20), 0);
    wait_until([&] { return client->fallbacks(server_late ? "peer" : "unavailable") >= 8; });
    for (Channel* channel : early) EXPECT_EQ(transport(*channel), "tcp");
    late.host->call([&] {
      late.host->upgrades->open(*group);
      return 0;
    });
    for (Channel* channel : early) {
      wait_for(*channel, "rdma");
      EXPECT_EQ(echo(*channel, 20, 1 << 20), 0);
    }
    EXPECT_EQ(client->host->metrics.connects.value(), 8U);
    if (server_late) TearDown();
  }
}

// --- P04: connecting and disconnecting ---

TEST_F(UpgradeTest, ConnectionsThatComeAndGoLeaveNothing) {
  start();
  for (int i = 0; i < 150; ++i) {
    Channel& channel = connect();
    if (i % 3 == 0) {
      wait_connected(channel);  // closed in the middle of the upgrade, more or less
    } else {
      wait_for(channel, "rdma");
      if (i % 3 == 1) EXPECT_EQ(echo(channel, 3, 50'000), 0);
    }
    if (i % 10 == 9) {
      there->host->call([&] {
        server->close_connections({CloseReason::refused, "a test"});
        return 0;
      });
    }
    close(channel);
  }
  // One rail is in use now: its completion queue stays.
  const auto settled = [](Process& process) {
    const auto objects = process.verbs.objects();
    return objects.queue_pairs == 0 && process.connections("rdma") + process.connections("tcp") == 0;
  };
  wait_until([&] { return settled(*client) && settled(*there); });
  const int objects = there->verbs.objects().total();
  Channel& channel = connect();
  wait_for(channel, "rdma");
  EXPECT_EQ(echo(channel, 100, 50'000), 0);
  close(channel);
  wait_until([&] { return settled(*client) && settled(*there); });
  EXPECT_EQ(there->verbs.objects().total(), objects);
}

TEST_F(UpgradeTest, AServerThatStopsUnderLoad) {
  start();
  std::vector<Channel*> all;
  for (int i = 0; i < 40; ++i) all.push_back(&connect());
  for (Channel* channel : all) wait_for(*channel, "rdma");
  int ended = 0;
  auto scope = std::make_unique<Scope>(*client->host->reactor);
  client->host->call([&] {
    for (Channel* channel : all) {
      scope->spawn(
          +[](Channel* c, int* n) -> Task<void> {
            for (int k = 0; k < 10; ++k) {
              (void)co_await c->call<Echo>({.meta = {.number = 1, .delay_us = 300}},
                                           {.deadline = c->loop().now() + milliseconds(500)});
            }
            ++*n;
          },
          channel, &ended);
    }
    return 0;
  });
  there->host->run(&stop, this);
  client->host->run(+[](Scope* s) -> Task<void> { co_await s->join(); }, scope.get());
  EXPECT_EQ(ended, 40);
  wait_until([&] { return there->verbs.objects().queue_pairs == 0; });
  client->host->call([&] {
    scope.reset();
    return 0;
  });
}

// --- P07: links that break ---

Task<void> again_and_again(Channel* channel, mem::Pool* pool, const bool* stop, uint64_t* done, uint64_t* wrong) {
  for (uint64_t i = 0; !*stop; ++i) {
    auto payload = co_await make_payload(pool, 4096 + i * 517 % 20'000);
    const uint32_t crc = crc_of(*payload);
    auto reply = co_await channel->call<Again>({.meta = {.number = i, .delay_us = 0}, .tail = {}, .data = *payload});
    if (!reply || reply->meta.number != i + 1 || crc_of(reply->data) != crc) ++*wrong;
    ++*done;
  }
}

class FlappingLink : public UpgradeTest {
 protected:
  void run_load() {
    scope = std::make_unique<Scope>(*client->host->reactor);
    client->host->call([&] {
      for (int i = 0; i < 16; ++i) {
        scope->spawn(&again_and_again, channels.back().get(), &client->host->pool, &stop_load, &done, &wrong);
      }
      return 0;
    });
  }
  void end_load() {
    client->host->call([&] {
      stop_load = true;
      return 0;
    });
    client->host->run(+[](Scope* s) -> Task<void> { co_await s->join(); }, scope.get());
    client->host->call([&] {
      scope.reset();
      return 0;
    });
  }
  uint64_t calls() {
    return client->host->call([&] { return done; });
  }
  void wait_for_calls(uint64_t more) {
    const uint64_t before = calls();
    wait_until([&] { return calls() >= before + more; });
  }
  std::unique_ptr<Scope> scope;
  bool stop_load = false;
  uint64_t done = 0;
  uint64_t wrong = 0;
};

TEST_F(FlappingLink, ComesBackByItself) {
  // A link that lived shorter than the first wait isn't tried again at once.
  start({.retry = {.first = microseconds(1), .most = milliseconds(20)}});
  Channel& channel = connect();
  wait_for(channel, "rdma");
  run_load();
  for (int flap = 0; flap < 10; ++flap) {
    wait_for_calls(200);
    Process& side = flap % 2 == 0 ? *client : *there;
    side.verbs.set_port(*side.rails[0], PortState::down);
    side.verbs.give_up(*side.rails[0]);
    wait_for_calls(200);  // over TCP
    EXPECT_EQ(transport(channel), "tcp");
    side.verbs.set_port(*side.rails[0], PortState::active);
    wait_for(channel, "rdma");
  }
  wait_for_calls(200);
  end_load();
  EXPECT_EQ(wrong, 0U);
  // One end may hear of the loss from the other.
  EXPECT_GE(client->metric("srpc_rdma_links_lost_total") + there->metric("srpc_rdma_links_lost_total"), 10U);
}

TEST_F(FlappingLink, OneOfTwoRailsIsEnough) {
  start({.retry = {.first = microseconds(1), .most = milliseconds(20)}}, 2);
  Channel& channel = connect();
  wait_for(channel, "rdma");
  run_load();
  for (int flap = 0; flap < 6; ++flap) {
    wait_for_calls(200);
    const auto rail = static_cast<size_t>(flap % 2);
    for (Process* side : {client.get(), there.get()}) side->verbs.set_port(*side->rails[rail], PortState::down);
    for (Process* side : {client.get(), there.get()}) side->verbs.give_up(*side->rails[rail]);
    wait_for(channel, "rdma");
    wait_for_calls(200);
    EXPECT_EQ(transport(channel), "rdma");
    for (Process* side : {client.get(), there.get()}) side->verbs.set_port(*side->rails[rail], PortState::active);
  }
  end_load();
  EXPECT_EQ(wrong, 0U);
}

// RDMA doesn't tell when a process dies. The TCP connection beside it does.
TEST_F(UpgradeTest, AProcessThatDies) {
  start();
  Channel& channel = connect();
  wait_for(channel, "rdma");
  // As the server's process would: its queue pairs fall silent, its sockets close.
  auto peer = client->host->call([&] { return channel.peer(); });
  there->verbs.kill();
  const uint64_t connects = client->host->metrics.connects.value();
  there->host->call([&] {
    server->close_connections({CloseReason::refused, "dead"});
    return 0;
  });
  wait_until([&] { return client->host->metrics.connects.value() > connects; });
  EXPECT_EQ(echo(channel, 10, 1000), 0);
  EXPECT_EQ(transport(channel), "tcp");
}

// --- Peers that break the rules ---

QpAddress honest_address() {
  QpAddress address;
  address.link_layer = 2;
  address.qpn = 0x1234;
  address.psn = 7;
  address.slot_bytes = 4096;
  address.gid[10] = address.gid[11] = 0xff;
  address.gid[12] = 10;
  address.gid[15] = 77;
  address.slots = 32;
  address.mtu = 1024;
  address.reads = 16;
  return address;
}

class HostileUpgrade : public UpgradeTest {
 protected:
  Bytes offer(const QpAddress& from = honest_address()) {
    return encode_message({.kind = Kind::upgrade_offer}, as_bytes(from));
  }
  Bytes switch_message(uint16_t status = 0, std::string_view text = "") {
    return encode_message({.kind = Kind::upgrade_switch, .status = status}, std::as_bytes(std::span(text)));
  }
  // A client that has said hello and names RDMA.
  RawPeer greeted(uint64_t features = kFeatureRdma) {
    RawPeer peer = RawPeer::connect(address.port());
    EXPECT_TRUE(peer.send(hello_message(kAnyPollGroup, features)));
    EXPECT_TRUE(peer.receive());
    return peer;
  }
};

TEST_F(HostileUpgrade, ClientsAreClosedAndNobodyElseNotices) {
  start();
  Channel& channel = connect();
  wait_for(channel, "rdma");
  QpAddress no_qp = honest_address();
  no_qp.qpn = 0;
  QpAddress huge_slots = honest_address();
  huge_slots.slots = 0xffff;
  QpAddress odd_mtu = honest_address();
  odd_mtu.mtu = 1000;
  const Bytes short_offer = encode_message({.kind = Kind::upgrade_offer}, Bytes(sizeof(QpAddress) - 1));
  const Bytes answer = encode_message({.kind = Kind::upgrade_answer}, as_bytes(honest_address()));
  const Bytes ping = encode_message({.kind = Kind::ping});
  const struct {
    const char* what;
    Bytes said;
    uint64_t features = kFeatureRdma;
  } cases[] = {
      {"too short", short_offer},
      {"no queue pair", offer(no_qp)},
      {"more slots than there may be", offer(huge_slots)},
      {"an MTU that is none", offer(odd_mtu)},
      {"not agreed", offer(), 0},
      {"twice", offer() + offer()},
      {"an answer from a client", answer},
      {"a switch without an offer", switch_message()},
      {"given up without an offer", switch_message(13, "no")},
      {"a switch before the proof", offer() + switch_message()},
      {"a switch that isn't the last", offer() + switch_message() + ping},
      {"a switch with something in it", offer() + switch_message(0, "x")},
      {"given up twice", offer() + switch_message(13, "no") + switch_message(13, "no")},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    RawPeer peer = greeted(c.features);
    ASSERT_TRUE(peer.send(c.said));
    EXPECT_EQ(peer.goodbye(), CloseReason::bad_sequence);
    EXPECT_TRUE(peer.ends());
    EXPECT_EQ(echo(channel, 5, 10'000), 0);
  }
  EXPECT_EQ(transport(channel), "rdma");
  wait_until([&] { return there->verbs.objects().queue_pairs == 1; });
}

TEST_F(HostileUpgrade, OffersOfAnotherKindAreRefusedAndTheConnectionGoesOn) {
  start();
  QpAddress newer = honest_address();
  newer.version = 200;
  QpAddress infiniband = honest_address();
  infiniband.link_layer = 1;
  for (const QpAddress& from : {newer, infiniband}) {
    RawPeer peer = greeted();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(peer.send(offer(from)));
      auto answer = peer.receive();
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->header.kind, Kind::upgrade_answer);
      EXPECT_EQ(errc_from_wire(answer->header.status), Errc::unsupported) << answer->text();
    }
    ASSERT_TRUE(peer.send(encode_message({.kind = Kind::ping, .request_id = 9})));
    auto pong = peer.receive();
    ASSERT_TRUE(pong);
    EXPECT_EQ(pong->header.kind, Kind::pong);
  }
}

// Its queue pair exists only on paper.
TEST_F(HostileUpgrade, AClientThatVanishesMidway) {
  start();
  for (int i = 0; i < 20; ++i) {
    RawPeer peer = greeted();
    ASSERT_TRUE(peer.send(offer()));
    auto answer = peer.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header.status, 0U);
    if (i % 3 == 0) ASSERT_TRUE(peer.send(switch_message(13, "no")));
    if (i % 2 == 0) peer.reset();
  }
  wait_until([&] { return there->verbs.objects().queue_pairs == 0; });
  Channel& channel = connect();
  wait_for(channel, "rdma");
  EXPECT_EQ(echo(channel, 10, 10'000), 0);
}

// A server of which only the socket is real.
class HostileUpgradeServer : public HostileUpgrade {
 protected:
  void SetUp() override {
    start();
    address = raw.address();
  }
  // What the client does after the server's hello and `said` as the answer to its offer: the reason of its goodbye.
  CloseReason against(const std::vector<Bytes>& said) {
    Channel& channel = connect();
    RawPeer peer = raw.accept();
    EXPECT_TRUE(peer.receive());
    HelloReplyBody body;
    body.version = kVersionMax;
    body.poll_groups = 1;
    body.credits = 16;
    body.features = kFeatureRdma;
    body.byte_credits = 1 << 20;
    body.max_calls = 16;
    body.max_data = 1 << 20;
    EXPECT_TRUE(peer.send(encode_message({.kind = Kind::hello_reply}, as_bytes(body))));
    auto offered = peer.receive();
    EXPECT_TRUE(offered && offered->header.kind == Kind::upgrade_offer);
    for (const Bytes& message : said) EXPECT_TRUE(peer.send(message));
    const CloseReason reason = peer.goodbye();
    close(channel);
    return reason;
  }
  RawListener raw;
};

TEST_F(HostileUpgradeServer, IsLeft) {
  const auto answer = [](const QpAddress& from) {
    return encode_message({.kind = Kind::upgrade_answer}, as_bytes(from));
  };
  QpAddress nonsense = honest_address();
  nonsense.slot_bytes = 1;
  const Bytes refused = encode_message({.kind = Kind::upgrade_answer, .status = 13});
  EXPECT_EQ(against({answer(nonsense)}), CloseReason::bad_sequence);
  EXPECT_EQ(against({encode_message({.kind = Kind::upgrade_answer}, Bytes(5))}), CloseReason::bad_sequence);
  EXPECT_EQ(against({offer()}), CloseReason::bad_sequence);
  EXPECT_EQ(against({switch_message()}), CloseReason::bad_sequence);
  EXPECT_EQ(against({switch_message(13, "no")}), CloseReason::bad_sequence);
  EXPECT_EQ(against({refused, refused}), CloseReason::bad_sequence);
  EXPECT_EQ(against({answer(honest_address()), switch_message()}), CloseReason::bad_sequence);
  EXPECT_EQ(against({answer(honest_address()), answer(honest_address())}), CloseReason::bad_sequence);
}

// --- A whole server ---

TEST_F(UpgradeTest, ConnectionsThatWerePlacedGoOver) {
  start();
  FakeHost& verbs = fabric.add_host();
  verbs.add_device({.name = "fake0", .address = "10.0.0.9"});
  auto process = ServerProcess::start({.at = Address::loopback(0),
                                       .poll_groups = 3,
                                       .memory = size_t{16} << 20,
                                       .shared_memory = false,
                                       .rdma = RdmaOptions{.verbs = &verbs}},
                                      [](Server& its, ReactorHost&) { return std::make_shared<Methods>(its); });
  ASSERT_TRUE(process) << process.error().to_string();
  address = (*process)->address();
  for (uint16_t group = 0; group < 3; ++group) {
    Channel& channel = connect(tcp::Upgrade::if_possible, {.poll_group = group});
    wait_for(channel, "rdma");
    EXPECT_EQ(echo(channel, 100, 100'000), 0);
    EXPECT_EQ(client->host->call([&] { return channel.poll_group(); }), group);
    close(channel);
  }
  (*process)->stop(seconds(1));
}

}  // namespace
}  // namespace cairn::srpc::rdma
