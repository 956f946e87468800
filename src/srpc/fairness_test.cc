// Connections of one poll group take turns: one with a thousand calls under way doesn't keep another one waiting.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "srpc/testing/middleman.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr uint32_t kMany = 1000;
constexpr uint64_t kOther = 1'000'000;  // number of the one call

Task<void> one_echo(Channel* channel, uint64_t number) {
  auto reply = co_await channel->call<Echo>({.meta = {number, 0}});
  EXPECT_TRUE(reply) << reply.error().to_string();
}

TEST(Fairness, OneCallPassesAThousand) {
  uint32_t answered = 0;
  uint32_t before = UINT32_MAX;
  Bench bench({.credits = 4000}, [&](const Passing& passing) {
    if (passing.header.kind == Kind::reply) {
      EchoBody body;
      std::memcpy(&body, passing.metadata.data(), sizeof body);
      if (body.number == kOther + 1) before = answered;
      ++answered;
    }
    return passing.bytes;
  });
  Channel& many = bench.make_channel();
  Channel& one = bench.make_channel();
  EXPECT_TRUE(bench.echo(many) && bench.echo(one));
  answered = 0;
  Scope scope(bench.loop);
  for (uint64_t i = 0; i < kMany; ++i) scope.spawn(&one_echo, &many, i);
  // Behind all of them, as far as the network goes.
  scope.spawn(&one_echo, &one, kOther);
  EXPECT_TRUE(bench.loop.run_until([&] { return scope.running() == 0; }));
  EXPECT_EQ(answered, kMany + 1);
  // What one connection may have served in one round, in the round before and in the same one.
  EXPECT_LE(before, 2 * 64U);
}

}  // namespace
}  // namespace cairn::srpc
