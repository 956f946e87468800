// RDMA when something fails: calls, peers, ports, devices, and peers that aren't what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "srpc/rdma/rdma_stream.h"
#include "srpc/rdma/testing/rdma_pair.h"

namespace cairn::srpc::rdma {
namespace {

using namespace testing;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Direction = stream::Transfer::Direction;

class Counted final : public stream::Transfer {
 public:
  Counted(Direction direction, mem::BufChain local, std::vector<stream::RemotePiece> remote, int& good, int& bad)
      : Transfer(direction, std::move(local), std::move(remote)), good_(good), bad_(bad) {}
  void done(bool ok) override { ++(ok ? good_ : bad_); }

 private:
  int& good_;
  int& bad_;
};

class RdmaFaults : public RdmaPair {
 protected:
  // Says something in each direction, moves payload, ends. Whatever happens it ends: everything right, or with both
  // sides' streams failed or ended; true if right.
  bool exchange(Connected ends) {
    const auto [c, s] = ends;
    int good = 0;
    int bad = 0;
    const mem::BufChain source = memory(100'000, 1);
    const mem::BufChain target = memory(100'000, 0);
    const std::string words(30'000, 'w');
    call([&] {
      c->say(words);
      s->say(words);
      std::vector<stream::RemotePiece> pieces;
      EXPECT_TRUE(c->stream->name(source, 1, pieces));
      s->stream->begin(std::make_unique<Counted>(Direction::pull, target, pieces, good, bad));
      s->stream->begin(std::make_unique<Counted>(Direction::push, target, pieces, good, bad));
      return 0;
    });
    const auto over = [](Talker* talker) { return talker->failed || talker->ended; };
    EXPECT_TRUE(until([&] {
      const bool complete = c->text() == words && s->text() == words && good == 2;
      return complete || over(c) || over(s);
    }));
    const bool right = c->text() == words && s->text() == words && good == 2;
    for (Talker* talker : {c, s}) {
      if (talker->failed) {
        EXPECT_THAT(*talker->failed, HasSubstr("fake0 port 1")) << "says where";
      }
    }
    call([&] {
      c->stream.reset();
      s->stream.reset();
      return 0;
    });
    EXPECT_TRUE(until([&] { return client.group->dying() + server.group->dying() == 0; }));
    EXPECT_EQ(good + bad, 2);
    return right;
  }
};

// One by one each call that a side makes fails: from the opening of the device to the last queue pair's destruction.
// What isn't set up yet is refused with a line that says what failed; what works already ends. Afterwards another
// connection works, and nothing is left behind.
TEST_F(RdmaFaults, EveryCallFailsOnce) {
  int refused = 0;
  int broken = 0;
  int right = 0;
  for (const Role role : {Role::client, Role::server}) {
    for (uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE(nth);
      RdmaSide& side = role == Role::client ? client : server;
      RdmaSide& other = role == Role::client ? server : client;
      const int error = nth % 2 == 0 ? ENOMEM : EINVAL;
      ASSERT_TRUE(other.open({.drain = milliseconds(20)}));
      side.verbs.fail_call(nth, error);
      auto opened = side.open({.drain = milliseconds(20)});
      if (!opened) {
        EXPECT_THAT(opened.error().message(), AnyOf(HasSubstr("ibv_get_device_list"), HasSubstr("fake0 port 1")));
        EXPECT_THAT(opened.error().message(), HasSubstr(std::strerror(error)));
        ++refused;
        side.close();
        ASSERT_TRUE(side.open({.drain = milliseconds(20)}));
      }
      auto connected = try_connect();
      if (!connected) {
        EXPECT_THAT(connected.error().message(), HasSubstr("fake0 port 1: "));
        EXPECT_THAT(connected.error().message(), HasSubstr(std::strerror(error)));
        EXPECT_EQ(connected.error().message().find('\n'), std::string::npos) << "one line";
        ++refused;
      } else if (exchange(*connected)) {
        ++right;
      } else {
        ++broken;
      }
      const bool last = !side.verbs.failed_call();
      side.verbs.fail_call(0, 0);
      auto again = try_connect();
      ASSERT_TRUE(again) << again.error().to_string();
      EXPECT_TRUE(exchange(*again));
      talkers.clear();
      client.close();
      server.close();
      ASSERT_EQ(client.verbs.objects().total(), 0);
      ASSERT_EQ(server.verbs.objects().total(), 0);
      if (last) break;
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(broken, 20);
  EXPECT_GT(right, 2);
}

// The same by verb, which also counts what failed.
TEST_F(RdmaFaults, SetUpFailuresAreCountedByCallAndError) {
  open();
  for (const Verb verb :
       {Verb::query_port, Verb::create_comp_channel, Verb::reg_mr, Verb::create_cq, Verb::req_notify_cq,
        Verb::create_qp, Verb::modify_qp_init, Verb::post_recv, Verb::modify_qp_rtr, Verb::modify_qp_rts}) {
    for (RdmaSide* side : {&client, &server}) {
      open();
      side->verbs.fail_call(1, verb == Verb::create_qp ? ENOMEM : EINVAL, verb);
      const auto connected = try_connect();
      ASSERT_FALSE(connected) << verb_name(verb);
      EXPECT_THAT(connected.error().message(), HasSubstr(std::string(verb_name(verb))));
      const std::string reason = std::string(verb_name(verb)) + (verb == Verb::create_qp ? ":ENOMEM" : ":EINVAL");
      EXPECT_EQ(side->metric("srpc_rdma_setup_failures_total{reason=\"" + reason + "\"}"), 1U);
      EXPECT_TRUE(exchange(connect()));
      client.close();
      server.close();
    }
  }
}

// The peer's process dies when so many requests have been carried out. Who is left hears of it, and gets back
// everything.
TEST_F(RdmaFaults, PeerDiesAtEveryPoint) {
  for (const Role dies : {Role::client, Role::server}) {
    for (size_t point = 0;; ++point) {
      SCOPED_TRACE(point);
      // A process that has died stays dead: the next round has others.
      RdmaSide mortal(fabric, host, dies, {.name = "fake0", .address = "10.0.1.1"});
      RdmaSide& survivor = dies == Role::client ? server : client;
      ASSERT_TRUE(survivor.open());
      ASSERT_TRUE(mortal.open({.drain = milliseconds(1)}));
      int good = 0;
      int bad = 0;
      const mem::BufChain source = memory(100'000, 1);
      Talker* left = nullptr;
      Talker* dead = nullptr;
      size_t carried = 0;
      call([&] {
        auto ours = *survivor.group->prepare(survivor.role);
        auto theirs = *mortal.group->prepare(dies);
        const auto their_address = theirs->local();
        auto dead_stream = *theirs->connect(ours->local(), "the survivor");
        left = add(*ours->connect(their_address, "the one who dies"));
        dead = add(std::move(dead_stream));
        fabric.hold();
        dead->say(std::string(40'000, 'd'));
        left->say(std::string(40'000, 's'));
        Talker* asks = dies == Role::client ? dead : left;
        Talker* moves = dies == Role::client ? left : dead;
        std::vector<stream::RemotePiece> pieces;
        EXPECT_TRUE(asks->stream->name(source, 1, pieces));
        moves->stream->begin(std::make_unique<Counted>(Direction::pull, memory(100'000, 0), pieces, good, bad));
        moves->stream->begin(std::make_unique<Counted>(Direction::push, memory(100'000, 0), pieces, good, bad));
        return 0;
      });
      while (carried < point) {
        if (fabric.deliver(1) == 0) break;
        ++carried;
        settle();
      }
      mortal.verbs.kill();
      fabric.release();
      // It may have heard everything before: then it hears of the death when it speaks.
      call([&] {
        left->say("are you there?");
        return 0;
      });
      EXPECT_TRUE(until([&] { return left->failed.has_value(); }));
      EXPECT_THAT(*left->failed, HasSubstr("retry counter exceeded (the peer is gone"));
      call([&] {
        left->stream.reset();
        return 0;
      });
      EXPECT_TRUE(until([&] { return survivor.group->dying() == 0; }));
      if (dies == Role::client) {
        EXPECT_EQ(good + bad, 2);
      }
      talkers.clear();
      mortal.close();
      survivor.close();
      ASSERT_EQ(survivor.verbs.objects().total(), 0);
      ASSERT_EQ(mortal.verbs.objects().total(), 0);
      EXPECT_EQ(good + bad, 2);
      if (carried < point) break;
    }
  }
}

// A port that is down for a moment costs nobody anything.
TEST_F(RdmaFaults, ShortFlapIsSurvived) {
  open({.port_grace = seconds(20)});
  const auto [c, s] = connect();
  client.verbs.set_port(*client.devices[0], PortState::down);
  call([&] {
    c->say("during the flap");
    return 0;
  });
  EXPECT_TRUE(until([&] { return client.metric("srpc_rdma_port_losses_total") == 1; }));
  EXPECT_EQ(client.metric("srpc_rdma_rails_up"), 0U);
  EXPECT_TRUE(s->heard.empty());
  client.verbs.set_port(*client.devices[0], PortState::active);
  EXPECT_TRUE(until([&] { return s->text() == "during the flap"; }));
  EXPECT_FALSE(c->failed || s->failed);
  EXPECT_EQ(client.metric("srpc_rdma_rails_up"), 1U);
}

// One that stays down ends its connections, also those that have nothing to say, and is used again when it is back.
TEST_F(RdmaFaults, LongOutageEndsConnectionsAndTheRailComesBack) {
  open({.port_grace = milliseconds(1)});
  const auto [c, s] = connect();
  client.verbs.set_port(*client.devices[0], PortState::down);
  EXPECT_TRUE(until([&] { return c->failed.has_value(); }));
  EXPECT_THAT(*c->failed, HasSubstr("fake0 port 1: the port went down"));
  const auto refused = try_connect();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("fake0 port 1 (down"));
  EXPECT_THAT(refused.error().message(), HasSubstr("ip link set"));
  EXPECT_EQ(client.metric("srpc_rdma_setup_failures_total{reason=\"port_down\"}"), 1U);
  client.verbs.set_port(*client.devices[0], PortState::active);
  settle();
  EXPECT_TRUE(exchange(connect()));
  EXPECT_EQ(client.metric("srpc_rdma_rails_up"), 1U);
}

// The link is down and nobody says so: the retries run out.
TEST_F(RdmaFaults, LostPacketsEndTheConnection) {
  open();
  const auto [c, s] = connect();
  server.verbs.set_port(*server.devices[0], PortState::down, false);
  call([&] {
    c->say("lost");
    return 0;
  });
  settle();
  EXPECT_FALSE(c->failed);
  client.verbs.give_up(*client.devices[0]);
  EXPECT_TRUE(until([&] { return c->failed.has_value(); }));
  EXPECT_THAT(*c->failed, HasSubstr("transport retry counter exceeded"));
  EXPECT_GT(client.metric("srpc_rdma_failed_completions_total{status=\"transport retry counter exceeded\"}"), 0U);
}

// Two ports, and what becomes of connections when one of them fails.
TEST_F(RdmaFaults, AnotherRailTakesOver) {
  for (RdmaSide* side : {&client, &server}) {
    side->devices.push_back(
        &side->verbs.add_device({.name = "fake1", .address = side->role == Role::client ? "10.0.9.1" : "10.0.9.2"}));
  }
  open({.port_grace = milliseconds(1)});
  const auto rail = [&](const Address& local) {
    return call([&] { return (*client.group->prepare(Role::client, local))->rail(); });
  };
  EXPECT_EQ(rail({}), "fake0 port 1, RoCEv2 with the IPv4 address 10.0.0.1, MTU 1024");
  EXPECT_THAT(rail(*Address::parse("10.0.9.1", 0)), HasSubstr("fake1 port 1, RoCEv2 with the IPv4 address 10.0.9.1"));
  EXPECT_THAT(rail(*Address::parse("192.168.0.1", 0)), HasSubstr("fake0"));  // an address of no rail
  const auto first = connect();
  for (RdmaSide* side : {&client, &server}) side->verbs.set_port(*side->devices[0], PortState::down);
  EXPECT_TRUE(until([&] { return first.client->failed && first.server->failed; }));
  const auto second = connect();
  client.verbs.set_port(*client.devices[0], PortState::active);
  settle();
  EXPECT_THAT(rail({}), HasSubstr("fake0"));
  EXPECT_TRUE(exchange(second));
  // One that can't be set up is passed over, too.
  client.verbs.fail_call(1, ENOMEM, Verb::create_qp);
  EXPECT_THAT(rail({}), HasSubstr("fake1"));
  // Neither works: a line for each.
  for (FakeDevice* device : client.devices) client.verbs.set_port(*device, PortState::down);
  const auto none = try_connect();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("fake0 port 1 (down"));
  EXPECT_THAT(none.error().message(), HasSubstr("\nfake1 port 1 (down"));
}

TEST_F(RdmaFaults, DeviceIsTakenOut) {
  open();
  const auto [c, s] = connect();
  server.verbs.remove(*server.devices[0]);
  EXPECT_TRUE(until([&] { return s->failed.has_value(); }));
  call([&] {
    c->say("anybody?");
    return 0;
  });
  EXPECT_TRUE(until([&] { return c->failed.has_value(); }));
  const auto refused = try_connect();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("was removed"));
}

// What had arrived without a completion of its own isn't waited for.
TEST_F(RdmaFaults, FailedConnectionsAreTakenDownAtOnce) {
  open();
  const auto [c, s] = connect();
  call([&] {
    c->say("arrives");
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->text() == "arrives"; }));
  client.verbs.fail_call(1, ENOMEM, Verb::post_send);
  call([&] {
    c->say("fails");
    c->stream.reset();
    return 0;
  });
  settle();  // no time passes
  EXPECT_EQ(client.group->dying(), 0U);
}

// What a queue pair that can't be destroyed may still reach isn't given to anybody else.
TEST_F(RdmaFaults, UndestroyableQueuePairKeepsItsMemory) {
  open({.drain = milliseconds(1)});
  const size_t free = host.pool.free_bytes();
  const auto [c, s] = connect();
  mem::BufChain named = memory(4096, 1);
  client.verbs.fail_call(1, EBUSY, Verb::destroy_qp);
  call([&] {
    std::vector<mem::BufChain> kept;
    kept.push_back(std::move(named));
    c->stream->keep(std::move(kept));
    c->stream.reset();
    return 0;
  });
  named.clear();
  EXPECT_TRUE(until([&] { return client.group->dying() == 0; }));
  EXPECT_EQ(client.metric("srpc_rdma_abandoned_total"), 1U);
  EXPECT_EQ(host.pool.free_bytes(), free - 4096);
}

// A completion queue that can't be armed or read ends what it served. The next connection gets another.
TEST_F(RdmaFaults, BrokenCompletionQueueIsReplaced) {
  open({.drain = milliseconds(1)});
  for (const Verb verb : {Verb::poll_cq, Verb::get_cq_event}) {
    host.reactor->set_mode(Mode::economy);
    const auto [c, s] = connect();
    fabric.hold();
    call([&] {
      c->say("wake up");
      return 0;
    });
    settle();
    EXPECT_TRUE(until([&] { return true; }));  // asleep once: the queue is armed
    server.verbs.fail_call(1, EIO, verb);
    std::thread network([&] { fabric.release(); });
    EXPECT_TRUE(until([&] { return s->failed.has_value(); })) << verb_name(verb);
    network.join();
    EXPECT_THAT(*s->failed, HasSubstr(std::string(verb_name(verb))));
    EXPECT_TRUE(exchange(connect())) << verb_name(verb);
  }
}

// --- A peer that isn't what it says ---

// A client by hand: a queue pair without a stream.
class RdmaHostile : public RdmaFaults {
 protected:
  static constexpr uint16_t kSlots = 8;

  void SetUp() override {
    ASSERT_TRUE(server.open({.slots = kSlots}));
    opened = std::move(*client.verbs.open("fake0"));
    domain = std::move(*opened->make_domain());
    bytes.resize(64 * 4096);
    registered = std::move(*domain->register_memory(bytes, {}));
  }
  void TearDown() override {
    talkers.clear();
    server.close();
    qp.reset();
    cq.reset();
    channel.reset();
    registered.reset();
    domain.reset();
    opened.reset();
    RdmaFaults::TearDown();
  }
  // Connects, and posts `receives` of them; the server is told that there are `slots`.
  Talker* connect_raw(uint16_t slots = kSlots, uint16_t receives = 32) {
    qp.reset();
    cq.reset();
    channel = std::move(*opened->make_channel());
    cq = std::move(*opened->make_cq(256, *channel));
    qp = std::move(*opened->make_qp(*domain, *cq, {.sends = 64, .receives = 64, .inline_bytes = 128}));
    EXPECT_TRUE(qp->to_init(1, {}));
    for (uint16_t i = 0; i < receives; ++i) {
      EXPECT_TRUE(qp->post(ReceiveRequest{
          .id = i, .local = std::span(bytes).subspan(i * size_t{4096}, 4096), .local_key = registered->local_key()}));
    }
    QpAddress mine;
    mine.link_layer = 2;
    mine.qpn = qp->number();
    mine.psn = 77;
    mine.slot_bytes = 4096;
    mine.gid = client.devices[0]->ports[0].facts.gids[0].bytes;
    mine.slots = slots;
    mine.mtu = 1024;
    mine.reads = 1;
    return call([&] {
      auto theirs = *server.group->prepare(Role::server);
      EXPECT_TRUE(qp->to_rtr({.remote_gid = theirs->local().gid,
                              .remote_qpn = theirs->local().qpn,
                              .remote_psn = theirs->local().psn,
                              .reads_answered = 1}));
      EXPECT_TRUE(qp->to_rts({.psn = 77}));
      return add(*theirs->connect(mine, "hostile"));
    });
  }
  void send(std::span<const std::byte> message) {
    std::vector<std::byte> copy(message.begin(), message.end());
    EXPECT_TRUE(qp->post(SendRequest{.local = copy, .inlined = true}));
  }
  void send(SlotHeader header, std::string_view text = "") {
    std::vector<std::byte> message(sizeof header + text.size());
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + sizeof header, text.data(), text.size());
    send(message);
  }

  std::unique_ptr<VerbsDevice> opened;
  std::unique_ptr<VerbsDomain> domain;
  std::vector<std::byte> bytes;
  std::unique_ptr<VerbsMemory> registered;
  std::unique_ptr<VerbsChannel> channel;
  std::unique_ptr<VerbsCq> cq;
  std::unique_ptr<VerbsQp> qp;
};

TEST_F(RdmaHostile, NonsenseEndsItsConnection) {
  const struct {
    std::string_view what;
    SlotHeader header;
    std::string_view text;
  } cases[] = {
      {"header that makes no sense", {.bytes = 4}, "abc"},
      {"header that makes no sense", {.bytes = 2}, "abc"},
      {"header that makes no sense", {.bytes = 65535}, "abc"},
      {"header that makes no sense", {.bytes = 3, .flags = 2}, "abc"},
      {"more credits than it had", {.bytes = 3, .credits = 1}, "abc"},
      {"more credits than it had", {.credits = 65535}, ""},
  };
  for (const auto& c : cases) {
    Talker* s = connect_raw();
    send(c.header, c.text);
    EXPECT_TRUE(until([&] { return s->failed.has_value(); })) << c.what;
    EXPECT_THAT(s->failed.value_or(""), HasSubstr(std::string(c.what)));
  }
  Talker* s = connect_raw();
  send(std::as_bytes(std::span("1234567")).first(7));
  EXPECT_TRUE(until([&] { return s->failed.has_value(); }));
  EXPECT_THAT(s->failed.value_or(""), HasSubstr("less than a header"));
  s = connect_raw();
  send({.bytes = 3}, "abc");
  send({.flags = SlotHeader::kEnd});
  send({.bytes = 3}, "def");
  EXPECT_TRUE(until([&] { return s->failed || s->ended; }));
  EXPECT_EQ(s->text(), "abc");
  // A message longer than a slot.
  s = connect_raw();
  EXPECT_TRUE(qp->post(SendRequest{.local = std::span(bytes).first(4097), .local_key = registered->local_key()}));
  EXPECT_TRUE(until([&] { return s->failed.has_value(); }));
  // No header is trusted for what wasn't received.
  s = connect_raw();
  send({.bytes = 5}, "hello");
  EXPECT_TRUE(until([&] { return s->text() == "hello"; }));
  EXPECT_FALSE(s->failed);
}

// Who sends without credits fills the slots that there are, and waits: nothing grows.
TEST_F(RdmaHostile, SendingWithoutCreditsOnlyWaits) {
  Talker* s = connect_raw();
  call([&] {
    s->stream->set_receiving(false);
    return 0;
  });
  for (int i = 0; i < 40; ++i) send({.bytes = 1}, "x");
  settle();
  EXPECT_GT(fabric.rnr_waits(), 0U);
  EXPECT_FALSE(s->failed);
  call([&] {
    s->stream->set_receiving(true);
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->heard.size() == 40; }));
}

// Who never gives back credits gets a window and no more; who posts no receives gets nothing. Neither keeps anything
// when it is given up.
TEST_F(RdmaHostile, NoCreditsAndNoReceives) {
  Talker* s = connect_raw();
  call([&] {
    s->say(std::string(100'000, 'x'));
    return 0;
  });
  settle();
  EXPECT_EQ(s->to_send.size(), 100'000 - 7 * (4096 - sizeof(SlotHeader)));
  call([&] {
    s->stream.reset();
    return 0;
  });
  s = connect_raw(kSlots, 0);
  call([&] {
    s->say(std::string(100'000, 'x'));
    s->stream.reset();
    return 0;
  });
  EXPECT_TRUE(until([&] { return server.group->dying() == 0; }));
}

// An address from the peer is checked field by field.
TEST_F(RdmaHostile, AddressesAreChecked) {
  const auto good = call([&] { return (*server.group->prepare(Role::server))->local(); });
  EXPECT_TRUE(check_remote(good, good));
  const auto refused = [&](auto change, Errc code) {
    QpAddress bad = good;
    change(bad);
    EXPECT_EQ(check_remote(bad, good).code(), code);
    call([&] {
      auto link = *server.group->prepare(Role::server);
      EXPECT_EQ(link->connect(bad, "hostile").code(), code);
      return 0;
    });
  };
  refused([](QpAddress& a) { a.version = 2; }, Errc::unsupported);
  refused([](QpAddress& a) { a.link_layer = 1; }, Errc::unsupported);
  refused([](QpAddress& a) { a.qpn = 0; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.qpn = 1U << 24; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.psn = 1U << 24; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.slots = 3; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.slots = 65535; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.slot_bytes = 8; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.slot_bytes = 65537; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.mtu = 0; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.mtu = 1500; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.reads = 0; }, Errc::protocol_error);
  refused([](QpAddress& a) { a.gid = {}; }, Errc::protocol_error);
}

// --- What is said when RDMA can't be used at all ---

TEST_F(RdmaFaults, OneLineSaysWhatStandsInTheWay) {
  FakeHost& bare = fabric.add_host();
  EXPECT_THAT(open_rails(bare, {}, {}).problems, ::testing::ElementsAre("rdma: this machine has no RDMA device"));
  EXPECT_THAT(open_rails(client.verbs, {{.device = "mlx5_0"}}, {}).problems,
              ::testing::ElementsAre(AllOf(HasSubstr("mlx5_0 port 1: ibv_open_device"), HasSubstr("rdma link"))));
  client.verbs.fail_call(1, ENOMEM, Verb::reg_mr);
  const std::span<std::byte> memory = host.pool.memory();
  const Rails rails = open_rails(client.verbs, {}, {&memory, 1});
  EXPECT_TRUE(rails.devices.empty());
  ASSERT_EQ(rails.problems.size(), 1U);
  EXPECT_THAT(rails.problems[0], HasSubstr("fake0 port 1: ibv_reg_mr: Cannot allocate memory"));
  EXPECT_THAT(rails.problems[0], HasSubstr("ulimit -l unlimited"));
  EXPECT_THAT(rails.problems[0], HasSubstr("16.0 MiB"));
  client.verbs.fail_call(1, EACCES, Verb::open_device);
  EXPECT_THAT(open_rails(client.verbs, {}, {}).problems[0], HasSubstr("/dev/infiniband"));
}

}  // namespace
}  // namespace cairn::srpc::rdma
