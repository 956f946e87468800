// What compilers have got wrong about coroutines, as g++ 12 does. If one of these fails, change the compiler, not the
// code.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "reactor/scope.h"
#include "reactor/task.h"
#include "reactor/testing/test_loop.h"

namespace cairn {
namespace {

// Counts its living instances: a double destruction or a leak shows.
class Counted {
 public:
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  Counted(const Counted& other) : alive_(other.alive_) { ++*alive_; }
  Counted(Counted&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive_; }

 private:
  int* alive_;
};

struct Aggregate {
  Counted first;
  std::string text;
  Counted second;
  std::unique_ptr<int> number;
};

Task<size_t> use(Aggregate aggregate) { co_return aggregate.text.size() + static_cast<size_t>(*aggregate.number); }
Task<size_t> use_reference(const Aggregate& aggregate) {
  co_return aggregate.text.size() + static_cast<size_t>(*aggregate.number);
}

Task<size_t> pass_temporaries(int* alive) {
  size_t sum = 0;
  for (int i = 0; i < 3; ++i) {
    sum += co_await use(
        Aggregate{Counted(alive), "a text that needs the heap to be kept", Counted(alive), std::make_unique<int>(i)});
    sum += co_await use_reference(
        {Counted(alive), "another text that needs the heap", Counted(alive), std::make_unique<int>(10 * i)});
    EXPECT_EQ(*alive, 0);
  }
  co_return sum;
}

TEST(CompilerProbe, AggregateTemporariesLiveAndDieOnce) {
  TestLoop loop;
  int alive = 0;
  EXPECT_EQ(loop.run(&pass_temporaries, &alive), 3u * 37 + 3u * 32 + 3 + 30);
  EXPECT_EQ(alive, 0);
}

Task<int> depth(int left) {
  if (left == 0) co_return 0;
  co_return 1 + co_await depth(left - 1);
}

TEST(CompilerProbe, AMillionNestedTasksUseNoStack) {
  TestLoop loop;
  EXPECT_EQ(loop.run(&depth, 1'000'000), 1'000'000);
}

Task<int> one() { co_return 1; }
Task<int> sum_in_a_loop(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await one();
  while (co_await one() + sum < count + 5) ++sum;
  co_return co_await one() > 0 ? sum : -1;
}

TEST(CompilerProbe, AMillionTasksInALoopUseNoStack) {
  TestLoop loop;
  EXPECT_EQ(loop.run(&sum_in_a_loop, 1'000'000), 1'000'004);
}

Task<Result<std::unique_ptr<int>>> fail_if(bool fail, int value) {
  if (fail) co_return Error(Errc::busy, "as asked");
  co_return std::make_unique<int>(value);
}
Task<Result<void>> check(bool fail) {
  if (fail) co_return Error(Errc::closed);
  co_return Result<void>();
}
Task<Result<int>> try_in_places(int fail_at) {
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (i % 2 == 0) {
      CO_TRY(auto value, co_await fail_if(fail_at == i, i));
      sum += *value;
    } else {
      CO_TRY(co_await check(fail_at == i));
    }
  }
  CO_TRY(const std::unique_ptr<int> last, co_await fail_if(fail_at == 3, 40));
  co_return sum + *last;
}

TEST(CompilerProbe, TryWorksInLoopsAndBranches) {
  TestLoop loop;
  EXPECT_EQ(*loop.run(&try_in_places, -1), 42);
  EXPECT_EQ(loop.run(&try_in_places, 0).code(), Errc::busy);
  EXPECT_EQ(loop.run(&try_in_places, 1).code(), Errc::closed);
  EXPECT_EQ(loop.run(&try_in_places, 2).error().message(), "as asked");
  EXPECT_EQ(loop.run(&try_in_places, 3).code(), Errc::busy);
}

struct Sink {
  std::vector<std::string> texts;
  Task<void> keep(std::string text, std::unique_ptr<std::string> more) {
    texts.push_back(text + *more);
    co_return;
  }
};

TEST(CompilerProbe, SpawnedMembersKeepTheirArguments) {
  TestLoop loop;
  Sink sink;
  Scope scope(loop);
  scope.spawn(&Sink::keep, &sink, std::string("a text that is long enough for the heap, "),
              std::make_unique<std::string>("and more"));
  EXPECT_EQ(scope.running(), 0u);
  EXPECT_EQ(sink.texts.front(), "a text that is long enough for the heap, and more");
}

}  // namespace
}  // namespace cairn
