#include "mem/home_mail.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "mem/arena.h"
#include "mem/chain_io.h"
#include "reactor/listener.h"

namespace cairn::mem {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class HomeMailTest : public ::testing::TestWithParam<Mode> {
 protected:
  HomeMailTest() : arena(*Arena::create(4 * kMiB)) {
    reactor = *Reactor::create({.mode = GetParam(), .wake_cost = microseconds(30), .rng = rng, .registry = registry});
    pool = std::make_unique<Pool>(*reactor, registry, arena.memory(), 0);
    mail = std::make_unique<HomeMail>(*reactor, *pool);
  }

  SeededRng rng{1};
  Registry registry;
  Arena arena;
  std::unique_ptr<Reactor> reactor;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<HomeMail> mail;
};
INSTANTIATE_TEST_SUITE_P(Modes, HomeMailTest, ::testing::Values(Mode::performance, Mode::economy, Mode::automatic));

Task<void> wait_for_memory(Pool* pool, int* rounds) {
  // Each needs the whole arena, so it can go on only when the other threads' blocks have come home.
  for (int i = 0; i < 3; ++i) {
    auto chain = co_await pool->alloc_chain(pool->total_bytes());
    EXPECT_TRUE(chain);
    ++*rounds;
  }
}

TEST_P(HomeMailTest, BlocksFreedElsewhereComeHome) {
  std::vector<std::vector<Buf>> shares(3);
  size_t count = 0;
  while (auto buf = pool->try_alloc(4096)) shares[count++ % 3].push_back(std::move(*buf));
  std::vector<std::thread> threads;
  for (auto& share : shares) {
    threads.emplace_back([mine = std::move(share)]() mutable {
      while (!mine.empty()) mine.pop_back();
    });
  }
  int rounds = 0;
  reactor->run_task(&wait_for_memory, pool.get(), &rounds);
  EXPECT_EQ(rounds, 3);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool->free_bytes(), pool->total_bytes());
  EXPECT_EQ(reactor->hops().value(), count);
}

TEST_P(HomeMailTest, WhatIsUnderWayAtTheEndIsDelivered) {
  Buf buf = *pool->try_alloc(kMiB);
  std::thread([mine = std::move(buf)]() mutable { mine = Buf(); }).join();
  EXPECT_LT(pool->free_bytes(), pool->total_bytes());
  mail.reset();
  EXPECT_EQ(pool->free_bytes(), pool->total_bytes());
}

// --- chains over sockets ---

Task<Result<void>> receive_all(Stream* stream, std::vector<std::byte>* into) {
  co_return co_await stream->recv_all(*into, {});
}
Task<void> receive(Stream* stream, std::vector<std::byte>* into) { EXPECT_TRUE(co_await receive_all(stream, into)); }

BufChain pattern(Pool& pool, size_t slices) {
  BufChain chain;
  for (size_t i = 0; i < slices; ++i) {
    Buf buf = *pool.try_alloc(4096 * (1 + i % 3) - i);
    for (size_t at = 0; at < buf.size(); ++at) buf.writable()[at] = static_cast<std::byte>(at * 13 + i);
    chain.append(std::move(buf));
  }
  return chain;
}

Task<void> send_over_both(Reactor* reactor, Pool* pool) {
  auto listener = *Listener::open(*reactor, Address::loopback(0), {});
  Socket client = *co_await Socket::connect(*reactor, listener.local());
  SocketStream server(*co_await listener.accept());
  for (const size_t slices : {1u, 3u, 40u}) {
    BufChain chain = pattern(*pool, slices);
    std::vector<std::byte> expected(chain.size());
    chain.copy_metadata_to(expected);
    std::vector<std::byte> got(chain.size());
    Scope scope(*reactor);
    scope.spawn(&receive, &server, &got);
    EXPECT_TRUE(co_await send_chain(client, std::move(chain)));
    co_await scope.join();
    EXPECT_TRUE(got == expected);
    EXPECT_EQ(pool->free_bytes(), pool->total_bytes());  // nobody keeps it once it is sent
  }
  SocketStream stream(std::move(client));
  BufChain chain = pattern(*pool, 7);
  std::vector<std::byte> got(chain.size());
  Scope scope(*reactor);
  scope.spawn(&receive, &server, &got);
  EXPECT_TRUE(co_await send_chain(stream, chain));
  co_await scope.join();
  std::vector<std::byte> expected(chain.size());
  chain.copy_metadata_to(expected);
  EXPECT_TRUE(got == expected);
  EXPECT_EQ(pool->copied().value(), 0u);
}

TEST_P(HomeMailTest, ChainsAreSentWithoutACopy) { reactor->run_task(&send_over_both, reactor.get(), pool.get()); }

}  // namespace
}  // namespace cairn::mem
