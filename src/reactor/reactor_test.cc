#include "reactor/reactor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "reactor/fd_watch.h"
#include "reactor/mailbox.h"
#include "reactor/offload.h"
#include "reactor/remote_stack.h"
#include "reactor/ring.h"
#include "reactor/signals.h"

namespace cairn {
namespace {

uint64_t metric(const Registry& registry, const std::string& name) {
  const std::string text = Registry::expose({{&registry, ""}});
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? UINT64_MAX : std::stoull(text.substr(at + name.size() + 2));
}

// A reactor with what it needs.
struct World {
  explicit World(Mode mode) {
    reactor = *Reactor::create({.mode = mode, .wake_cost = microseconds(30), .rng = rng, .registry = registry});
  }
  SeededRng rng{1};
  Registry registry;
  std::unique_ptr<Reactor> reactor;
};

class ReactorTest : public ::testing::TestWithParam<Mode> {
 protected:
  World world{GetParam()};
  Reactor& reactor = *world.reactor;
};
INSTANTIATE_TEST_SUITE_P(Modes, ReactorTest, ::testing::Values(Mode::performance, Mode::economy, Mode::automatic));

Task<Time> tell_time(Reactor* reactor) { co_return reactor->now(); }

TEST(Reactor, TellsTheTimeAlsoBeforeItsFirstRound) {
  World world(Mode::economy);
  const SystemClock clock;
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Time before = clock.now();
    EXPECT_GE(world.reactor->run_task(&tell_time, world.reactor.get()), before);
  }
}

Task<int> sleep_a_while(Reactor* reactor, int times) {
  for (int i = 0; i < times; ++i) {
    const Time before = reactor->now();
    EXPECT_TRUE(co_await reactor->sleep(milliseconds(2)));
    EXPECT_GE((reactor->now() - before).ns, milliseconds(2).ns);
  }
  co_return times;
}

TEST_P(ReactorTest, RunsTasksAndTimers) {
  EXPECT_EQ(reactor.run_task(&sleep_a_while, &reactor, 5), 5);
  EXPECT_EQ(reactor.run_task(&sleep_a_while, &reactor, 1), 1);  // and again
}

TEST_P(ReactorTest, RunsWhatOtherThreadsPostInOrder) {
  constexpr int kPosts = 2'000;
  std::vector<int> seen;
  const auto here = std::this_thread::get_id();
  std::thread poster([&] {
    for (int i = 0; i < kPosts; ++i) {
      reactor.post_from_any_thread([&, i] {
        EXPECT_EQ(std::this_thread::get_id(), here);
        seen.push_back(i);
        if (i + 1 == kPosts) reactor.stop();
      });
      if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));  // time to fall asleep
    }
  });
  reactor.run();
  poster.join();
  ASSERT_EQ(seen.size(), static_cast<size_t>(kPosts));
  for (int i = 0; i < kPosts; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_EQ(metric(world.registry, "reactor_cross_thread_hops_total"), static_cast<uint64_t>(kPosts));
}

TEST_P(ReactorTest, StopsFromAnotherThreadAndRunsAgain) {
  for (int i = 0; i < 20; ++i) {
    std::thread stopper([&] {
      if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      reactor.stop();
    });
    reactor.run();
    stopper.join();
  }
}

TEST_P(ReactorTest, DropsPostsThatNeverRan) {
  auto kept = std::make_shared<int>(1);
  reactor.post_from_any_thread([kept] { FAIL(); });
  EXPECT_EQ(kept.use_count(), 2);
  world.reactor.reset();
  EXPECT_EQ(kept.use_count(), 1);
}

// What the mode means, by counters: performance never sleeps, economy never polls in vain for long, and all of them
// serve timers and posts.
TEST(ReactorModes, PerformanceNeverSleepsAndEconomySleepsAtOnce) {
  World performance(Mode::performance);
  performance.reactor->run_task(&sleep_a_while, performance.reactor.get(), 5);
  EXPECT_EQ(metric(performance.registry, "reactor_sleeps_total"), 0u);
  EXPECT_EQ(metric(performance.registry, "reactor_sleep_nanoseconds_total"), 0u);
  EXPECT_GT(metric(performance.registry, "reactor_rounds_total"), 1000u);

  World economy(Mode::economy);
  economy.reactor->run_task(&sleep_a_while, economy.reactor.get(), 5);
  EXPECT_GE(metric(economy.registry, "reactor_sleeps_total"), 5u);
  EXPECT_LT(metric(economy.registry, "reactor_rounds_total"), 100u);
}

Task<void> sleep_long(Reactor* reactor, int times) {
  for (int i = 0; i < times; ++i) EXPECT_TRUE(co_await reactor->sleep(milliseconds(20)));
}

