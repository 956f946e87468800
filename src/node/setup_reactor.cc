#include "node/setup_reactor.h"

#include <utility>

namespace cairn::node {
namespace {

constexpr size_t kMemory = size_t{16} << 20;

Task<bool> adopt(mem::Pool* pool) {
  pool->bind_to_this_thread();
  co_return true;
}

}  // namespace

Result<std::unique_ptr<SetupReactor>> SetupReactor::create(const engine::DiskFile& disk, Rng& rng) {
  TRY(auto arena, mem::Arena::create(kMemory));
  auto registry = std::make_unique<Registry>();
  TRY(auto reactor, Reactor::create({.index = 0,
                                     .mode = Mode::economy,
                                     .wake_cost = microseconds(50),  // economy mode doesn't ask
                                     .rng = rng,
                                     .registry = *registry}));
  return std::unique_ptr<SetupReactor>(
      new SetupReactor(disk, std::move(arena), std::move(registry), std::move(reactor)));
}

SetupReactor::SetupReactor(const engine::DiskFile& disk, mem::Arena arena, std::unique_ptr<Registry> registry,
                           std::unique_ptr<Reactor> reactor)
    : arena_(std::move(arena)),
      registry_(std::move(registry)),
      worker_(std::move(reactor)),
      pool_(worker_.reactor(), *registry_, arena_.memory(), 0),
      device_(worker_.reactor(), disk, *registry_) {
  worker_.start("cairn-setup");
  (void)worker_.call(&adopt, &pool_).get();
}

}  // namespace cairn::node
