#include "mem/buf_chain.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mem/arena.h"
#include "mem/pool.h"
#include "reactor/testing/test_loop.h"

namespace cairn::mem {
namespace {

class BufChainTest : public ::testing::Test {
 protected:
  BufChainTest() : arena(*Arena::create(8 << 20)), pool(loop, registry, arena.memory(), 0) {}

  // Bytes that tell their position.
  Buf make(size_t size) {
    Buf buf = *pool.try_alloc(size);
    for (std::byte& b : buf.writable_bytes()) b = static_cast<std::byte>(next_++ * 7 >> 1);
    return buf;
  }
  static std::vector<std::byte> content(const BufChain& chain) {
    std::vector<std::byte> bytes(chain.size());
    chain.copy_metadata_to(bytes);
    return bytes;
  }

  TestLoop loop;
  Registry registry;
  Arena arena;
  Pool pool;
  unsigned next_ = 0;
};

TEST_F(BufChainTest, SlicesShareTheirBlock) {
  Buf whole = make(1000);
  EXPECT_TRUE(whole.unique());
  Buf part = whole.slice(100, 200);
  EXPECT_FALSE(whole.unique());
  EXPECT_EQ(part.data(), whole.data() + 100);
  EXPECT_EQ(part.tailroom(), 4096u - 300);
  part.trim_front(50);
  part.truncate(10);
  EXPECT_EQ(part.size(), 10u);
  EXPECT_EQ(part.data(), whole.data() + 150);
  const std::byte* data = whole.data();
  whole = Buf();
  EXPECT_TRUE(part.unique());
  EXPECT_EQ(part.data(), data + 150);
  part = part.slice(0, 0);
  EXPECT_TRUE(part.empty());
  EXPECT_TRUE(part);
  Buf& same = part;
  part = same;  // assigning to itself
  part = std::move(same);
  EXPECT_TRUE(part.unique());
}

TEST_F(BufChainTest, MergesWhatContinuesAndDropsWhatIsEmpty) {
  Buf whole = make(1000);
  BufChain chain;
  chain.append(whole.slice(0, 100));
  chain.append(Buf());
  chain.append(whole.slice(100, 0));
  chain.append(whole.slice(100, 900));
  EXPECT_EQ(chain.slices().size(), 1u);
  EXPECT_EQ(chain.size(), 1000u);
  chain.append(whole.slice(0, 1));  // the same block, but not in sequence
  EXPECT_EQ(chain.slices().size(), 2u);
}

TEST_F(BufChainTest, MovingLeavesAnEmptyChain) {
  BufChain chain(make(10));
  for (int i = 0; i < 10; ++i) chain.append(make(10));
  const auto bytes = content(chain);
  BufChain moved = std::move(chain);
  EXPECT_TRUE(chain.empty());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(chain.slices().empty());
  chain = std::move(moved);
  EXPECT_TRUE(moved.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(content(chain), bytes);
}

TEST_F(BufChainTest, AgreesWithAPlainVectorOfBytes) {
  SeededRng rng(5);
  for (int round = 0; round < 200; ++round) {
    BufChain chain;
    std::vector<std::byte> model;
    for (uint64_t i = rng.below(8); i > 0; --i) {
      Buf buf = make(1 + rng.below(5000));
      model.insert(model.end(), buf.bytes().begin(), buf.bytes().end());
      chain.append(std::move(buf));
    }
    for (int step = 0; step < 20; ++step) {
      ASSERT_EQ(content(chain), model);
      size_t in_slices = 0;
      chain.for_each([&](std::span<const std::byte> bytes) { in_slices += bytes.size(); });
      ASSERT_EQ(in_slices, model.size());

      const size_t at = rng.below(model.size() + 1);
      const size_t size = rng.below(model.size() - at + 1);
      ASSERT_EQ(content(chain.slice(at, size)),
                (std::vector<std::byte>(model.begin() + at, model.begin() + at + size)));

      std::vector<iovec> vectors(chain.slices().size() + 1);
      vectors.resize(chain.to_iovecs(vectors, at));
      std::vector<std::byte> gathered;
      for (const iovec& v : vectors) {
        const auto* data = static_cast<const std::byte*>(v.iov_base);
        gathered.insert(gathered.end(), data, data + v.iov_len);
      }
      ASSERT_EQ(gathered, (std::vector<std::byte>(model.begin() + at, model.end())));

      const size_t cut = rng.below(model.size() / 3 + 1);
      if (rng.chance(1, 2)) {
        ASSERT_EQ(content(chain.split_front(cut)), (std::vector<std::byte>(model.begin(), model.begin() + cut)));
      } else {
        chain.trim_front(cut);
      }
      model.erase(model.begin(), model.begin() + static_cast<ptrdiff_t>(cut));
      if (rng.chance(1, 4)) {
        BufChain more(make(1 + rng.below(3000)));
        const auto bytes = content(more);
        model.insert(model.end(), bytes.begin(), bytes.end());
        chain.append(std::move(more));
      }
    }
  }
}

TEST_F(BufChainTest, GivesOnlyAsManyIovecsAsFit) {
  BufChain chain;
  for (int i = 0; i < 5; ++i) chain.append(make(10));
  iovec two[2];
  EXPECT_EQ(chain.to_iovecs(two), 2u);
  EXPECT_EQ(chain.to_iovecs(two, 45), 1u);
  EXPECT_EQ(two[0].iov_len, 5u);
  EXPECT_EQ(chain.to_iovecs(two, 50), 0u);
}

}  // namespace
}  // namespace cairn::mem
