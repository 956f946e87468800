// Streams over RDMA when everything works: bytes, credits, the end, payload by READ and WRITE.
#include "srpc/rdma/rdma_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "srpc/rdma/testing/rdma_pair.h"

namespace cairn::srpc::rdma {
namespace {

using namespace testing;
using Direction = stream::Transfer::Direction;

std::vector<std::byte> numbered(size_t count, unsigned seed = 0) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = std::byte{static_cast<unsigned char>((i * 7 + seed) >> (i % 3))};
  return bytes;
}

class RdmaStreamTest : public RdmaPair {};

TEST_F(RdmaStreamTest, CarriesBytesBothWaysAndEnds) {
  open();
  const auto [c, s] = connect();
  call([&] {
    c->say("hello");
    s->say("and hello");
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->text() == "hello" && c->text() == "and hello"; }));
  EXPECT_EQ(c->stream->peer(), "the server");
  EXPECT_EQ(c->stream->transport(), "rdma");
  EXPECT_FALSE(c->ended);
  call([&] {
    c->say(", the last word");
    c->stream->shutdown_send();
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->ended; }));
  EXPECT_EQ(s->text(), "hello, the last word");
  call([&] {
    s->say("!");
    s->stream->shutdown_send();
    return 0;
  });
  EXPECT_TRUE(until([&] { return c->ended; }));
  EXPECT_EQ(c->text(), "and hello!");
  EXPECT_FALSE(c->failed || s->failed);
  EXPECT_GT(fabric.inlined(), 0U);
}

