// One suite over all transports: what a call promises, whatever carries it.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reactor/scope.h"
#include "srpc/channel.h"
#include "srpc/server.h"
#include "srpc/testing/any_transport.h"
#include "srpc/testing/methods.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

class Srpc : public AnyTransport {};
INSTANTIATE_TEST_SUITE_P(Transports, Srpc, kAllCarriers, &name_of);

Task<void> echo_sizes(Channel* channel, mem::Pool* pool, std::vector<size_t> sizes) {
  for (const size_t size : sizes) {
    auto payload = co_await make_payload(pool, size);
    const uint32_t crc = crc_of(*payload);
    Message<EchoBody> request{.meta = {size, 0}, .tail = std::string(size % 4000, 'k'), .data = *std::move(payload)};
    auto reply = co_await channel->call<Echo>(std::move(request));
    EXPECT_TRUE(reply) << size << " " << reply.error().to_string();
    if (!reply) co_return;
    EXPECT_EQ(reply->meta.number, size + 1);
    EXPECT_EQ(reply->tail, std::string(size % 4000, 'k'));
    EXPECT_EQ(reply->data.size(), size);
    EXPECT_EQ(crc_of(reply->data), crc);
  }
}

TEST_P(Srpc, EchoesPayloadOfAnySize) {
  client->run(&echo_sizes, &make_channel(), &client->pool, std::vector<size_t>{0,       1,
                                                                               2,       47,
                                                                               64,      255,
                                                                               256,     1023,
                                                                               1024,    1025,
                                                                               4095,    4096,
                                                                               4097,    8191,
                                                                               12288,   65535,
                                                                               65536,   65537,
                                                                               262144,  999999,
                                                                               1 << 20, (1 << 20) + 1,
                                                                               3 << 20, (4 << 20) - 1,
                                                                               8 << 20, (16 << 20) - 1,
                                                                               16 << 20});
}

Task<void> check_zero_copies(Channel* channel, mem::Pool* pool) {
  for (const size_t size : {size_t{4096}, size_t{8192}, size_t{65536}, size_t{1} << 20, size_t{4} << 20}) {
    for (int i = 0; i < 3; ++i) {
      auto payload = co_await make_payload(pool, size);
      auto reply = co_await channel->call<Echo>({.meta = {size, 0}, .data = *std::move(payload)});
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      for (const mem::Buf& buf : reply->data.slices()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buf.data()) % 4096, 0U);
      }
      // Small calls in between: the receiver reads ahead then.
      for (int k = 0; k < 70; ++k) EXPECT_TRUE(co_await channel->call<Echo>({.meta = {1, 0}}));
    }
  }
}

TEST_P(Srpc, CopiesNoAlignedPayloadAndChangesNoThread) {
  Channel& channel = make_channel();
  client->run(&echo_sizes, &channel, &client->pool, std::vector<size_t>{0});
  // Entering a thread from this one is a hop, too: the coroutine counts between its start and its end.
  uint64_t hops = 0;
  client->run(
      +[](Channel* c, Host* client, Host* server, uint64_t* hops) -> Task<void> {
        co_await c->loop().yield();  // entering is counted after this coroutine's first step
        const uint64_t before = client->reactor->hops().value() + server->reactor->hops().value();
        co_await check_zero_copies(c, &client->pool);
        *hops = client->reactor->hops().value() + server->reactor->hops().value() - before;
      },
      &channel, client.get(), host, &hops);
  EXPECT_EQ(copied(), 0U);
  if (GetParam() != Carrier::inproc_two_threads) EXPECT_EQ(hops, 0U);  // there each message is one, and says so
}

struct Tally {
  int ok = 0;
  std::map<Errc, int> errors;
};

Task<void> one_echo(Channel* channel, mem::Pool* pool, uint64_t number, size_t size, Tally* tally) {
  auto payload = co_await make_payload(pool, size);
  auto reply = co_await channel->call<Echo>({.meta = {number, 0}, .data = *std::move(payload)});
  if (!reply) {
    ++tally->errors[reply.error().code()];
  } else {
    EXPECT_EQ(reply->meta.number, number + 1);
    EXPECT_EQ(reply->data.size(), size);
    ++tally->ok;
  }
}

