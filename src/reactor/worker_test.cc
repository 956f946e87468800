#include "reactor/worker.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

struct Machinery {
  explicit Machinery(uint32_t index) : worker(make(index, rng, registry)) {
    worker.start("test-" + std::to_string(index));
  }
  static std::unique_ptr<Reactor> make(uint32_t index, Rng& rng, Registry& registry) {
    auto reactor = Reactor::create(
        {.index = index, .mode = Mode::economy, .wake_cost = microseconds(20), .rng = rng, .registry = registry});
    EXPECT_TRUE(reactor) << reactor.error().to_string();
    return std::move(*reactor);
  }
  SeededRng rng{1};
  Registry registry;
  Worker worker;
};

Task<std::thread::id> where() { co_return std::this_thread::get_id(); }

Task<Result<std::string>> slowly(Loop* loop, std::string text) {
  CO_TRY(co_await loop->sleep(milliseconds(2)));
  co_return text + "!";
}

Task<bool> ask_around(Worker* home, Worker* other) {
  const auto here = std::this_thread::get_id();
  const auto there = co_await other->ask(home->reactor(), &where);
  // The answer brought us back.
  const bool back = std::this_thread::get_id() == here;
  const auto self = co_await home->ask(home->reactor(), &where);
  const auto text = co_await other->ask(home->reactor(), &slowly, &other->reactor(), std::string("hello"));
  co_return back&& there != here&& self == here&& text && *text == "hello!";
}

TEST(Worker, RunsCoroutinesOnItsOwnThread) {
  Machinery a(0);
  Machinery b(1);
  const auto thread_a = a.worker.call(&where).get();
  EXPECT_NE(thread_a, std::this_thread::get_id());
  EXPECT_NE(thread_a, b.worker.call(&where).get());
  EXPECT_EQ(thread_a, a.worker.call(&where).get());
  EXPECT_TRUE(a.worker.call(&ask_around, &a.worker, &b.worker).get());
  const auto text = b.worker.call(&slowly, &b.worker.reactor(), std::string("x")).get();
  EXPECT_EQ(*text, "x!");
}

}  // namespace
}  // namespace cairn