TEST(ReactorModes, AutomaticGivesUpPollingWhenNothingComes) {
  World world(Mode::automatic);
  EXPECT_TRUE(world.reactor->spinning());
  world.reactor->run_task(&sleep_long, world.reactor.get(), 6);
  EXPECT_FALSE(world.reactor->spinning());
  // An idle reactor now does a handful of rounds per event and no more.
  const uint64_t rounds = metric(world.registry, "reactor_rounds_total");
  world.reactor->run_task(&sleep_long, world.reactor.get(), 5);
  EXPECT_LT(metric(world.registry, "reactor_rounds_total") - rounds, 50u);
  world.reactor->set_mode(Mode::performance);
  const uint64_t sleeps = metric(world.registry, "reactor_sleeps_total");
  world.reactor->run_task(&sleep_a_while, world.reactor.get(), 1);
  EXPECT_EQ(metric(world.registry, "reactor_sleeps_total"), sleeps);
}

// All the time is in one of the two modes, as it is in one of work, spin and sleep.
void expect_time_adds_up(const World& world) {
  const auto ns = [&world](const char* what) {
    return metric(world.registry, std::string("reactor_") + what + "_nanoseconds_total");
  };
  EXPECT_EQ(ns("performance") + ns("economy"), ns("work") + ns("spin") + ns("sleep"));
}

TEST(ReactorModes, TimeAndSwitchesAreCounted) {
  World performance(Mode::performance);
  performance.reactor->run_task(&sleep_a_while, performance.reactor.get(), 3);
  EXPECT_GT(metric(performance.registry, "reactor_performance_nanoseconds_total"), 0u);
  EXPECT_EQ(metric(performance.registry, "reactor_economy_nanoseconds_total"), 0u);
  EXPECT_EQ(metric(performance.registry, "reactor_mode_switches_total"), 0u);
  expect_time_adds_up(performance);
  performance.reactor->set_mode(Mode::economy);
  performance.reactor->set_mode(Mode::economy);
  EXPECT_EQ(metric(performance.registry, "reactor_mode_switches_total"), 1u);
  performance.reactor->run_task(&sleep_a_while, performance.reactor.get(), 3);
  EXPECT_GT(metric(performance.registry, "reactor_economy_nanoseconds_total"), 0u);
  expect_time_adds_up(performance);

  World automatic(Mode::automatic);
  automatic.reactor->run_task(&sleep_long, automatic.reactor.get(), 6);  // long enough to give up polling
  EXPECT_GE(metric(automatic.registry, "reactor_mode_switches_total"), 1u);
  EXPECT_GT(metric(automatic.registry, "reactor_performance_nanoseconds_total"), 0u);
  EXPECT_GT(metric(automatic.registry, "reactor_economy_nanoseconds_total"), 0u);
  expect_time_adds_up(automatic);
}

TEST(ReactorModes, WakeUpsAreCountedByKind) {
  World world(Mode::economy);
  const auto woken = [&world](const char* by) {
    const std::string text = Registry::expose({{&world.registry, ""}});
    const std::string name = std::string("reactor_wakeups_total{by=\"") + by + "\"} ";
    return std::stoull(text.substr(text.find(name) + name.size()));
  };
  world.reactor->run_task(&sleep_a_while, world.reactor.get(), 5);
  EXPECT_GE(woken("timer"), 1u);
  EXPECT_EQ(woken("thread"), 0u);
  std::thread poster([&] {
    // Until one finds it asleep.
    while (woken("thread") == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      world.reactor->post_from_any_thread([] {});
    }
    world.reactor->stop();
  });
  world.reactor->run();
  poster.join();
  EXPECT_EQ(metric(world.registry, "reactor_sleeps_total"),
            woken("timer") + woken("thread") + woken("io") + woken("nothing"));
}

// Has work for a while; notes that arm() and disarm() come in pairs, and only around sleeping.
class CountingPoller final : public Poller {
 public:
  int work_left = 0;
  int polls = 0;
  int arms = 0;
  int disarms = 0;
  bool refuse = false;

  size_t poll() override {
    ++polls;
    EXPECT_EQ(arms, disarms);
    if (work_left == 0) return 0;
    --work_left;
    return 1;
  }
  bool arm() override {
    if (refuse) {
      refuse = false;
      work_left = 1;
      return false;
    }
    ++arms;
    return true;
  }
  void disarm() override { ++disarms; }
};