Task<void> many_echoes(Channel* channel, mem::Pool* pool, int count, size_t size, Tally* tally) {
  Scope scope(channel->loop());
  for (int i = 0; i < count; ++i) scope.spawn(&one_echo, channel, pool, static_cast<uint64_t>(i), size, tally);
  co_await scope.join();
}

TEST_P(Srpc, AnswersManyCallsAtATime) {
  Channel& channel = make_channel();
  for (const int count : {1, 2, 10, 100, 1000}) {
    for (const size_t size : {size_t{0}, size_t{64}, size_t{4096}, size_t{20000}}) {
      // In the test of one thread both sides share the memory: what waits to be sent may not take all of it.
      if (static_cast<size_t>(count) * size > (size_t{8} << 20)) continue;
      Tally tally;
      client->run(&many_echoes, &channel, &client->pool, count, size, &tally);
      EXPECT_EQ(tally.ok, count);
      EXPECT_TRUE(tally.errors.empty());
    }
  }
  EXPECT_EQ(client->call([&] { return channel.calls_in_flight(); }), 0U);
}

Task<void> check_errors(Channel* channel) {
  for (uint16_t code = 1; code <= static_cast<uint16_t>(Errc::unknown); ++code) {
    ErrorDetail detail;
    auto reply = co_await channel->call<Fail>({.meta = {code}, .tail = "because of 'x'"}, {.detail = &detail});
    EXPECT_EQ(reply.code(), static_cast<Errc>(code));
    EXPECT_EQ(reply.error().message(), "because of 'x'");
    if (reply.code() == Errc::busy) EXPECT_EQ(detail.retry_after, milliseconds(3));
  }
}

TEST_P(Srpc, CarriesErrorsWithTheirText) { client->run(&check_errors, &make_channel()); }

struct Unknown {
  static constexpr MethodId kId{0x7777};
  static constexpr std::string_view kName = "unknown";
  using Request = None;
  using Reply = None;
};
// The same id with another idea of its metadata.
struct ShortEcho {
  static constexpr MethodId kId = Echo::kId;
  static constexpr std::string_view kName = "short_echo";
  using Request = CodeBody;
  using Reply = None;
};

Task<void> check_strange_calls(Channel* channel) {
  auto unknown = co_await channel->call<Unknown>({});
  EXPECT_EQ(unknown.code(), Errc::unsupported);
  auto wrong = co_await channel->call<ShortEcho>({});
  EXPECT_EQ(wrong.code(), Errc::invalid_argument);
  auto long_tail = co_await channel->call<Put>({.meta = {}, .tail = "nobody reads this"});
  EXPECT_EQ(long_tail.code(), Errc::invalid_argument);
  auto too_long = co_await channel->call<Fail>({.meta = {1}, .tail = std::string(4096, 'x')});
  EXPECT_EQ(too_long.code(), Errc::too_large);
  // The connection has survived all that.
  auto echo = co_await channel->call<Echo>({.meta = {1, 0}}, {.map_epoch = 77});
  EXPECT_TRUE(echo);
}

TEST_P(Srpc, RefusesWhatItDoesNotKnow) {
  client->run(&check_strange_calls, &make_channel());
  EXPECT_EQ(host->call([&] { return methods->last_map_epoch; }), 77U);
  EXPECT_EQ(client->metrics.connects.value(), 1U);
}

Task<void> check_deadlines(Channel* channel, Duration patience) {
  Loop& loop = channel->loop();
  (void)co_await channel->wait_connected();
  auto past = co_await channel->call<Hang>({}, {.deadline = loop.now()});
  EXPECT_EQ(past.code(), Errc::timed_out);
  auto hung = co_await channel->call<Hang>({}, {.deadline = loop.now() + patience});
  EXPECT_EQ(hung.code(), Errc::timed_out);
  // One that is met, behind it on the same connection.
  auto echo = co_await channel->call<Echo>({.meta = {5, 1000}}, {.deadline = loop.now() + seconds(20)});
  EXPECT_TRUE(echo);
}

