// Calls that are executed once, however often their connection is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "srpc/extensions.h"
#include "srpc/testing/any_transport.h"
#include "srpc/testing/middleman.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr Id128 kLife{{1}};

Task<void> add(Channel* channel, uint64_t number, uint32_t delay_us, mem::BufChain data,
               Result<Message<EchoBody>>* result) {
  *result = co_await channel->call<Add>({.meta = {number, delay_us}, .data = std::move(data)},
                                        {.deadline = channel->loop().now() + seconds(50)});
}

class Sequences : public AnyTransport {
 protected:
  void SetUp() override { start({.server_id = kLife}); }
  Channel& channel_that_comes_back() {
    return make_channel({.backoff_min = milliseconds(1), .backoff_max = milliseconds(1)});
  }
  // On the server's thread, when `done` says so there.
  struct Lose {
    Host* host;
    Server* server;
    const Methods* methods;
    Channel* channel;
  };
  // Ends the connection once `adds` calls have been begun.
  static Task<void> lose_after(const Lose* lose, uint64_t adds) {
    for (bool done = false; !done;) {
      std::atomic<int> answer{-1};
      lose->host->reactor->post_from_any_thread([&] {
        const bool now = lose->methods->adds >= adds;
        if (now) lose->server->close_connections({CloseReason::connection_lost, "for a test"});
        answer = now ? 1 : 0;
      });
      while (answer < 0) co_await lose->channel->loop().yield();
      done = answer == 1;
      if (!done) (void)co_await lose->channel->loop().sleep(milliseconds(1));
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Sequences, kAllCarriers, &name_of);

// The first execution still runs when the call comes again.
TEST_P(Sequences, ARepeatWaitsForTheExecutionThatRuns) {
  Channel& channel = channel_that_comes_back();
  Lose lose{host, server.get(), methods.get(), &channel};
  Result<Message<EchoBody>> result = Errc::unknown;
  client->run(
      +[](Lose* l, mem::Pool* pool, Result<Message<EchoBody>>* out) -> Task<void> {
        auto payload = co_await make_payload(pool, 10'000);
        Scope scope(l->channel->loop());
        scope.spawn(&add, l->channel, uint64_t{7}, 100'000U, *payload, out);
        co_await lose_after(l, 1);
        co_await scope.join();
      },
      &lose, &client->pool, &result);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->meta.number, 7U);
  EXPECT_EQ(result->data.size(), 10'000U);
  EXPECT_EQ(client->call([&] { return client->metrics.repeats.value(); }), 1U);
  EXPECT_EQ(host->call([&] { return methods->adds; }), 1U);
  EXPECT_EQ(host->call([&] { return methods->adds_cancelled; }), 0U);
}

TEST_P(Sequences, AreExecutedOnceWhateverIsLost) {
  constexpr int kCalls = 200;
  Channel& channel = channel_that_comes_back();
  Lose lose{host, server.get(), methods.get(), &channel};
  std::vector<Result<Message<EchoBody>>> results(kCalls, Errc::unknown);
  client->run(
      +[](Lose* l, std::vector<Result<Message<EchoBody>>>* out) -> Task<void> {
        Scope scope(l->channel->loop());
        for (size_t i = 0; i < out->size(); ++i) {
          scope.spawn(&add, l->channel, uint64_t{1}, static_cast<uint32_t>(i % 7 * 1500), mem::BufChain(), &(*out)[i]);
          if (i % 10 == 9) co_await lose_after(l, i - 5);
        }
        co_await scope.join();
      },
      &lose, &results);
  // Each sum was given to one call: none was added twice, none answered with another's answer.
  std::vector<uint64_t> sums;
  for (const auto& result : results) {
    ASSERT_TRUE(result) << result.error().to_string();
    sums.push_back(result->meta.number);
  }
  std::ranges::sort(sums);
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], i + 1);
  EXPECT_EQ(host->call([&] { return methods->adds; }), uint64_t{kCalls});
  EXPECT_GT(client->call([&] { return client->metrics.repeats.value(); }), 0U);
}

// A server without an identity of its life can't promise anything.
TEST_P(Sequences, NeedALifeToComeBackTo) {
  TearDown();
  start({});
  Channel& channel = channel_that_comes_back();
  Lose lose{host, server.get(), methods.get(), &channel};
  Result<Message<EchoBody>> result = Errc::unknown;
  client->run(
      +[](Lose* l, Result<Message<EchoBody>>* out) -> Task<void> {
        Scope scope(l->channel->loop());
        scope.spawn(&add, l->channel, uint64_t{7}, 20'000U, mem::BufChain(), out);
        co_await lose_after(l, 1);
        co_await scope.join();
      },
      &lose, &result);
  EXPECT_EQ(result.code(), Errc::closed);
  EXPECT_EQ(client->call([&] { return client->metrics.repeats.value(); }), 0U);
}

// --- One server whose messages are looked at, lost and altered ---

ServerOptions with_life(SequenceLimits limits = {}) { return {.server_id = kLife, .sequences = limits}; }

// A call and what becomes of it, on a bench.
struct Made {
  explicit Made(Bench& bench, Channel& channel, uint32_t delay_us = 0, size_t bytes = 0) : scope(bench.loop) {
    auto payload = bench.loop.run(&make_payload, &bench.pool, bytes, CancelToken());
    scope.spawn(&add, &channel, uint64_t{1}, delay_us, *std::move(payload), &result);
  }
  Result<Message<EchoBody>> result = Errc::unknown;
  Scope scope;
};

// Replies of `add` are lost, and the connection after them, as often as `losses` says.
struct Loses {
  Bench* bench = nullptr;
  int losses = 0;
  Bytes operator()(const Passing& passing) {
    if (passing.header.kind != Kind::reply || passing.header.method != Add::kId || losses == 0) return passing.bytes;
    --losses;
    bench->loop.post(
        [](void* server) {
          static_cast<Server*>(server)->close_connections({CloseReason::connection_lost, "for a test"});
        },
        &bench->server);
    return {};
  }
};

class SequenceBench : public ::testing::Test {
 protected:
  void open(ServerOptions options) {
    bench = std::make_unique<Bench>(options, [this](const Passing& passing) { return (*loses)(passing); });
    loses->bench = bench.get();
  }
  uint64_t counted(std::string_view name) { return bench->registry.counter(name, "").value(); }
  int64_t kept() { return bench->registry.gauge("srpc_server_answers_kept", "").value(); }
  void finish(Made& made) {
    EXPECT_TRUE(bench->loop.run_until([&] { return made.scope.running() == 0; }));
  }

  std::unique_ptr<Loses> loses = std::make_unique<Loses>();
  std::unique_ptr<Bench> bench;
};

TEST_F(SequenceBench, GivesTheSameAnswerAgain) {
  open(with_life());
  Channel& channel = bench->make_channel({}, false);
  loses->losses = 5;
  Made made(*bench, channel, 0, 5000);
  finish(made);
  ASSERT_TRUE(made.result) << made.result.error().to_string();
  EXPECT_EQ(made.result->meta.number, 1U);
  EXPECT_EQ(made.result->data.size(), 5000U);
  EXPECT_EQ(bench->methods.adds, 1U);
  EXPECT_EQ(bench->metrics.repeats.value(), 5U);
  EXPECT_EQ(counted("srpc_server_repeats_total"), 5U);
  EXPECT_EQ(kept(), 1);
  // The next call acknowledges it.
  Made next(*bench, channel);
  finish(next);
  EXPECT_EQ(kept(), 1);
  EXPECT_EQ(counted("srpc_server_answers_forgotten_total"), 0U);
}

TEST_F(SequenceBench, AnswersAreKeptForATime) {
  open(with_life({.keep = seconds(60)}));
  Channel& channel = bench->make_channel({}, false);
  Made made(*bench, channel, 0, 5000);
  finish(made);
  const size_t free = bench->pool.free_bytes();
  bench->loop.run_for(seconds(100));
  EXPECT_EQ(kept(), 0);
  EXPECT_EQ(counted("srpc_server_answers_forgotten_total"), 1U);
  made.result = Errc::unknown;
  EXPECT_GT(bench->pool.free_bytes(), free);
  // Its channel is still known, and goes on.
  Made next(*bench, channel);
  finish(next);
  EXPECT_EQ(next.result->meta.number, 2U);
}

// What can't be known to be new is refused, with the truth.
TEST_F(SequenceBench, AnswersTooLargeToKeepAreNotComputedTwice) {
  open(with_life({.channel_bytes = 16 << 10}));
  Channel& channel = bench->make_channel({}, false);
  loses->losses = 1;
  Made made(*bench, channel, 0, 100'000);
  finish(made);
  EXPECT_EQ(made.result.code(), Errc::closed);
  EXPECT_NE(made.result.error().message().find("has forgotten"), std::string::npos);
  EXPECT_EQ(bench->methods.adds, 1U);
  EXPECT_EQ(counted("srpc_server_repeats_refused_total"), 1U);
}

TEST_F(SequenceBench, EachChannelKeepsAsManyAnswersAsItMay) {
  open(with_life({.answers = 4}));
  Channel& channel = bench->make_channel({}, false);
  // The first one runs long and so nothing is acknowledged meanwhile.
  Made slow(*bench, channel, 1'000'000);
  for (int i = 0; i < 10; ++i) {
    Made quick(*bench, channel);
    finish(quick);
    EXPECT_TRUE(quick.result);
    EXPECT_LE(kept(), 4);
  }
  EXPECT_EQ(counted("srpc_server_answers_forgotten_total"), 6U);
  finish(slow);
  EXPECT_TRUE(slow.result);
}

TEST_F(SequenceBench, AllTogetherKeepAsMuchAsTheyMay) {
  open(with_life({.bytes = 64 << 10}));
  for (int i = 0; i < 20; ++i) {
    Made made(*bench, bench->make_channel({}, false), 0, 5000);
    finish(made);
    EXPECT_LE(bench->registry.gauge("srpc_server_answers_kept_bytes", "").value(), 64 << 10);
  }
  EXPECT_GT(kept(), 1);
}

TEST_F(SequenceBench, AnotherLifeKnowsNothing) {
  open(with_life());
  Channel& channel = bench->make_channel({}, false);
  Made made(*bench, channel, 10'000);
  bench->loop.run_for(milliseconds(1));
  EXPECT_EQ(bench->methods.adds, 1U);
  // From now on the server says that it is another one.
  bench->middleman = [](const Passing& passing) {
    if (passing.header.kind != Kind::hello_reply) return passing.bytes;
    Bytes body = passing.metadata;
    body[offsetof(HelloReplyBody, server_id)] = std::byte{9};
    return passing.with(body);
  };
  bench->server.close_connections({CloseReason::connection_lost, "for a test"});
  finish(made);
  EXPECT_EQ(made.result.code(), Errc::closed);
  EXPECT_NE(made.result.error().message().find("was restarted"), std::string::npos) << made.result.error().message();
  EXPECT_EQ(bench->methods.adds, 1U);
}

TEST_F(SequenceBench, WithAnOldPeerTheyAreSentOnce) {
  for (const bool old_server : {true, false}) {
    ServerOptions options = with_life();
    if (old_server) options.protocol.features &= ~uint64_t{kFeatureSequences};
    ChannelOptions channel_options;
    if (!old_server) channel_options.protocol.features &= ~uint64_t{kFeatureSequences};
    open(options);
    Channel& channel = bench->make_channel(channel_options, false);
    Made made(*bench, channel);
    finish(made);
    EXPECT_TRUE(made.result);
    loses->losses = 1;
    Made lost(*bench, channel);
    finish(lost);
    EXPECT_EQ(lost.result.code(), Errc::closed);
    EXPECT_EQ(bench->methods.adds, 2U);
    bench.reset();
  }
}

// Nobody comes back for it: it may go on for as long as an answer would be kept.
TEST_F(SequenceBench, WhatNobodyComesBackForEnds) {
  open(with_life({.keep = seconds(10)}));
  Channel& channel = bench->make_channel({}, false);
  {
    Made made(*bench, channel, 40'000'000);
    bench->loop.run_for(milliseconds(1));
    EXPECT_EQ(bench->methods.adds, 1U);
    bench->loop.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, &channel);
    finish(made);
    EXPECT_EQ(made.result.code(), Errc::closed);
  }
  bench->loop.run_for(seconds(9));
  EXPECT_EQ(bench->methods.adds_cancelled, 0U);
  EXPECT_EQ(bench->server.calls_running(), 1U);
  bench->loop.run_for(seconds(2));
  EXPECT_EQ(bench->methods.adds_cancelled, 1U);
  EXPECT_EQ(bench->server.calls_running(), 0U);
  EXPECT_EQ(bench->server.connections(), 0U);
  bench->loop.run_for(seconds(30));
  EXPECT_EQ(kept(), 0);
}

TEST_F(SequenceBench, CancellingReachesTheExecutionThatRuns) {
  open(with_life());
  Channel& channel = bench->make_channel({}, false);
  CancelSource source;
  Errc code = Errc::ok;
  Scope scope(bench->loop);
  scope.spawn(
      +[](Channel* c, CancelToken token, Errc* out) -> Task<void> {
        *out = (co_await c->call<Add>({.meta = {1, 20'000'000}}, {.cancel = token})).code();
      },
      &channel, CancelToken(source), &code);
  bench->loop.run_for(milliseconds(1));
  bench->server.close_connections({CloseReason::connection_lost, "for a test"});
  bench->loop.run_for(milliseconds(100));
  EXPECT_EQ(bench->methods.adds, 1U);
  EXPECT_EQ(counted("srpc_server_repeats_total"), 1U);
  source.cancel();
  bench->loop.run_for(milliseconds(1));
  EXPECT_EQ(code, Errc::cancelled);
  EXPECT_EQ(bench->methods.adds_cancelled, 1U);
  EXPECT_EQ(bench->server.calls_running(), 0U);
}

TEST_F(SequenceBench, DrainingEndsWhatNobodyWaitsFor) {
  open(with_life());
  Channel& channel = bench->make_channel({}, false);
  Made made(*bench, channel, 40'000'000);
  bench->loop.run_for(milliseconds(1));
  bench->server.close_connections({CloseReason::connection_lost, "for a test"});
  bench->loop.run(+[](Server* s) -> Task<void> { co_await s->drain(s->loop().now() + seconds(1)); }, &bench->server);
  EXPECT_EQ(bench->methods.adds_cancelled, 1U);
  EXPECT_EQ(bench->server.connections(), 0U);
  bench->loop.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, &channel);
  finish(made);
  EXPECT_FALSE(made.result);
}

// --- Nonsense ---

struct Nonsense {
  const char* name;
  CloseReason reason;  // none: the call gets an error instead
  void (*alter)(WireSequence&, Header&, Bytes&);
};

const Nonsense kNonsense[] = {
    {"no channel", CloseReason::bad_header, [](WireSequence& s, Header&, Bytes&) { s.channel = {}; }},
    {"number 0", CloseReason::bad_header, [](WireSequence& s, Header&, Bytes&) { s.number = s.done_below = 0U; }},
    {"the last number", CloseReason::bad_header, [](WireSequence& s, Header&, Bytes&) { s.number = UINT64_MAX; }},
    {"done in the future", CloseReason::bad_header,
     [](WireSequence& s, Header&, Bytes&) { s.done_below = s.number + 1; }},
    {"too short", CloseReason::bad_header, [](WireSequence&, Header&, Bytes& metadata) { metadata.resize(39); }},
    {"another channel", CloseReason::bad_sequence, [](WireSequence& s, Header&, Bytes&) { s.channel[0] ^= 1; }},
    {"done already", CloseReason::none, [](WireSequence& s, Header&, Bytes&) { s.number = s.done_below = 1U; }},
};

TEST(SequenceNonsense, CostsTheConnectionOrTheCall) {
  for (const Nonsense& nonsense : kNonsense) {
    SCOPED_TRACE(nonsense.name);
    int requests = 0;
    Bench bench(with_life(), [&](const Passing& passing) {
      if (passing.header.kind != Kind::request || ++requests < 3) return passing.bytes;
      Header header = passing.header;
      Bytes body = passing.metadata;
      WireSequence sequence;
      std::memcpy(&sequence, body.data(), sizeof sequence);
      nonsense.alter(sequence, header, body);
      std::memcpy(body.data(), &sequence, std::min(sizeof sequence, body.size()));
      return encode_message(header, body);
    });
    Channel& channel = bench.make_channel();
    for (int i = 0; i < 2; ++i) {
      Made made(bench, channel);
      EXPECT_TRUE(bench.loop.run_until([&] { return made.scope.running() == 0; }));
      EXPECT_TRUE(made.result);
    }
    Made made(bench, channel);
    EXPECT_TRUE(bench.loop.run_until([&] { return made.scope.running() == 0; }));
    EXPECT_FALSE(made.result);
    EXPECT_EQ(bench.methods.adds, 2U);
    if (nonsense.reason != CloseReason::none) EXPECT_EQ(bench.closed_by_server(nonsense.reason), 1U);
  }
}

// Extensions that weren't agreed upon, and on messages that have none.
TEST(SequenceNonsense, NeedsAnAgreement) {
  for (const uint8_t extensions : {kExtensionSequence, kExtensionTrace}) {
    Bench bench({}, [&](const Passing& passing) {
      if (passing.header.kind != Kind::request) return passing.bytes;
      Header header = passing.header;
      header.extensions = extensions;
      return encode_message(header, Bytes(100, std::byte{1}));
    });
    Channel& channel = bench.make_channel({.protocol = {.features = 0}});
    EXPECT_FALSE(bench.echo(channel));
    EXPECT_EQ(bench.closed_by_server(CloseReason::bad_sequence), 1U);
    EXPECT_EQ(bench.methods.echoes, 0U);
  }
}

// --- What the table promises, without a network ---

class SequenceTableTest : public ::testing::Test {
 protected:
  static Sequence sequence(uint8_t channel, uint64_t number, uint64_t done_below = 1, uint32_t age_ms = 0) {
    return {{{channel}}, number, done_below, age_ms};
  }
  ManualLoop loop;
  Registry registry;
  // Stands for one that runs; the table only hands it back.
  ServerCall* const call = reinterpret_cast<ServerCall*>(this);
  bool no = false;
};

TEST_F(SequenceTableTest, JudgesRepeatsOfChannelsItMayHaveForgotten) {
  SequenceTable table(loop, registry, {.channels = 1, .keep = seconds(10)}, 1 << 20);
  // A first channel, whose call comes again to a table that has forgotten nobody: executed, as it never was.
  auto* first = table.join(sequence(1, 1, 1, 5000), loop.now(), no);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(table.find(*first, sequence(1, 1, 1, 5000), no), nullptr);
  EXPECT_FALSE(no);
  // No place for a second one while the first has a connection.
  EXPECT_EQ(table.join(sequence(2, 1), loop.now(), no), nullptr);
  EXPECT_FALSE(no);
  table.leave(*first);
  const Time before = loop.now();
  loop.run_for(seconds(3));
  auto* second = table.join(sequence(2, 1), loop.now(), no);
  ASSERT_NE(second, nullptr);
  table.leave(*second);
  // The first one is forgotten. A call of it that was first sent before can't be judged; nor can one that comes only
  // now on a connection that began before.
  loop.run_for(seconds(3));
  EXPECT_EQ(table.join(sequence(1, 1, 1, 5000), loop.now(), no), nullptr);
  EXPECT_TRUE(no);
  EXPECT_EQ(table.join(sequence(1, 1, 1, 0), before, no), nullptr);
  EXPECT_TRUE(no);
  // One that was first sent after is new.
  auto* again = table.join(sequence(1, 9, 9, 1500), loop.now(), no);
  ASSERT_NE(again, nullptr);
  table.leave(*again);
}

TEST_F(SequenceTableTest, WhatRunsIsNeverForgotten) {
  SequenceTable table(loop, registry, {.answers = 1, .channels = 1, .keep = seconds(10)}, 1 << 20);
  auto* channel = table.join(sequence(1, 1), loop.now(), no);
  auto& slow = table.begin(*channel, 1, Add::kId, *call);
  for (uint64_t number = 2; number < 10; ++number) {
    EXPECT_EQ(table.find(*channel, sequence(1, number), no), nullptr);
    EXPECT_FALSE(no);
    table.end(table.begin(*channel, number, Add::kId, *call), {});
  }
  table.leave(*channel);
  loop.run_for(seconds(100));
  EXPECT_EQ(table.join(sequence(2, 1), loop.now(), no), nullptr);
  channel = table.join(sequence(1, 1), loop.now(), no);
  ASSERT_NE(channel, nullptr);
  // Forgotten: 2 to 9. Running: 1, also when it is acknowledged as given up. New: 10.
  EXPECT_EQ(table.find(*channel, sequence(1, 5), no), nullptr);
  EXPECT_TRUE(no);
  EXPECT_EQ(table.find(*channel, sequence(1, 1), no), &slow);
  EXPECT_EQ(table.find(*channel, sequence(1, 10, 10), no), nullptr);
  EXPECT_FALSE(no);
  EXPECT_EQ(table.find(*channel, sequence(1, 1), no), &slow);
  table.end(slow, {});
  EXPECT_EQ(table.find(*channel, sequence(1, 1), no), nullptr);
  EXPECT_TRUE(no);
  table.leave(*channel);
}

}  // namespace
}  // namespace cairn::srpc