TEST_P(ReactorTest, PollersAreArmedOnlyToSleep) {
  CountingPoller first, second;
  reactor.add_poller(first);
  reactor.add_poller(second);
  first.work_left = 10;
  second.refuse = true;
  reactor.run_task(&sleep_a_while, &reactor, 2);
  EXPECT_EQ(first.work_left, 0);
  EXPECT_GE(first.polls, 10);
  EXPECT_EQ(first.arms, first.disarms);
  EXPECT_EQ(second.arms, second.disarms);
  if (GetParam() == Mode::performance) {
    EXPECT_EQ(first.arms, 0);
  } else {
    EXPECT_GT(second.arms, 0);
    EXPECT_FALSE(second.refuse);     // it was asked ...
    EXPECT_EQ(second.work_left, 0);  // ... and polled instead of put to sleep
  }
  reactor.remove_poller(first);
  reactor.remove_poller(second);
}

TEST_P(ReactorTest, MailboxDeliversInOrderAndRefusesWhenFull) {
  constexpr int kMessages = 2'000;
  int next = 0;
  Mailbox<std::unique_ptr<int>> mailbox(reactor, 8, [&](std::unique_ptr<int> message) {
    EXPECT_EQ(*message, next++);
    if (next == kMessages) reactor.stop();
  });
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) {
      auto message = std::make_unique<int>(i);
      while (!mailbox.try_send(message)) {
        EXPECT_NE(message, nullptr);  // a refused message stays the sender's
        std::this_thread::yield();
      }
    }
  });
  reactor.run();
  sender.join();
  EXPECT_EQ(next, kMessages);
  EXPECT_EQ(metric(world.registry, "reactor_cross_thread_hops_total"), static_cast<uint64_t>(kMessages));
}

TEST(Mailbox, HoldsExactlyItsCapacityAndDestroysWhatWasNotDelivered) {
  World world(Mode::economy);
  auto kept = std::make_shared<int>(1);
  {
    Mailbox<std::shared_ptr<int>> mailbox(*world.reactor, 4, [](std::shared_ptr<int>) { FAIL(); });
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(mailbox.try_send(std::shared_ptr<int>(kept)));
    EXPECT_FALSE(mailbox.try_send(std::shared_ptr<int>(kept)));
    EXPECT_EQ(kept.use_count(), 5);
  }
  EXPECT_EQ(kept.use_count(), 1);
  // Its doorbell is not in the reactor's queue any more.
  world.reactor->run_task(&sleep_a_while, world.reactor.get(), 1);
}

// What runs may take others out of the queue that would run next.
TEST(Remote, WorkCanBeForgottenAtAnyTime) {
  World world(Mode::economy);
  struct Work final : RemoteWork {
    Work(Reactor* r, std::string* l, char n) : RemoteWork(&run_it), reactor(r), log(l), name(n) {}
    static void run_it(RemoteWork& work) {
      auto& self = static_cast<Work&>(work);
      self.log->push_back(self.name);
      if (self.victim != nullptr) self.reactor->forget(*self.victim);
      self.victim = nullptr;
    }
    Reactor* reactor;
    std::string* log;
    char name;
    Work* victim = nullptr;
  };
  std::string log;
  Work a(world.reactor.get(), &log, 'a'), b(world.reactor.get(), &log, 'b'), c(world.reactor.get(), &log, 'c'),
      d(world.reactor.get(), &log, 'd');
  for (Work* work : {&a, &b, &c, &d}) world.reactor->enqueue(*work);
  a.victim = &c;
  world.reactor->forget(b);
  world.reactor->forget(b);
  world.reactor->run_task(&sleep_a_while, world.reactor.get(), 1);
  EXPECT_EQ(log, "ad");
}

struct Item {
  int number = 0;
  Item* next = nullptr;
};

TEST_P(ReactorTest, RemoteStackBringsEverythingFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5'000;
  std::vector<Item> items(kThreads * kEach);
  struct Receiver {
    Reactor& reactor;
    int seen = 0;
    static void take(void* self, Item* item) {
      auto& receiver = *static_cast<Receiver*>(self);
      ++item->number;
      if (++receiver.seen == kThreads * kEach) receiver.reactor.stop();
    }
  } receiver{reactor};
  RemoteStack<Item, &Item::next> stack(reactor, &Receiver::take, &receiver);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) stack.push(&items[static_cast<size_t>(t) * kEach + static_cast<size_t>(i)]);
    });
  }
  reactor.run();
  for (auto& thread : threads) thread.join();
  for (const Item& item : items) ASSERT_EQ(item.number, 1);
}

Task<void> offload_one(Reactor* reactor, OffloadPool* pool, std::thread::id home, int number, int* sum) {
  const int result = co_await offload(*pool, *reactor, [number, home] {
    EXPECT_NE(std::this_thread::get_id(), home);
    return 2 * number;
  });
  EXPECT_EQ(std::this_thread::get_id(), home);
  *sum += result;
}