// Waits for what happens on the other side.
template <typename Condition>
void eventually(Host& host, Condition condition) {
  for (int i = 0; i < 5000; ++i) {
    if (host.call(condition)) return;
    host.run(
        +[](Loop* loop) -> Task<void> { (void)co_await loop->sleep(milliseconds(1)); },
        static_cast<Loop*>(host.reactor));
  }
  ADD_FAILURE() << "it never happened";
}

TEST_P(Srpc, DeadlinesTravel) {
  Channel& channel = make_channel();
  // On a busy machine a short one may pass before the request has left.
  for (Duration patience = milliseconds(20); host->call([&] { return methods->hung; }) == 0; patience = patience * 2) {
    client->run(&check_deadlines, &channel, patience);
    eventually(*host, [&] { return methods->hanging == 0 && server->calls_running() == 0; });
  }
  EXPECT_EQ(host->call([&] { return methods->last_hang_reason; }), Errc::timed_out);
}

Task<void> hang_until(Channel* channel, CancelToken token, Errc* code) {
  auto reply = co_await channel->call<Hang>({}, {.cancel = token});
  *code = reply.code();
}

Task<void> check_cancel(Channel* channel, int rounds_before) {
  CancelSource source;
  Errc code = Errc::ok;
  Scope scope(channel->loop());
  scope.spawn(&hang_until, channel, CancelToken(source), &code);
  for (int i = 0; i < rounds_before; ++i) co_await channel->loop().yield();
  source.cancel();
  co_await scope.join();
  EXPECT_EQ(code, Errc::cancelled);
}

TEST_P(Srpc, CancelsAtEveryPoint) {
  // From before the connection is there, through the hello and the request's way, to the running handler.
  const auto cancel_after = [&](int rounds) {
    Channel& channel = make_channel();
    client->run(&check_cancel, &channel, rounds);
    eventually(*host, [&] { return server->calls_running() == 0; });
    client->run(&close_channel, &channel);
  };
  for (int rounds = 0; rounds < 40; ++rounds) cancel_after(rounds);
  // On a busy machine the other thread may need more of ours to get that far.
  for (int rounds = 80; host->call([&] { return methods->hung; }) == 0; rounds *= 2) cancel_after(rounds);
  eventually(*host, [&] { return methods->hanging == 0 && server->connections() == 0; });
}

Task<void> send_notes(Channel* channel, uint64_t count, uint32_t delay_us) {
  for (uint64_t i = 1; i <= count; ++i) {
    EXPECT_TRUE(co_await channel->notify<Note>({.meta = {i, delay_us}}));
  }
}

// More than there are credits, so that each must come back without an answer.
TEST_P(Srpc, NoticesAreServedWithoutAnAnswer) {
  Channel& channel = make_channel();
  client->run(&send_notes, &channel, uint64_t{2000}, uint32_t{0});
  eventually(*host, [&] { return methods->notes == 2000; });
  EXPECT_EQ(host->call([&] { return methods->sum_of_notes; }), 2000u * 2001 / 2);
  // Ones that take their time: no more run at a time than there are credits.
  client->run(&send_notes, &channel, uint64_t{600}, uint32_t{2000});
  eventually(*host, [&] { return methods->notes == 2600 && server->calls_running() == 0; });
}

Task<void> notify_too_late(Channel* channel) {
  auto late = co_await channel->notify<Note>({.meta = {1, 0}}, {.deadline = channel->loop().now()});
  EXPECT_EQ(late.code(), Errc::timed_out);
  CancelSource cancelled;
  cancelled.cancel();
  auto unwanted = co_await channel->notify<Note>({.meta = {1, 0}}, {.cancel = cancelled});
  EXPECT_EQ(unwanted.code(), Errc::cancelled);
  // To a method that doesn't exist, or with the wrong metadata: nobody hears of it, and the connection goes on.
  EXPECT_TRUE(co_await channel->notify<Noted>({.meta = {1, 0}}));
  EXPECT_TRUE(co_await channel->notify<Note>({.meta = {1, 0}, .tail = "more"}));
  EXPECT_TRUE(co_await channel->call<Echo>({.meta = {1, 0}}));
}