TEST_F(RdmaStreamTest, CarriesMuchInOrderWhateverThePieces) {
  for (const uint16_t slots : {uint16_t{4}, uint16_t{5}, uint16_t{32}}) {
    open({.slots = slots, .slot_bytes = slots == 4 ? 256U : 4096U});
    const auto [c, s] = connect();
    const auto there = numbered(1'000'000);
    const auto back = numbered(700'001, 3);
    SeededRng rng(slots);
    size_t said = 0;
    while (said < there.size()) {
      const size_t n = std::min<size_t>(1 + rng.below(60'000), there.size() - said);
      call([&] {
        c->say(std::span(there).subspan(said, n));
        if (said == 0) s->say(back);
        return 0;
      });
      said += n;
    }
    EXPECT_TRUE(until([&] { return s->heard.size() == there.size() && c->heard.size() == back.size(); }));
    EXPECT_EQ(s->heard, there);
    EXPECT_EQ(c->heard, back);
    talkers.clear();
    client.close();
    server.close();
  }
  EXPECT_EQ(fabric.rnr_waits(), 0U);  // credits are what holds a sender back
}

// Each side uses what it has, and what the other has.
TEST_F(RdmaStreamTest, SidesMayDiffer) {
  ASSERT_TRUE(client.open({.slots = 6, .slot_bytes = 512, .inline_bytes = 0}));
  ASSERT_TRUE(server.open({.slots = 64, .slot_bytes = 65536, .inline_bytes = 60}));
  const auto [c, s] = connect();
  const auto bytes = numbered(300'000);
  call([&] {
    c->say(bytes);
    s->say(bytes);
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->heard.size() == bytes.size() && c->heard.size() == bytes.size(); }));
  EXPECT_EQ(s->heard, bytes);
  EXPECT_EQ(c->heard, bytes);
  EXPECT_EQ(fabric.rnr_waits(), 0U);
}

// Who doesn't read makes the other wait, and only him.
TEST_F(RdmaStreamTest, SlowReaderHoldsBackItsPeer) {
  open({.slots = 8});
  const auto [c, s] = connect();
  const auto [c2, s2] = connect();
  const auto bytes = numbered(500'000);
  call([&] {
    s->stream->set_receiving(false);
    c->say(bytes);
    return 0;
  });
  settle();
  EXPECT_TRUE(s->heard.empty());
  // A window without the credit that is kept for bare ones.
  const size_t gone = 7 * (4096 - sizeof(SlotHeader));
  EXPECT_EQ(c->to_send.size(), bytes.size() - gone);
  EXPECT_GT(client.metric("srpc_rdma_credit_stalls_total"), 0U);
  call([&] {
    c2->say(bytes);
    s->say(bytes);  // the other way there is room
    return 0;
  });
  EXPECT_TRUE(until([&] { return s2->heard.size() == bytes.size() && c->heard.size() == bytes.size(); }));
  EXPECT_TRUE(s->heard.empty());
  call([&] {
    s->stream->set_receiving(true);
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->heard.size() == bytes.size(); }));
  EXPECT_EQ(s->heard, bytes);
}

// Both windows used up: neither may send a byte, and still the credits find their way.
TEST_F(RdmaStreamTest, BothWindowsToZero) {
  for (const uint16_t slots : {uint16_t{4}, uint16_t{5}, uint16_t{9}}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      fabric.shuffle(seed);
      open({.slots = slots, .slot_bytes = 256});
      const auto [c, s] = connect();
      const auto bytes = numbered(20'000);
      call([&] {
        for (Talker* talker : {c, s}) talker->stream->set_receiving(false);
        for (Talker* talker : {c, s}) talker->say(bytes);
        return 0;
      });
      settle();
      EXPECT_GT(c->to_send.size(), 0U);
      EXPECT_GT(s->to_send.size(), 0U);
      call([&] {
        (seed % 2 == 0 ? c : s)->stream->set_receiving(true);
        return 0;
      });
      settle();
      call([&] {
        (seed % 2 == 0 ? s : c)->stream->set_receiving(true);
        return 0;
      });
      EXPECT_TRUE(until([&] { return s->heard.size() == bytes.size() && c->heard.size() == bytes.size(); })) << seed;
      talkers.clear();
      client.close();
      server.close();
    }
  }
}

// The end waits its turn behind what is said before it.
TEST_F(RdmaStreamTest, EndComesBehindWhatWaitsForCredits) {
  open({.slots = 4, .slot_bytes = 256});
  const auto [c, s] = connect();
  const auto bytes = numbered(3 * 248);
  call([&] {
    s->stream->set_receiving(false);
    c->say(bytes);
    EXPECT_TRUE(c->to_send.empty());
    c->stream->shutdown_send();
    return 0;
  });
  settle();
  call([&] {
    s->stream->set_receiving(true);
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->ended; }));
  EXPECT_EQ(s->heard, bytes);
}

// What was said before a stream is destroyed still arrives, its end, too.
TEST_F(RdmaStreamTest, DestructionLetsTheLastBytesArrive) {
  open();
  const auto [c, s] = connect();
  fabric.hold();
  call([&] {
    c->say("the last words");
    c->stream.reset();
    return 0;
  });
  settle();
  EXPECT_EQ(client.group->dying(), 1U);
  EXPECT_EQ(client.verbs.objects().queue_pairs, 1);
  fabric.release();
  EXPECT_TRUE(until([&] { return s->ended; }));
  EXPECT_EQ(s->text(), "the last words");
  EXPECT_TRUE(until([&] { return client.group->dying() == 0; }));
  EXPECT_EQ(client.verbs.objects().queue_pairs, 0);
}

// A network that takes nothing more doesn't keep a queue pair for ever.
TEST_F(RdmaStreamTest, DestructionDoesNotWaitForEver) {
  open({.drain = milliseconds(1)});
  const auto [c, s] = connect();
  fabric.hold();
  call([&] {
    c->say("never heard");
    c->stream.reset();
    return 0;
  });
  EXPECT_TRUE(until([&] { return client.group->dying() == 0; }));
  EXPECT_EQ(client.verbs.objects().queue_pairs, 0);
  fabric.release();
}

// Asleep, each side is woken by its completion channel.
class RdmaEconomy : public RdmaPair {
 protected:
  RdmaEconomy() : RdmaPair(Mode::economy) {}
};

TEST_F(RdmaEconomy, WakesForWhatCompletes) {
  open();
  const auto [c, s] = connect();
  for (int i = 0; i < 50; ++i) {
    const std::string word = "word " + std::to_string(i);
    call([&] {
      s->heard.clear();
      c->say(word);
      return 0;
    });
    EXPECT_TRUE(until([&] { return s->text() == word; }));
  }
  EXPECT_GT(server.metric("srpc_rdma_events_total"), 0U);
}

// --- Payload ---

struct Done {
  std::vector<int> order;
  int failed = 0;
};

class TestTransfer final : public stream::Transfer {
 public:
  TestTransfer(Direction direction, mem::BufChain local, std::vector<stream::RemotePiece> remote, int n, Done& d)
      : Transfer(direction, std::move(local), std::move(remote)), number(n), told(d) {}
  void done(bool ok) override {
    told.order.push_back(number);
    if (!ok) ++told.failed;
  }
  int number;
  Done& told;
};

class RdmaPayload : public RdmaStreamTest {
 protected:
  std::vector<stream::RemotePiece> name(Talker* c, const mem::BufChain& chain) {
    std::vector<stream::RemotePiece> pieces;
    EXPECT_TRUE(c->stream->name(chain, 64, pieces));
    return pieces;
  }
  void begin(Talker* s, Direction direction, const mem::BufChain& local, std::vector<stream::RemotePiece> remote,
             int number) {
    s->stream->begin(std::make_unique<TestTransfer>(direction, local, std::move(remote), number, done));
  }
  static std::vector<std::byte> bytes_of(const mem::BufChain& chain) {
    std::vector<std::byte> bytes;
    chain.for_each([&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    return bytes;
  }
  Done done;
};

TEST_F(RdmaPayload, MovesBothWays) {
  open();
  const auto [c, s] = connect();
  EXPECT_EQ(c->stream->role(), Role::client);
  EXPECT_EQ(s->stream->one_sided(), s->stream.get());
  {
    // In pieces that don't fit each other.
    mem::BufChain there = memory(5000, 1);
    there.append(memory(70'000, 2).slice(100, 60'001));
    const mem::BufChain pulled = memory(there.size(), 0);
    begin(s, Direction::pull, pulled, name(c, there), 1);
    const mem::BufChain back = memory(3'000'000, 3);
    const mem::BufChain pushed = memory(back.size(), 0);
    begin(s, Direction::push, back, name(c, pushed), 2);
    EXPECT_TRUE(until([&] { return done.order == std::vector{1, 2}; }));
    EXPECT_EQ(bytes_of(pulled), bytes_of(there));
    EXPECT_EQ(bytes_of(pushed), bytes_of(back));
  }
  EXPECT_EQ(done.failed, 0);
  EXPECT_EQ(server.metric("srpc_rdma_read_bytes_total"), 65'001U);
  EXPECT_EQ(server.metric("srpc_rdma_write_bytes_total"), 3'000'000U);
}

// What is said after a push began arrives after it, also when the push has to wait.
TEST_F(RdmaPayload, WhatIsSaidAfterAPushComesAfterIt) {
  open({.one_sided_depth = 2, .read_depth = 1});
  const auto [c, s] = connect();
  fabric.hold();
  const mem::BufChain source = memory(40'000, 1);
  const mem::BufChain pulled = memory(40'000, 0);
  const mem::BufChain target = memory(40'000, 0);
  call([&] {
    s->say("before");
    begin(s, Direction::pull, pulled, name(c, source), 1);
    begin(s, Direction::pull, pulled, name(c, source), 2);  // waits for the first
    begin(s, Direction::push, source, name(c, target), 3);  // waits behind it
    s->say("after");
    EXPECT_FALSE(s->to_send.empty());
    return 0;
  });
  EXPECT_GT(server.metric("srpc_rdma_one_sided_stalls_total"), 0U);
  for (int i = 0; i < 100; ++i) {
    fabric.deliver(1);
    settle();
    if (c->text() == "beforeafter") {
      EXPECT_EQ(bytes_of(target), bytes_of(source));
    }
  }
  EXPECT_EQ(c->text(), "beforeafter");
  EXPECT_EQ(done.order, (std::vector{1, 2, 3}));
  EXPECT_EQ(done.failed, 0);
  fabric.release();
}

// Many transfers in small pieces, above all limits: they wait in order, and the send queue never stands still.
TEST_F(RdmaPayload, LimitsMakeThemWaitInOrder) {
  for (const uint16_t reads : std::initializer_list<uint16_t>{1, 2, 3, 16}) {
    open({.one_sided_depth = static_cast<uint16_t>(reads + 1), .read_depth = reads});
    const auto [c, s] = connect();
    fabric.hold();
    done = {};
    const mem::BufChain source = memory(100'000, 9);
    std::vector<mem::BufChain> pulled;
    std::vector<mem::BufChain> pushed;
    std::vector<int> wanted;
    call([&] {
      for (int i = 0; i < 20; ++i) {
        pulled.push_back(memory(50'000, 0));
        pushed.push_back(memory(4096, 0));
        // Ten pieces, none at the place of the one before.
        std::vector<stream::RemotePiece> pieces;
        for (size_t k = 0; k < 10; ++k) pieces.push_back(name(c, source.slice((9 - k) * 5000, 5000))[0]);
        begin(s, Direction::pull, pulled.back(), pieces, 2 * i);
        begin(s, Direction::push, source.slice(0, 4096), name(c, pushed.back()), 2 * i + 1);
        wanted.insert(wanted.end(), {2 * i, 2 * i + 1});
      }
      return 0;
    });
    EXPECT_TRUE(until([&] {
      fabric.deliver(1);
      return done.order.size() == wanted.size();
    }));
    EXPECT_EQ(done.order, wanted);
    EXPECT_EQ(done.failed, 0);
    for (const auto& chain : pulled) {
      for (size_t k = 0; k < 10; ++k) {
        EXPECT_EQ(bytes_of(chain.slice(k * 5000, 5000)), bytes_of(source.slice((9 - k) * 5000, 5000)));
      }
    }
    for (const auto& chain : pushed) EXPECT_EQ(bytes_of(chain), bytes_of(source.slice(0, 4096)));
    fabric.release();
    talkers.clear();
    pulled.clear();
    pushed.clear();
    client.close();
    server.close();
  }
}

// A device that doesn't carry much in one request.
TEST_F(RdmaPayload, LongRunsAreCut) {
  for (FakeDevice* device : {client.devices[0], server.devices[0]}) device->ports[0].max_message_bytes = 10'000;
  open();
  const auto [c, s] = connect();
  const mem::BufChain source = memory(1'000'001, 1);
  const mem::BufChain pulled = memory(source.size(), 0);
  call([&] {
    begin(s, Direction::pull, pulled, name(c, source), 1);
    return 0;
  });
  EXPECT_TRUE(until([&] { return done.order.size() == 1; }));
  EXPECT_EQ(bytes_of(pulled), bytes_of(source));
  EXPECT_EQ(server.metric("srpc_rdma_reads_total"), 101U);
}

TEST_F(RdmaPayload, NamesOnlyWhatItKnows) {
  open();
  const auto [c, s] = connect();
  std::vector<stream::RemotePiece> pieces;
  const mem::BufChain known = memory(10'000, 1);
  EXPECT_TRUE(c->stream->name(known, 1, pieces));
  EXPECT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].bytes.get(), 10'000U);
  mem::BufChain two = memory(4096, 1).slice(0, 100);
  two.append(memory(4096, 1).slice(1, 100));
  EXPECT_FALSE(c->stream->name(two, 1, pieces));
  EXPECT_FALSE(s->stream->name(known, 1, pieces));  // servers open nothing
  auto arena = mem::Arena::create(size_t{1} << 20);
  Registry registry;
  mem::Pool other(*host.reactor, registry, arena->memory().first(size_t{1} << 20), 0);
  mem::BufChain mixed = known;
  mixed.append(*other.try_alloc(4096));
  EXPECT_FALSE(c->stream->name(mixed, 8, pieces));
  EXPECT_EQ(pieces.size(), 1U);
}

// A client names what isn't there, or isn't open: its connection ends, and nothing else does.
TEST_F(RdmaPayload, HostilePiecesEndTheirConnectionAndNothingElse) {
  open();
  const auto [c2, s2] = connect();
  const mem::BufChain memory_of_ours = memory(8192, 5);
  const auto good = name(c2, memory_of_ours)[0];
  const uint64_t end = reinterpret_cast<uintptr_t>(host.pool.memory().data() + host.pool.memory().size());
  const auto server_keys = server.rails.devices[0]->keys(Role::server, memory_of_ours.slices()[0].bytes());
  ASSERT_TRUE(server_keys);
  const struct {
    const char* what;
    stream::RemotePiece piece;
  } cases[] = {
      {"a key that doesn't exist", {good.address, 8192, good.key + 1}},
      {"no key", {good.address, 8192, 0}},
      {"the server's own memory", {good.address, 8192, server_keys->remote}},
      {"a local key", {good.address, 8192, server_keys->local}},
      {"behind the end", {end - 4096, 8192, good.key}},
      {"before the start", {8192, 8192, good.key}},
      {"round the end of all addresses", {UINT64_MAX - 4095, 8192, good.key}},
      {"null", {0, 8192, good.key}},
  };
  int number = 0;
  for (const auto& c : cases) {
    for (const Direction direction : {Direction::pull, Direction::push}) {
      const auto [hostile, victim] = connect();
      done = {};
      const mem::BufChain local = memory(8192, 0);
      call([&] {
        begin(victim, direction, local, {c.piece}, ++number);
        begin(victim, direction, local, {good}, ++number);
        return 0;
      });
      EXPECT_TRUE(until([&] { return done.order.size() == 2 && victim->failed; })) << c.what;
      EXPECT_EQ(done.failed, 2) << c.what;
      EXPECT_THAT(*victim->failed, ::testing::HasSubstr("remote access error")) << c.what;
      EXPECT_TRUE(until([&] { return hostile->failed.has_value(); })) << c.what;
      EXPECT_EQ(bytes_of(memory_of_ours), bytes_of(memory(8192, 5))) << c.what;
      call([&] {
        hostile->stream.reset();
        victim->stream.reset();
        s2->heard.clear();
        c2->say("still here");
        return 0;
      });
      EXPECT_TRUE(until([&] { return s2->text() == "still here"; })) << c.what;
    }
  }
  EXPECT_GT(server.metric("srpc_rdma_failed_completions_total{status=\"remote access error\"}"), 0U);
}

// Memory of a server that isn't registered is a mistake of ours: one connection, not the process.
TEST_F(RdmaPayload, UnregisteredMemoryOfTheServerEndsTheConnection) {
  open();
  const auto [c, s] = connect();
  auto arena = mem::Arena::create(size_t{1} << 20);
  Registry registry;
  mem::Pool other(*host.reactor, registry, arena->memory().first(size_t{1} << 20), 0);
  const mem::BufChain source = memory(4096, 1);
  call([&] {
    begin(s, Direction::pull, *other.try_alloc(4096), name(c, source), 1);
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->failed.has_value(); }));
  EXPECT_THAT(*s->failed, ::testing::HasSubstr("isn't registered"));
  EXPECT_EQ(done.failed, 1);
}

// Nobody gets memory that the device may still write to, or the other side may still reach.
TEST_F(RdmaPayload, MemoryIsHeldUntilNobodyCanReachIt) {
  open({.drain = seconds(20)});
  const size_t free = host.pool.free_bytes();
  const auto [c, s] = connect();
  fabric.hold();
  mem::BufChain source = memory(mem::kMaxBlock, 1);
  call([&] {
    begin(s, Direction::pull, memory(mem::kMaxBlock, 0), name(c, source), 1);
    // Both ends go while the READ is on its way.
    std::vector<mem::BufChain> named;
    named.push_back(std::move(source));
    c->stream->keep(std::move(named));
    c->stream.reset();
    s->stream.reset();
    return 0;
  });
  source.clear();
  settle();
  EXPECT_EQ(host.pool.free_bytes(), free - 2 * mem::kMaxBlock);
  EXPECT_EQ(done.order.size(), 0U);
  fabric.release();
  EXPECT_TRUE(until([&] { return host.pool.free_bytes() == free; }));
  EXPECT_EQ(done.order.size(), 1U);
  EXPECT_EQ(client.group->dying() + server.group->dying(), 0U);
}

// --- The TCP connection beside it ---

class RdmaSocket : public RdmaStreamTest {
 protected:
  // The client's talker and the server's, whose stream holds a socket; the other end of that is `socket`.
  Connected connect_with_socket() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    socket = Fd(ends[0]);
    return call([&] {
      auto ours = *client.group->prepare(Role::client);
      auto theirs = *server.group->prepare(Role::server);
      auto server_stream = *theirs->connect(ours->local(), "the client");
      auto client_stream = *ours->connect(theirs->local(), "the server");
      server_stream->hold(Fd(ends[1]));
      return Connected{add(std::move(client_stream)), add(std::move(server_stream))};
    });
  }
  Fd socket;
};

TEST_F(RdmaSocket, ItsEndIsTheStreamsEndBehindWhatHadArrived) {
  open();
  const auto [c, s] = connect_with_socket();
  const auto bytes = numbered(20'000);
  call([&] {
    c->say(bytes);
    EXPECT_TRUE(c->to_send.empty());
    socket.reset();
    return 0;
  });
  EXPECT_TRUE(until([&] { return s->ended; }));
  EXPECT_EQ(s->heard, bytes);
  call([&] {
    s->say("nobody there");
    return 0;
  });
  EXPECT_THAT(s->send_failed.value_or(""), ::testing::HasSubstr("ended"));
}

TEST_F(RdmaSocket, NothingIsSaidOnItAnyMore) {
  open();
  const auto [c, s] = connect_with_socket();
  EXPECT_EQ(::send(socket.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(until([&] { return s->failed.has_value(); }));
  EXPECT_THAT(*s->failed, ::testing::HasSubstr("TCP"));
}

// The peer hears of it when a stream is gone, but not before what was said last has arrived.
TEST_F(RdmaSocket, EndsBehindWhatTheStreamSaidLast) {
  open({.drain = seconds(20)});
  const auto [c, s] = connect_with_socket();
  settle();
  char byte = 0;
  fabric.hold();
  call([&] {
    s->say("the last words");
    s->stream.reset();
    return 0;
  });
  settle();
  EXPECT_EQ(::recv(socket.get(), &byte, 1, MSG_DONTWAIT), -1);
  fabric.release();
  EXPECT_TRUE(until([&] { return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  EXPECT_EQ(c->text(), "the last words");
}

}  // namespace
}  // namespace cairn::srpc::rdma