Task<void> offload_many(Reactor* reactor, OffloadPool* pool, int* sum) {
  Scope scope(*reactor);
  for (int i = 0; i < 1000; ++i) scope.spawn(&offload_one, reactor, pool, std::this_thread::get_id(), i, sum);
  co_await scope.join();
  bool ran = false;
  co_await offload(*pool, *reactor, [&ran] { ran = true; });  // returns nothing
  EXPECT_TRUE(ran);
  auto text = co_await offload(*pool, *reactor, []() -> Result<std::string> { return Error(Errc::busy, "so"); });
  EXPECT_EQ(text.code(), Errc::busy);
}

TEST_P(ReactorTest, OffloadedWorkRunsElsewhereAndReturnsHome) {
  OffloadPool pool("test-helper", 3);
  int sum = 0;
  reactor.run_task(&offload_many, &reactor, &pool, &sum);
  EXPECT_EQ(sum, 999 * 1000);
}

TEST(OffloadPool, FinishesWhatIsQueuedBeforeItGoes) {
  struct Count final : OffloadPool::Job {
    explicit Count(std::atomic<int>* t) : Job(&run), total(t) {}
    static void run(Job& job) { ++*static_cast<Count&>(job).total; }
    std::atomic<int>* total;
  };
  std::atomic<int> total{0};
  std::deque<Count> jobs;
  {
    OffloadPool pool("test-helper", 2);
    for (int i = 0; i < 100; ++i) pool.submit(jobs.emplace_back(&total));
  }
  EXPECT_EQ(total.load(), 100);
}

Task<int> next_signal(Signals* signals, Reactor* reactor, CancelToken token) {
  auto signal = co_await signals->next(*reactor, token);
  co_return signal ? *signal : -static_cast<int>(signal.code());
}

TEST_P(ReactorTest, SignalsAreAwaited) {
  auto signals = Signals::block({SIGUSR1, SIGUSR2});
  ASSERT_TRUE(signals) << signals.error().to_string();
  std::thread sender([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ::kill(::getpid(), SIGUSR1);
  });
  EXPECT_EQ(reactor.run_task(&next_signal, &*signals, &reactor, CancelToken()), SIGUSR1);
  sender.join();
  ::kill(::getpid(), SIGUSR2);  // waits for the next call
  EXPECT_EQ(reactor.run_task(&next_signal, &*signals, &reactor, CancelToken()), SIGUSR2);
  CancelSource source;
  source.cancel();
  EXPECT_EQ(reactor.run_task(&next_signal, &*signals, &reactor, CancelToken(source)),
            -static_cast<int>(Errc::cancelled));
}

// Fills the submission queue several times over within one round.
class NopCounter final : public RingOp {
 public:
  NopCounter() : RingOp(&on_complete) {}
  int completed = 0;

 private:
  static void on_complete(RingOp& op, int32_t result, uint32_t) {
    EXPECT_EQ(result, 0);
    ++static_cast<NopCounter&>(op).completed;
  }
};

Task<void> submit_nops(Reactor* reactor, NopCounter* counter, int count) {
  for (int i = 0; i < count; ++i) reactor->ring().submit(counter, [](io_uring_sqe& sqe) { io_uring_prep_nop(&sqe); });
  while (counter->completed < count) co_await reactor->yield();
}

TEST_P(ReactorTest, MoreOperationsThanTheRingHoldsAllComplete) {
  NopCounter counter;
  reactor.run_task(&submit_nops, &reactor, &counter, 20'000);
  EXPECT_EQ(counter.completed, 20'000);
}

// Two pipes: each event is answered before the next one is made, because edges that come together are one event.
Task<void> watch_pipe(Reactor* reactor, int in, int answer) {
  FdWatch watch(*reactor, in);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(co_await watch.readable());
    char byte = 0;
    EXPECT_EQ(::read(in, &byte, 1), 1);
    EXPECT_EQ(::write(answer, &byte, 1), 1);
  }
}

TEST_P(ReactorTest, FdWatchSeesEachEvent) {
  int there[2], back[2];
  ASSERT_EQ(::pipe(there), 0);
  ASSERT_EQ(::pipe(back), 0);
  const Fd ends[] = {Fd(there[0]), Fd(there[1]), Fd(back[0]), Fd(back[1])};
  std::thread asker([&] {
    for (const char byte : {'a', 'b', 'c'}) {
      EXPECT_EQ(::write(there[1], &byte, 1), 1);
      char answer = 0;
      EXPECT_EQ(::read(back[0], &answer, 1), 1);
      EXPECT_EQ(answer, byte);
    }
  });
  reactor.run_task(&watch_pipe, &reactor, there[0], back[1]);
  asker.join();
}

}  // namespace
}  // namespace cairn
