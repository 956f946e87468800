#include "scenarios/engine_workload.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "kv/batch.h"
#include "scenarios/engine_checks.h"

namespace cairn::scenarios {

using engine::EntryKind;
using engine::kPageBytes;
using engine::kUnitBytes;

EngineMix EngineMix::draw(Rng& rng) {
  EngineMix mix;
  const auto weight = [&](uint64_t most) { return rng.chance(1, 4) ? 0u : static_cast<uint32_t>(1 + rng.below(most)); };
  mix.small_write = weight(40);
  mix.large_write = weight(12);
  mix.crooked_write = weight(8);
  mix.append = weight(20);
  mix.discard = weight(8);
  mix.remove = weight(6);
  mix.kv_batch = weight(15);
  mix.noop = weight(3);
  mix.read = 1 + weight(40);
  mix.look = 1 + weight(10);
  mix.checkpoint = weight(3);
  mix.clients = static_cast<uint32_t>(1 + rng.below(8));
  mix.think_max = rng.chance(1, 2) ? Duration{} : microseconds(static_cast<int64_t>(rng.below(400)));
  return mix;
}

EngineWorkload::EngineWorkload(EngineWorld& world, EngineMix mix) : world_(world), mix_(mix), scope_(world.loop) {}

void EngineWorkload::start() {
  stop_ = std::make_unique<CancelSource>();
  for (uint32_t i = 0; i < mix_.clients; ++i) scope_.spawn(&EngineWorkload::client, this, world_.rng.next());
}

void EngineWorkload::stop() { stop_->cancel(); }

void EngineWorkload::join() { world_.sim.run(world_.loop, &Scope::join, &scope_); }

EngineWorkload::Step EngineWorkload::pick(SeededRng& rng) const {
  const std::pair<uint32_t, Step> steps[] = {
      {mix_.small_write, &EngineWorkload::small_write},
      {mix_.large_write, &EngineWorkload::large_write},
      {mix_.crooked_write, &EngineWorkload::crooked_write},
      {mix_.append, &EngineWorkload::append},
      {mix_.discard, &EngineWorkload::discard},
      {mix_.remove, &EngineWorkload::random_remove},
      {mix_.kv_batch, &EngineWorkload::kv_batch},
      {mix_.noop, &EngineWorkload::noop},
      {mix_.read, &EngineWorkload::read},
      {mix_.look, &EngineWorkload::look},
      {mix_.checkpoint, &EngineWorkload::checkpoint},
  };
  uint64_t total = 0;
  for (const auto& [weight, step] : steps) total += weight;
  uint64_t at = rng.below(total);
  for (const auto& [weight, step] : steps) {
    if (at < weight) return step;
    at -= weight;
  }
  ASSERT(false);
  return nullptr;
}

Task<void> EngineWorkload::client(EngineWorkload* self, uint64_t seed) {
  SeededRng rng(seed);
  const CancelToken stop(*self->stop_);
  while (!stop.cancelled() && self->world_.check.ok()) {
    const Step step = self->pick(rng);
    co_await (self->*step)(rng);
    // Never without a pause: a shard that refuses at once would be asked for ever within one instant.
    const auto most = self->world_.fenced ? 1'000'000 : static_cast<uint64_t>(self->mix_.think_max.ns);
    const auto pause = most == 0 ? 0 : rng.below(most);
    (void)co_await self->world_.loop.sleep(nanoseconds(static_cast<int64_t>(1000 + pause)), stop);
  }
}

void EngineWorkload::check_outcome(const Result<void>& outcome, EntryKind kind) {
  EngineWorld& world = world_;
  if (outcome) {
    world.coverage.hit("propose.ok");
    return;
  }
  if (!world.powered()) return;
  switch (outcome.code()) {
    case Errc::no_space:
      world.coverage.hit("propose.no_space");
      world.check.that(kind == EntryKind::chunk_write, "an entry of kind {} was refused for want of space",
                       static_cast<int>(kind));
      return;
    case Errc::busy:
      world.coverage.hit("propose.busy");
      return;
    case Errc::cancelled:
      return;
    case Errc::closed:
      world.check.that(stop_->cancelled(), "a proposal met a closed shard");
      return;
    case Errc::device_fenced:
      world.coverage.hit("propose.fenced");
      world.fenced = true;
      world.check.that(world.plan.write_errors || world.plan.flush_errors || world.plan.sparse_full,
                       "the device was fenced without a cause: {}", outcome.error().message());
      return;
    case Errc::io_error:
    case Errc::unavailable:
      world.check.that(world.plan.store_errors, "an entry could not be applied: {}", outcome.error().to_string());
      return;
    default:
      world.check.fail("a proposal failed: {}", outcome.error().to_string());
      return;
  }
}

Task<Result<mem::BufChain>> EngineWorkload::make_payload(uint32_t offset, uint32_t length, uint64_t version,
                                                         SeededRng& rng, CancelToken cancel) {
  mem::Pool& pool = *world_.pool;
  mem::BufChain chain;
  // Half of the time in several blocks of any size, as a socket would leave it.
  if (rng.chance(1, 2)) {
    while (chain.size() < length) {
      const auto left = length - static_cast<uint32_t>(chain.size());
      const auto piece = static_cast<uint32_t>((1 + rng.below(40)) * kPageBytes);
      auto block = pool.try_alloc(std::min(left, piece));
      if (!block) break;
      chain.append(*std::move(block));
    }
  }
  if (chain.size() < length) {
    chain.clear();  // waiting with something in hand could wait for ever
    CO_TRY(chain, co_await pool.alloc_chain(length, mem::Purpose::client, cancel));
  }
  uint32_t at = offset;
  for (mem::Buf buf : chain.slices()) {
    for (std::span<std::byte> rest = buf.writable_bytes(); !rest.empty();) {
      const auto n = std::min<size_t>(rest.size(), kPageBytes);
      fill_page(rest.first(n), version, at / kPageBytes);
      rest = rest.subspan(n);
      at += static_cast<uint32_t>(n);
    }
    // What lies behind the last byte is the engine's to clear.
    if (buf.size() % kPageBytes != 0)
      std::memset(buf.writable() + buf.size(), 0xee, kPageBytes - buf.size() % kPageBytes);
  }
  co_return chain;
}

Task<Result<void>> EngineWorkload::write(uint32_t chunk, uint32_t offset, uint32_t length, CancelToken cancel) {
  LogOp op{.kind = EntryKind::chunk_write, .chunk = world_.chunk_id(chunk), .offset = offset, .length = length};
  op.version = ++last_version_;
  SeededRng rng(op.version * 77 + world_.input.seed);
  CO_TRY(auto payload, co_await make_payload(offset, length, op.version, rng, cancel));
  auto& group = world_.group_of(op.chunk);
  co_return co_await world_.propose(group, std::move(op), std::move(payload), mem::Purpose::client, cancel);
}

Task<Result<void>> EngineWorkload::remove(uint32_t chunk) {
  LogOp op{.kind = EntryKind::chunk_delete, .chunk = world_.chunk_id(chunk)};
  auto& group = world_.group_of(op.chunk);
  co_return co_await world_.propose(group, std::move(op), {}, mem::Purpose::client, {});
}

Task<void> EngineWorkload::small_write(SeededRng& rng) {
  const auto pages = world_.sizes.chunk_bytes / kPageBytes;
  // Mostly the same few places, so that they are overwritten while older writes are on their way home.
  const auto page = static_cast<uint32_t>(rng.chance(1, 2) ? rng.below(4) : rng.below(pages));
  const auto most = std::min<uint64_t>((pages - page) * kPageBytes, 16 << 10);
  const auto length =
      static_cast<uint32_t>(rng.chance(1, 2) ? std::min<uint64_t>(kPageBytes, most) : 1 + rng.below(most));
  check_outcome(co_await write(random_chunk(rng), page * kPageBytes, length, *stop_), EntryKind::chunk_write);
}

Task<void> EngineWorkload::large_write(SeededRng& rng) {
  const auto units = world_.sizes.chunk_bytes / kUnitBytes;
  const auto unit = static_cast<uint32_t>(rng.below(units));
  const auto count = static_cast<uint32_t>(1 + rng.below(std::min(units - unit, rng.chance(1, 8) ? units : 4)));
  check_outcome(co_await write(random_chunk(rng), unit * kUnitBytes, count * kUnitBytes, *stop_),
                EntryKind::chunk_write);
}

Task<void> EngineWorkload::crooked_write(SeededRng& rng) {
  const auto pages = world_.sizes.chunk_bytes / kPageBytes;
  const auto page = static_cast<uint32_t>(rng.below(pages));
  const uint64_t most = std::min<uint64_t>((pages - page) * kPageBytes, 320 << 10);
  check_outcome(
      co_await write(random_chunk(rng), page * kPageBytes, static_cast<uint32_t>(1 + rng.below(most)), *stop_),
      EntryKind::chunk_write);
}

Task<void> EngineWorkload::append(SeededRng& rng) {
  const uint32_t chunk = random_chunk(rng);
  const auto found = world_.model.chunks().find(world_.chunk_id(chunk));
  const uint32_t size = found == world_.model.chunks().end() ? 0 : found->second.size;
  const auto offset = static_cast<uint32_t>(engine::round_up(size, kPageBytes));
  if (offset >= world_.sizes.chunk_bytes) co_return;
  const uint64_t most = std::min<uint64_t>(world_.sizes.chunk_bytes - offset, 160 << 10);
  check_outcome(co_await write(chunk, offset, static_cast<uint32_t>(1 + rng.below(most)), *stop_),
                EntryKind::chunk_write);
}

Task<void> EngineWorkload::discard(SeededRng& rng) {
  const auto pages = world_.sizes.chunk_bytes / kPageBytes;
  LogOp op{.kind = EntryKind::chunk_discard, .chunk = world_.chunk_id(random_chunk(rng))};
  const auto page = rng.below(pages);
  op.offset = static_cast<uint32_t>(page * kPageBytes);
  op.length = static_cast<uint32_t>((1 + rng.below(pages - page)) * kPageBytes);
  auto& group = world_.group_of(op.chunk);
  check_outcome(co_await world_.propose(group, std::move(op), {}, mem::Purpose::client, *stop_),
                EntryKind::chunk_discard);
}

Task<void> EngineWorkload::random_remove(SeededRng& rng) {
  LogOp op{.kind = EntryKind::chunk_delete, .chunk = world_.chunk_id(random_chunk(rng))};
  auto& group = world_.group_of(op.chunk);
  check_outcome(co_await world_.propose(group, std::move(op), {}, mem::Purpose::client, *stop_),
                EntryKind::chunk_delete);
}

Task<void> EngineWorkload::kv_batch(SeededRng& rng) {
  LogOp op{.kind = EntryKind::kv_batch};
  for (uint64_t i = 0, n = 1 + rng.below(4); i < n; ++i) {
    kv::Mutation mutation{"key" + std::to_string(rng.below(30)), std::nullopt};
    if (rng.chance(3, 4))
      mutation.value = std::string(rng.below(rng.chance(1, 20) ? 20'000 : 100), 'v') + std::to_string(rng.next());
    op.mutations.push_back(std::move(mutation));
  }
  auto body = kv::encode_batch(op.mutations);
  ASSERT(body.has_value());
  op.body = *std::move(body);
  auto& group = *world_.groups()[rng.below(world_.sizes.groups)];
  check_outcome(co_await world_.propose(group, std::move(op), {}, mem::Purpose::client, *stop_), EntryKind::kv_batch);
}

Task<void> EngineWorkload::noop(SeededRng& rng) {
  auto& group = *world_.groups()[rng.below(world_.sizes.groups)];
  check_outcome(co_await world_.propose(group, {}, {}, mem::Purpose::internal, *stop_), EntryKind::noop);
}

Task<void> EngineWorkload::read(SeededRng& rng) {
  const auto chunk = world_.chunk_id(random_chunk(rng));
  const auto offset = static_cast<uint32_t>(rng.below(world_.sizes.chunk_bytes));
  const uint64_t most = rng.chance(1, 4) ? world_.sizes.chunk_bytes : 20'000;
  const auto length = static_cast<uint32_t>(1 + rng.below(std::min<uint64_t>(most, world_.sizes.chunk_bytes - offset)));
  if (!rng.chance(1, 16)) {
    co_await checked_read(world_, chunk, offset, length);
    co_return;
  }
  // A caller that gives up.
  CancelSource cancel;
  Timer timer([](void* source) { static_cast<CancelSource*>(source)->cancel(Errc::timed_out); }, &cancel);
  world_.loop.arm_in(timer, microseconds(static_cast<int64_t>(rng.below(150))));
  co_await checked_read(world_, chunk, offset, length, cancel);
  world_.loop.disarm(timer);
}

Task<void> EngineWorkload::look(SeededRng& rng) {
  check_stat(world_, world_.chunk_id(random_chunk(rng)));
  const auto after = rng.chance(1, 2) ? engine::ChunkId{} : world_.chunk_id(random_chunk(rng));
  check_list(world_, after, 1 + rng.below(10));
  check_usage(world_);
  auto& group = *world_.groups()[rng.below(world_.sizes.groups)];
  const std::string key = "key" + std::to_string(rng.below(30));
  // The machine's applied index may be ahead of the model's by the entry that is being applied.
  const uint64_t before = group.kv->applied();
  const auto value = co_await group.kv->get(key);
  if (!value) co_return;
  bool right = false;
  const uint64_t last = std::max(group.kv->applied(), world_.model.applied(group.id));
  for (uint64_t at = before; at <= last && !right; ++at) right = world_.model.kv(group.id).get(key, at) == *value;
  world_.check.that(right, "group {}: {} has a value that it had at no moment of the call", group.id.value, key);
}

Task<void> EngineWorkload::checkpoint(SeededRng&) {
  world_.coverage.hit("checkpoint.asked");
  const Result<void> outcome = co_await world_.shard->checkpoint();
  if (outcome || !world_.powered() || stop_->cancelled()) co_return;
  const FaultPlan& plan = world_.plan;
  world_.check.that(plan.write_errors || plan.flush_errors || plan.sparse_full || plan.store_errors ||
                        plan.store_busy || plan.read_errors || world_.damaged_pages_max() > 0,
                    "a checkpoint failed without a cause: {}", outcome.error().to_string());
}

}  // namespace cairn::scenarios
