// Traces travel with calls, and slow and late calls are logged with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/log.h"
#include "srpc/testing/any_transport.h"
#include "srpc/testing/middleman.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

const Trace kTrace{{{0x0a, 0xf7, 0x65}}, {0xb7, 1, 2, 3, 4, 5, 6, 7}};

class Traces : public AnyTransport {
 protected:
  void SetUp() override { start({.server_id = {{1}}}); }
  template <Method M>
  Errc call(Channel& channel, const Trace& trace) {
    return client->run(
        +[](Channel* c, Trace t) -> Task<Errc> {
          co_return (co_await c->call<M>({.meta = {1, 0}, .tail = std::string(2000, 't')}, {.trace = t})).code();
        },
        &channel, trace);
  }
  Trace seen() {
    return host->call([&] { return methods->last_trace; });
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Traces, kAllCarriers, &name_of);

TEST_P(Traces, TravelWithTheCall) {
  Channel& channel = make_channel();
  EXPECT_EQ(call<Echo>(channel, kTrace), Errc::ok);
  EXPECT_EQ(seen(), kTrace);
  EXPECT_EQ(call<Echo>(channel, {}), Errc::ok);
  EXPECT_FALSE(seen().is_set());
  // With a sequence in front of it.
  EXPECT_EQ(call<Add>(channel, kTrace), Errc::ok);
  EXPECT_EQ(seen(), kTrace);
}

TEST_P(Traces, StayAtHomeWithAnOldServer) {
  TearDown();
  start({.protocol = {.features = kFeatureNotices}});
  EXPECT_EQ(call<Echo>(make_channel(), kTrace), Errc::ok);
  EXPECT_FALSE(seen().is_set());
}

TEST(TraceLog, NamesSlowAndLateCallsOnceASecond) {
  Bench bench({.slow_call = milliseconds(100)});
  Channel& channel = bench.make_channel();
  const auto call = [&](uint32_t delay_us, Duration patience) {
    bench.loop.run(
        +[](Channel* c, uint32_t delay, Duration within) -> Task<void> {
          (void)co_await c->call<Echo>({.meta = {1, delay}}, {.deadline = c->loop().now() + within, .trace = kTrace});
        },
        &channel, delay_us, patience);
    bench.loop.run_for(milliseconds(1));
  };
  log::setup(log::Level::info, log::Format::text);
  ::testing::internal::CaptureStderr();
  call(50'000, seconds(1));
  call(150'000, seconds(1));    // the line
  call(150'000, seconds(1));    // left out
  call(2'000'000, seconds(1));  // late, a second after the line
  const std::string text = ::testing::internal::GetCapturedStderr();
  log::setup(log::Level::warn, log::Format::text);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_NE(text.find("slow call of echo from wire: queue 0 us, service 150000 us, "
                      "trace 0af76500000000000000000000000000\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("late call of echo from wire: queue 0 us, service 1000000 us, "
                      "trace 0af76500000000000000000000000000 (1 more of late)\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(bench.registry.counter("srpc_server_timed_out_total", "", "method=\"echo\"").value(), 1U);
}

}  // namespace
}  // namespace cairn::srpc