TEST_P(Srpc, NoticesThatCannotBeSentSaySo) {
  Channel& channel = make_channel();
  client->run(&notify_too_late, &channel);
  EXPECT_EQ(host->call([&] { return methods->notes; }), 0u);
}

struct Listener {
  void hear(Message<EchoBody> message) { numbers.push_back(message.meta.number); }
  std::vector<uint64_t> numbers;
};

Task<void> subscribe_and_note(Channel* channel, Listener* listener, uint64_t count) {
  EXPECT_TRUE(co_await channel->call<Subscribe>({}));
  for (uint64_t i = 1; i <= count; ++i) {
    // What is pushed before an answer comes before it.
    EXPECT_TRUE(co_await channel->call<Note>({.meta = {i, 0}}));
    EXPECT_EQ(listener->numbers.size(), i);
  }
}

TEST_P(Srpc, PushesInOrderUntilTheConnectionEnds) {
  Listener listener;
  Channel& channel = client->call([&]() -> std::reference_wrapper<Channel> {
    channels.push_back(
        std::make_unique<Channel>(*client->reactor, client->metrics, connector(), with_keys(ChannelOptions{})));
    channels.back()->on_push<Noted>(listener, &Listener::hear);
    return *channels.back();
  });
  client->run(&subscribe_and_note, &channel, &listener, uint64_t{300});
  ASSERT_EQ(listener.numbers.size(), 300u);
  for (uint64_t i = 0; i < 300; ++i) EXPECT_EQ(listener.numbers[i], i + 1);
  close(channel);
  eventually(*host, [&] { return server->connections() == 0; });
  const auto after = host->call([&] { return methods->subscribers.front()->push<Noted>({.meta = {1, 0}}).code(); });
  EXPECT_EQ(after, Errc::closed);
}

Task<void> subscribe_without_handler(Channel* channel) {
  EXPECT_TRUE(co_await channel->call<Subscribe>({}));
  EXPECT_TRUE(co_await channel->call<Note>({.meta = {1, 0}}));
}

TEST_P(Srpc, PushesWithoutAHandlerAreCounted) {
  Channel& channel = make_channel();
  client->run(&subscribe_without_handler, &channel);
  EXPECT_EQ(client->call([&] { return client->metrics.unknown_pushes.value(); }), 1u);
}

