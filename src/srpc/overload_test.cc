// Overload is answered: "busy", and when to come back. Nobody waits for nothing until his time is over.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "srpc/testing/any_transport.h"
#include "srpc/testing/middleman.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

// The hint follows from how long calls take and how many were refused before.
TEST(Overload, TellsEachWhenItsTurnCouldCome) {
  Bench bench({.max_running = 4});
  Channel& channel = bench.make_channel();
  struct Called {
    ErrorDetail detail;
    Errc code = Errc::ok;
  };
  const auto call = [&](size_t count) {
    std::vector<Called> all(count);
    Scope scope(bench.loop);
    for (Called& called : all) {
      scope.spawn(
          +[](Channel* c, Called* out) -> Task<void> {
            out->code = (co_await c->call<Echo>({.meta = {1, 20'000}}, {.detail = &out->detail})).code();
          },
          &channel, &called);
    }
    EXPECT_TRUE(bench.loop.run_until([&] { return scope.running() == 0; }));
    return all;
  };
  for (const Called& called : call(4)) EXPECT_EQ(called.code, Errc::ok);
  const auto all = call(12);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(all[i].code, Errc::ok);
  // Four at a time take 20 ms: there is room for one more each 5 ms.
  for (size_t i = 4; i < 12; ++i) {
    EXPECT_EQ(all[i].code, Errc::busy);
    EXPECT_EQ(all[i].detail.retry_after.us(), static_cast<int64_t>(i - 3) * 5000) << i;
  }
}

struct Tally {
  int ok = 0;
  int busy = 0;
  int other = 0;
  Duration longest_hint;
};

// Comes back when it is told to.
template <Method M>
Task<void> until_served(Channel* channel, Message<typename M::Request> request, Tally* tally) {
  for (;;) {
    ErrorDetail detail;
    auto reply = co_await channel->call<M>(Message<typename M::Request>(request),
                                           {.deadline = channel->loop().now() + seconds(60), .detail = &detail});
    if (reply) {
      ++tally->ok;
      co_return;
    }
    if (reply.code() != Errc::busy) {
      ++tally->other;
      ADD_FAILURE() << reply.error().to_string();
      co_return;
    }
    ++tally->busy;
    EXPECT_GT(detail.retry_after.ns, 0);
    tally->longest_hint = std::max(tally->longest_hint, detail.retry_after);
    (void)co_await channel->loop().sleep(detail.retry_after);
  }
}

class OverloadOver : public AnyTransport {
 protected:
  void SetUp() override {}
  // All of the server's memory that requests may have, but for `left` blocks of 1 MiB.
  void hoard(size_t left) {
    host->call([&] {
      while (auto buf = host->pool.try_alloc(mem::kMaxBlock, mem::Purpose::request)) hoarded.push_back(*std::move(buf));
      while (auto buf = host->pool.try_alloc(mem::kPage, mem::Purpose::request))
        hoarded_pages.push_back(*std::move(buf));
      for (size_t i = 0; i < left && !hoarded.empty(); ++i) hoarded.pop_back();
      return 0;
    });
  }
  void release() {
    host->call([&] {
      hoarded.clear();
      hoarded_pages.clear();
      return 0;
    });
  }
  // 64 connections with 64 requests each.
  static Task<void> put_everywhere(std::vector<Channel*> channels, mem::BufChain payload, Tally* tally) {
    Scope scope(channels.front()->loop());
    for (Channel* channel : channels) {
      for (int i = 0; i < 64; ++i) scope.spawn(&until_served<Put>, channel, Message<None>{.data = payload}, tally);
    }
    co_await scope.join();
  }
  mem::BufChain payload(size_t size) { return *client->run(&make_payload, &client->pool, size, CancelToken()); }
  // Buffers that belong to the client's thread die there.
  void drop(mem::BufChain& chain) {
    client->call([&] {
      chain.clear();
      return 0;
    });
  }

  std::vector<mem::Buf> hoarded;
  std::vector<mem::Buf> hoarded_pages;
};
INSTANTIATE_TEST_SUITE_P(Transports, OverloadOver, kAllCarriers, &name_of);

TEST_P(OverloadOver, WhoComesBackAsToldIsServed) {
  start({.max_running = 8});
  Channel& channel = make_channel();
  Tally tally;
  client->run(
      +[](Channel* c, Tally* t) -> Task<void> {
        Scope scope(c->loop());
        for (int i = 0; i < 300; ++i) scope.spawn(&until_served<Echo>, c, Message<EchoBody>{.meta = {1, 2000}}, t);
        co_await scope.join();
      },
      &channel, &tally);
  EXPECT_EQ(tally.ok, 300);
  EXPECT_EQ(tally.other, 0);
  EXPECT_GT(tally.busy, 0);
  // Calls took 2 ms, whoever came last had 292 before him.
  EXPECT_GT(tally.longest_hint, milliseconds(10));
}

// P06: memory for 16 requests, 64 connections with 64 requests each. Everybody is served, nobody has to come again on
// another connection.
TEST_P(OverloadOver, AFewBuffersServeMany) {
  start({});
  auto data = payload(20'000);
  hoard(1);
  std::vector<Channel*> all;
  for (int i = 0; i < 64; ++i) all.push_back(&make_channel());
  Tally tally;
  client->run(&put_everywhere, all, data, &tally);
  EXPECT_EQ(tally.ok, 64 * 64);
  EXPECT_EQ(tally.other, 0);
  EXPECT_EQ(client->call([&] { return client->metrics.connects.value(); }), 64U);
  release();
  drop(data);
}

// P06: no memory at all when they connect. They are accepted, and who needs none is served.
TEST_P(OverloadOver, NothingIsFreeWhenTheyConnect) {
  start({});
  auto data = payload(20'000);
  hoard(0);
  std::vector<Channel*> all;
  for (int i = 0; i < 64; ++i) all.push_back(&make_channel());
  Tally tally;
  Tally small;
  Scope waiting(*client->reactor);
  for (Channel* channel : all) {
    client->run(&until_served<Echo>, channel, Message<EchoBody>{}, &small);
  }
  EXPECT_EQ(small.ok, 64);
  client->call([&] {
    waiting.spawn(&put_everywhere, all, data, &tally);
    return 0;
  });
  std::vector<Channel*> late;
  for (int i = 0; i < 10; ++i) late.push_back(&make_channel());
  for (Channel* channel : late) {
    client->run(&until_served<Echo>, channel, Message<EchoBody>{}, &small);
  }
  EXPECT_EQ(small.ok, 74);
  release();
  client->run(+[](Scope* scope) -> Task<void> { co_await scope->join(); }, &waiting);
  EXPECT_EQ(tally.ok, 64 * 64);
  drop(data);
}

// Memory doesn't come back in time: each hears so before his time is over, and the connection goes on.
TEST_P(OverloadOver, NoMemoryIsBusyToo) {
  start({});
  auto small = payload(20'000);
  auto large = payload(2'500'000);  // of several blocks
  hoard(0);
  Channel& channel = make_channel();
  struct Codes {
    int busy = 0;
    int ok = 0;
    int other = 0;
  } codes;
  client->run(
      +[](Channel* c, mem::BufChain one, mem::BufChain other, Codes* out) -> Task<void> {
        Scope scope(c->loop());
        const auto put = +[](Channel* to, mem::BufChain data, Codes* counted) -> Task<void> {
          ErrorDetail detail;
          auto reply = co_await to->call<Put>({.data = std::move(data)},
                                              {.deadline = to->loop().now() + seconds(2), .detail = &detail});
          ++(reply ? counted->ok : reply.code() == Errc::busy ? counted->busy : counted->other);
          if (reply.code() == Errc::busy) EXPECT_GT(detail.retry_after.ns, 0);
        };
        for (int i = 0; i < 20; ++i) scope.spawn(put, c, i % 3 == 2 ? other : one, out);
        co_await scope.join();
      },
      &channel, small, large, &codes);
  EXPECT_EQ(codes.other, 0);
  // In one process payload passes by reference, and needs no memory.
  EXPECT_EQ(in_process() ? codes.ok : codes.busy, 20);
  release();
  EXPECT_EQ(client->run(
                +[](Channel* c, mem::BufChain data) -> Task<Errc> {
                  // Until the server believes in its memory again.
                  for (;;) {
                    ErrorDetail detail;
                    auto reply = co_await c->call<Put>({.data = data}, {.detail = &detail});
                    if (reply.code() != Errc::busy) {
                      if (reply) EXPECT_EQ(reply->meta.crc, crc_of(data));
                      co_return reply.code();
                    }
                    (void)co_await c->loop().sleep(detail.retry_after);
                  }
                },
                &channel, large),
            Errc::ok);
  EXPECT_EQ(client->call([&] { return client->metrics.connects.value(); }), 1U);
  drop(small);
  drop(large);
}

}  // namespace
}  // namespace cairn::srpc
