// Streams over RDMA when everything works: bytes, credits, the end, payload by READ and WRITE.
#include "srpc/rdma/rdma_stream.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cairn::srpc::rdma