template <Method M>
Task<void> call_once(Channel* channel, uint64_t number, mem::BufChain data, Result<Message<EchoBody>>* result) {
  *result = co_await channel->call<M>({.meta = {number, 100'000}, .data = std::move(data)});
}

struct Both {
  Host* client;
  Host* host;
  Server* server;
  Channel* channel;
  Result<Message<EchoBody>> once = Errc::unknown;
  Result<Message<EchoBody>> again = Errc::unknown;
};

// The server ends the connection while both are being served.
Task<void> lose_the_connection(Both* both, const Methods* methods) {
  auto payload = co_await make_payload(&both->client->pool, 10'000);
  Scope scope(both->channel->loop());
  scope.spawn(&call_once<Echo>, both->channel, uint64_t{1}, *payload, &both->once);
  scope.spawn(&call_once<Again>, both->channel, uint64_t{2}, *payload, &both->again);
  for (bool served = false; !served;) {
    (void)co_await both->channel->loop().sleep(milliseconds(1));
    std::atomic<int> answer{-1};
    both->host->reactor->post_from_any_thread([&] {
      const bool now = methods->echoes >= 2;
      if (now) both->server->close_connections({CloseReason::connection_lost, "for a test"});
      answer = now ? 1 : 0;
    });
    while (answer < 0) co_await both->channel->loop().yield();
    served = answer == 1;
  }
  co_await scope.join();
}

TEST_P(Srpc, OnlyIdempotentCallsAreRepeated) {
  Channel& channel = make_channel({.backoff_min = milliseconds(1), .backoff_max = milliseconds(1)});
  Both both{client.get(), host, server.get(), &channel};
  client->run(&lose_the_connection, &both, static_cast<const Methods*>(methods.get()));
  EXPECT_EQ(both.once.code(), Errc::closed);
  ASSERT_TRUE(both.again) << both.again.error().to_string();
  EXPECT_EQ(both.again->meta.number, 3u);
  EXPECT_EQ(both.again->data.size(), 10'000u);
  EXPECT_EQ(client->call([&] { return client->metrics.repeats.value(); }), 1u);
  EXPECT_EQ(host->call([&] { return methods->echoes; }), 3u);
}

TEST_P(Srpc, DropsLateRepliesSafely) {
  Channel& channel = make_channel();
  CancelSource source;
  Errc code = Errc::ok;
  Scope scope(*client->reactor);
  client->call([&] {
    scope.spawn(&hang_until, &channel, CancelToken(source), &code);
    return 0;
  });
  eventually(*host, [&] { return methods->hanging == 1; });
  client->call([&] {
    source.cancel();
    return 0;
  });
  eventually(*client, [&] { return scope.running() == 0; });
  EXPECT_EQ(code, Errc::cancelled);
  // The server still answers, for the credit's sake.
  eventually(*client, [&] { return channel.calls_in_flight() == 0; });
  EXPECT_EQ(client->metrics.late_replies.value(), 1U);
  EXPECT_EQ(host->call([&] { return methods->last_hang_reason; }), Errc::cancelled);
  client->run(&echo_sizes, &channel, &client->pool, std::vector<size_t>{5});
}

Task<void> hang_many(Channel* channel, int count, Tally* tally, std::vector<Duration>* hints) {
  Scope scope(channel->loop());
  const auto one = +[](Channel* c, Tally* t, std::vector<Duration>* h) -> Task<void> {
    ErrorDetail detail;
    auto reply = co_await c->call<Hang>({}, {.deadline = c->loop().now() + milliseconds(300), .detail = &detail});
    ++t->errors[reply.code()];
    if (reply.code() == Errc::busy) h->push_back(detail.retry_after);
  };
  for (int i = 0; i < count; ++i) scope.spawn(one, channel, tally, hints);
  co_await scope.join();
}

TEST_P(Srpc, AnswersBusyWithAHintWhenAMethodIsFull) {
  TearDown();
  start({}, 3);
  Tally tally;
  std::vector<Duration> hints;
  client->run(&hang_many, &make_channel(), 10, &tally, &hints);
  EXPECT_EQ(tally.errors[Errc::busy], 7);
  EXPECT_EQ(tally.errors[Errc::timed_out], 3);
  for (const Duration hint : hints) EXPECT_EQ(hint, milliseconds(7));
}

TEST_P(Srpc, WaitsInOrderWhenCreditsAreUsedUp) {
  TearDown();
  // Far fewer receive slots, calls and bytes than what is asked for at a time.
  start({.credits = 4, .max_calls = 8, .byte_credits = 1 << 20, .max_data = 1 << 20});
  Channel& channel = make_channel();
  for (const size_t size : {size_t{0}, size_t{5000}, size_t{300000}}) {
    Tally tally;
    client->run(&many_echoes, &channel, &client->pool, 24, size, &tally);
    EXPECT_EQ(tally.ok, 24);
  }
  EXPECT_EQ(client->metrics.connects.value(), 1U);
}

TEST_P(Srpc, RefusesCallsBeyondTheQueue) {
  TearDown();
  start({.credits = 2, .max_calls = 2});
  Channel& channel = make_channel({.max_queued = 5});
  Tally tally;
  std::vector<Duration> hints;
  client->run(+[](Channel* c) -> Task<void> { (void)co_await c->wait_connected(); }, &channel);
  client->run(&hang_many, &channel, 10, &tally, &hints);
  EXPECT_EQ(tally.errors[Errc::busy], 3);
  EXPECT_EQ(tally.errors[Errc::timed_out], 7);
}

Task<void> one_get(Channel* channel, uint32_t size, Tally* tally) {
  auto reply = co_await channel->call<Get>({.meta = {.bytes = size, .crc = 0}});
  if (!reply) {
    ++tally->errors[reply.error().code()];
  } else {
    EXPECT_EQ(reply->data.size(), size);
    ++tally->ok;
  }
}

Task<void> many_gets(Channel* channel, int count, uint32_t size, Tally* tally) {
  Scope scope(channel->loop());
  for (int i = 0; i < count; ++i) scope.spawn(&one_get, channel, size, tally);
  co_await scope.join();
}

// More is queued than the limit allows, so the server stops reading; the network takes all of it at once, without
// making anybody wait. It must go on reading.
TEST_P(Srpc, GoesOnAfterRepliesPiledUp) {
  TearDown();
  start({.max_unsent_bytes = 64 << 10});
  Channel& channel = make_channel();
  for (int round = 0; round < 20; ++round) {
    Tally tally;
    client->run(&many_gets, &channel, 20, 30'000U, &tally);
    ASSERT_EQ(tally.ok, 20);
  }
  EXPECT_EQ(client->metrics.connects.value(), 1U);
}

Task<void> hang_and_tell(Channel* channel, Error* error) {
  auto reply = co_await channel->call<Hang>({});
  if (!reply) *error = reply.error();
}

TEST_P(Srpc, ClosingTheChannelEndsItsCalls) {
  Channel& channel = make_channel();
  Error error(Errc::ok);
  Scope scope(*client->reactor);
  client->call([&] {
    scope.spawn(&hang_and_tell, &channel, &error);
    return 0;
  });
  eventually(*host, [&] { return methods->hanging == 1; });
  client->run(&close_channel, &channel);
  eventually(*client, [&] { return scope.running() == 0; });
  EXPECT_EQ(error.code(), Errc::closed);
  eventually(*host, [&] { return methods->hanging == 0 && server->connections() == 0; });
}

Task<void> drain(Server* server, Duration within) { co_await server->drain(server->loop().now() + within); }

TEST_P(Srpc, DrainingLetsCallsFinish) {
  Channel& channel = make_channel();
  Tally tally;
  Scope scope(*client->reactor);
  const auto slow = +[](Channel* c, Tally* t) -> Task<void> {
    auto reply = co_await c->call<Echo>({.meta = {1, 50'000}});
    reply ? ++t->ok : ++t->errors[reply.code()];
  };
  client->call([&] {
    for (int i = 0; i < 20; ++i) scope.spawn(slow, &channel, &tally);
    return 0;
  });
  eventually(*host, [&] { return methods->echoes == 20; });
  host->run(&drain, server.get(), seconds(10));
  eventually(*client, [&] { return scope.running() == 0; });
  EXPECT_EQ(tally.ok, 20);
  EXPECT_EQ(host->call([&] { return server->connections(); }), 0U);
}

TEST_P(Srpc, DrainingCancelsWhatDoesNotEnd) {
  Channel& channel = make_channel();
  Error error(Errc::ok);
  Scope scope(*client->reactor);
  client->call([&] {
    scope.spawn(&hang_and_tell, &channel, &error);
    return 0;
  });
  eventually(*host, [&] { return methods->hanging == 1; });
  host->run(&drain, server.get(), milliseconds(20));
  eventually(*client, [&] { return scope.running() == 0; });
  EXPECT_NE(error.code(), Errc::ok);
  EXPECT_EQ(host->call([&] { return methods->hanging; }), 0U);
}

TEST_P(Srpc, HundredsOfConnectionsComeAndGo) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Channel>> many;
    Tally tally;
    client->call([&] {
      for (int i = 0; i < 100; ++i) {
        many.push_back(
            std::make_unique<Channel>(*client->reactor, client->metrics, connector(), with_keys(ChannelOptions{})));
      }
      return 0;
    });
    for (auto& channel : many) client->run(&many_echoes, channel.get(), &client->pool, 3, size_t{5000}, &tally);
    EXPECT_EQ(tally.ok, 300);
    for (auto& channel : many) client->run(&close_channel, channel.get());
    eventually(*host, [&] { return server->connections() == 0; });
  }
}

}  // namespace
}  // namespace cairn::srpc
