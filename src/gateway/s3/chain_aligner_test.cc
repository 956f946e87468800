#include "gateway/s3/chain_aligner.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "mem/arena.h"
#include "reactor/testing/test_loop.h"

namespace cairn::s3 {
namespace {

class ChainAlignerTest : public ::testing::Test {
 protected:
  ChainAlignerTest() {
    // Unaligned: it must be copied, which takes a block. All others are taken.
    chain = mem::BufChain(pool.try_alloc(mem::kPage)->slice(100, 1000));
    while (auto buf = pool.try_alloc(mem::kPage)) hoard.push_back(*std::move(buf));
    scope.spawn(&push, this);
  }
  ~ChainAlignerTest() override {
    chain.clear();
    hoard.clear();
    loop.run(+[](Scope* its) -> Task<void> { co_await its->close(); }, &scope);
  }
  static Task<void> push(ChainAlignerTest* self) {
    self->result.emplace(co_await self->aligner.push(self->chain, self->cancel));
  }

  TestLoop loop;
  Registry registry;
  mem::Arena arena = *mem::Arena::create(size_t{2} << 20);
  mem::Pool pool{loop, registry, arena.memory(), 0};
  mem::BufChain chain;
  std::vector<mem::Buf> hoard;
  CancelSource cancel;
  ChainAligner aligner{pool};
  std::optional<Result<mem::BufChain>> result;
  Scope scope{loop};
};

// What it and others like it hold may be what all of them wait for.
TEST_F(ChainAlignerTest, GivesUpWhenMemoryStaysShort) {
  loop.advance(milliseconds(9999));
  EXPECT_FALSE(result) << "it waits for a while";
  loop.advance(milliseconds(2));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->code(), Errc::busy);
  // Nor is it in the queue any more: what becomes free is for others.
  hoard.clear();
  chain.clear();
  loop.run_ready_only();
  EXPECT_EQ(pool.free_bytes(), pool.total_bytes());
}

TEST_F(ChainAlignerTest, GoesOnWhenMemoryComesInTime) {
  loop.advance(milliseconds(9999));
  hoard.clear();
  loop.run_ready_only();
  ASSERT_TRUE(result);
  ASSERT_TRUE(*result) << result->error().to_string();
  EXPECT_EQ(aligner.finish().size(), 1000u);
}

TEST_F(ChainAlignerTest, ACancelledCopyIsNotBusy) {
  loop.advance(seconds(5));
  cancel.cancel();
  loop.run_ready_only();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->code(), Errc::cancelled);
}

}  // namespace
}  // namespace cairn::s3
