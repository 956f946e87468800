#include "reactor/ring.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

struct Counted final : RingOp {
  Counted() : RingOp(+[](RingOp& op, int32_t, uint32_t) { ++static_cast<Counted&>(op).completions; }) {}
  int completions = 0;
};

class RingTest : public ::testing::Test {
 protected:
  // An operation that has completed when it has been submitted.
  void submit() {
    ring->submit(&op, [](io_uring_sqe& sqe) { io_uring_prep_nop(&sqe); });
  }

  Counter enters;
  std::unique_ptr<Ring> ring = *Ring::create(64, enters);
  Counted op;
};

// A device shall not idle while a long round goes on: what is queued doesn't wait for the round's end.
TEST_F(RingTest, SeveralOperationsAreSubmittedAtOnce) {
  ASSERT_TRUE(ring->enable());
  for (int round = 1; round <= 3; ++round) {
    for (unsigned i = 1; i < Ring::kSubmitAt; ++i) submit();
    EXPECT_FALSE(ring->has_completions()) << "fewer wait for company";
    submit();
    EXPECT_TRUE(ring->has_completions());
    EXPECT_EQ(ring->reap(), Ring::kSubmitAt);
    EXPECT_FALSE(ring->wants_enter()) << "nothing is left for the round's end";
    EXPECT_EQ(enters.value(), static_cast<uint64_t>(round)) << "one system call for all of them";
  }
  EXPECT_EQ(op.completions, 3 * static_cast<int>(Ring::kSubmitAt));
}

// Only the thread that enables the ring may submit.
TEST_F(RingTest, NothingIsSubmittedBeforeItIsEnabled) {
  for (unsigned i = 0; i < 2 * Ring::kSubmitAt; ++i) submit();
  EXPECT_EQ(enters.value(), 0u);
  EXPECT_FALSE(ring->has_completions());
  ASSERT_TRUE(ring->enable());
  ring->enter();
  EXPECT_EQ(ring->reap(), 2 * Ring::kSubmitAt);
}

}  // namespace
}  // namespace cairn
