#include "srpc/stream/socket_poll.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

namespace cairn::srpc::stream {
namespace {

class SocketPollTest : public ::testing::Test, public SocketPoll::Events {
 protected:
  SocketPollTest() {
    reactor =
        *Reactor::create({.mode = Mode::economy, .wake_cost = microseconds(30), .rng = rng, .registry = registry});
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()), 0);
    poll = SocketPoll::make(*reactor, sockets[0], *this);
  }
  ~SocketPollTest() override {
    if (poll != nullptr) poll->let_go();
    reactor.reset();
    for (const int fd : sockets) ::close(fd);
  }
  void on_poll_in(bool) override { ++events; }
  void on_poll_out() override { ++events; }

  // Polls, and takes that back while an event is being delivered: the peer has written, and the ring hasn't been asked
  // since. The kernel refuses to remove a poll then (EALREADY), and it goes on.
  static Task<void> lose_a_removal(SocketPollTest* self) {
    self->poll->arm_in();
    EXPECT_TRUE(co_await self->reactor->sleep(milliseconds(2)));
    EXPECT_EQ(::write(self->sockets[1], "x", 1), 1);
    self->poll->disarm_in();
  }
  static Task<void> expect_another_event(SocketPollTest* self) {
    const int before = self->events;
    EXPECT_EQ(::write(self->sockets[1], "y", 1), 1);
    for (int i = 0; i < 2000 && self->events == before; ++i) (void)co_await self->reactor->sleep(milliseconds(1));
    EXPECT_GT(self->events, before);
  }
  static Task<void> pass_rounds(SocketPollTest* self) { (void)co_await self->reactor->sleep(milliseconds(5)); }
  static Task<void> wait_until_gone(SocketPollTest* self) {
    for (int i = 0; i < 2000 && self->poll->in_ring(); ++i) (void)co_await self->reactor->sleep(milliseconds(1));
  }

  SeededRng rng{1};
  Registry registry;
  std::unique_ptr<Reactor> reactor;
  std::array<int, 2> sockets{};
  SocketPoll* poll = nullptr;
  int events = 0;
};

TEST_F(SocketPollTest, ARemovalThatLosesAgainstAnEventIsRepeated) {
  reactor->run_task(&lose_a_removal, this);
  reactor->run_task(&wait_until_gone, this);
  EXPECT_FALSE(poll->in_ring()) << "still polling, though nobody wants it";
}

TEST_F(SocketPollTest, WantedAgainItPollsAfterALostRemoval) {
  reactor->run_task(&lose_a_removal, this);
  poll->arm_in();
  reactor->run_task(&expect_another_event, this);
}

// What is left of it in the ring frees it; a sanitizer or the reactor's end would notice.
TEST_F(SocketPollTest, LivesUntilTheRingHasLetGo) {
  reactor->run_task(&lose_a_removal, this);
  poll->arm_out();
  std::exchange(poll, nullptr)->let_go();
  const int before = events;
  reactor->run_task(&pass_rounds, this);
  EXPECT_EQ(events, before);
}

}  // namespace
}  // namespace cairn::srpc::stream
