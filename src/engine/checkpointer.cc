#include "engine/checkpointer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/log.h"
#include "engine/chunk_record.h"

namespace cairn::engine {
namespace {

constexpr size_t kMaxRunPages = 128;
constexpr size_t kStoreWriteBytes = 256 * 1024;
constexpr int kStoreTries = 8;
constexpr size_t kKeepAtOnce = 256;
constexpr int kUnreadableTries = 32;  // half a second apart, when they come by themselves

}  // namespace

bool Checkpointer::covers_all_applied() const {
  return !state_.image.has_changes() && !state_.dirty.has_new() && state_.applies == state_.saved_applies;
}

bool Checkpointer::is_idle() const { return covers_all_applied() && journal_.first_unapplied() == journal_.tail(); }

Task<Result<void>> Checkpointer::run() {
  ASSERT(!running_);
  if (state_.damage) co_return *state_.damage;
  if (journal_.fenced()) co_return *journal_.fenced();
  running_ = true;
  const Time started = state_.context.loop.now();
  const Cut cut = begin();
  auto result = co_await write_all(cut);
  state_.pace.end();
  if (result) {
    co_await finish(cut);
    state_.metrics.checkpoints.add();
    state_.metrics.checkpoint_us.record_us(static_cast<uint64_t>((state_.context.loop.now() - started).us()));
  } else {
    state_.image.abort();
    state_.dirty.abort_flush();
    state_.metrics.checkpoint_failures.add();
    LOG(warn, "shard {}: checkpoint failed, the journal keeps what it holds: {}", state_.extent.shard,
        result.error().to_string());
  }
  running_ = false;
  listener_.on_checkpoint(result.has_value());
  co_return result;
}

Checkpointer::Cut Checkpointer::begin() {
  Cut cut{.tail = journal_.first_unapplied(),
          .checkpoint = state_.superblock.checkpoint + 1,
          .applies = state_.applies,
          .applied = {}};
  for (const auto& [group, log] : state_.groups) cut.applied.emplace_back(group, log.applied);
  state_.image.begin();
  state_.dirty.begin_flush();
  state_.pace.begin(journal_.room(journal_.reserve()), grant(cut.tail - journal_.tail()),
                    state_.dirty.flush_layer().size());
  return cut;
}

// What writers may take of the journal while this checkpoint frees `gain` bytes: as much, so that the next one is of
// the same size, but no more than stays in memory until that one.
uint64_t Checkpointer::grant(uint64_t gain) const {
  const uint64_t limit = state_.dirty.memory_limit();
  const uint64_t memory = limit - std::min(limit, state_.dirty.memory_bytes());
  return std::min(std::max(gain, journal_.capacity() / 4), std::max(memory, journal_.capacity() / 8));
}

Task<Result<void>> Checkpointer::write_all(const Cut& cut) {
  if (!state_.dirty.flush_layer().empty()) {
    CO_TRY(co_await write_superblock(state_.superblock.tail, state_.superblock.checkpoint, false));
    CO_TRY(co_await write_home());
  }
  CO_TRY(co_await write_maps(cut));
  co_return co_await write_superblock(cut.tail, cut.checkpoint, false);
}

Task<Result<void>> Checkpointer::write_superblock(Lsn tail, uint64_t checkpoint, bool clean) {
  Superblock next = state_.superblock;
  ++next.generation;
  next.epoch = journal_.epoch();
  next.tail = tail;
  next.durable = std::max(journal_.durable(), tail);
  next.checkpoint = checkpoint;
  next.clean = clean;
  next.fenced = false;
  state_.superblock.generation = next.generation;  // a failed write may have reached the device
  if (journal_.fenced()) co_return *journal_.fenced();
  state_.metrics.flushes.add();
  auto written = co_await engine::write_superblock(state_.context.device, state_.context.pool, state_.extent, next);
  if (!written) {
    journal_.fence(Error(written.error().code(),
                         fmt::format("writing the superblock failed ({})", errc_name(written.error().code()))));
    co_return *journal_.fenced();
  }
  state_.superblock = next;
  durable_generation_ = next.generation;
  co_return Result<void>{};
}

Task<void> Checkpointer::leave_word() {
  ASSERT(!running_ && has_word_to_leave());
  left_word_ = true;
  Superblock last = state_.superblock;
  // In the place of one that failed, if there was one: the pair that is durable stays.
  last.generation = durable_generation_ + 1;
  last.durable = std::max(journal_.durable(), last.tail);
  last.fenced = true;
  (void)co_await engine::write_superblock(state_.context.device, state_.context.pool, state_.extent, last);
}

Task<Result<void>> Checkpointer::write_home() {
  Scope scope(state_.context.loop);
  Home home{.run_ended{state_.context.loop}};
  const DirtyPages::Layer& layer = state_.dirty.flush_layer();  // stays as it is, but for memory that is shed
  for (auto at = layer.begin(); at != layer.end() && home.first_error == Errc::ok && !home.unreadable;) {
    Pages pages;
    do {
      pages.emplace_back(at->first, at->second);
      ++at;
    } while (at != layer.end() && pages.size() < kMaxRunPages && at->first == pages.back().first + 1);
    while (home.under_way >= state_.pace.writes(journal_.room(journal_.reserve()))) {
      home.run_ended.reset();
      (void)co_await home.run_ended.wait();
    }
    ++home.under_way;
    scope.spawn(&Checkpointer::write_run, this, std::move(pages), &home);
  }
  co_await scope.join();
  if (home.first_error == Errc::ok) {
    if (journal_.fenced()) co_return *journal_.fenced();
    if (home.unreadable) {
      ++unreadable_in_a_row_;
      co_return Error(Errc::io_error, "the device can't read the journal, where small writes have their only copy");
    }
    unreadable_in_a_row_ = 0;
    state_.metrics.flushes.add();
    auto flushed = co_await flush(state_.context.device);
    if (flushed) co_return Result<void>{};
    home.first_error = flushed.error().code();
  }
  journal_.fence(Error(home.first_error, fmt::format("writing pages home failed ({})", errc_name(home.first_error))));
  co_return *journal_.fenced();
}

Task<void> Checkpointer::write_run(Pages pages, Home* home) {
  // A page that the journal can't give any more splits the run.
  for (size_t i = 0; i < pages.size();) {
    mem::BufChain chain;
    const HomePage first = pages[i].first;
    for (; i < pages.size(); ++i) {
      DirtyPage& page = pages[i].second;
      if (page.buf.empty()) {
        const auto loaded = co_await load_from_journal(pages[i].first, page);
        if (loaded.code() != Errc::ok && loaded.code() != Errc::corrupt) home->unreadable = true;
        if (!loaded) break;
      }
      chain.append(page.buf);
    }
    if (i < pages.size()) ++i;
    if (chain.empty() || journal_.fenced()) continue;
    state_.metrics.home_bytes.add(chain.size());
    auto written = co_await write(state_.context.device, state_.layout.page_offset(first), std::move(chain));
    if (!written && home->first_error == Errc::ok) home->first_error = written.error().code();
  }
  if (state_.pace.pages_home(pages.size())) listener_.on_checkpoint_progress();
  --home->under_way;
  home->run_ended.set();
}

// A page whose only copy is rotten stays where it is: its home still has older bytes, which don't match the CRC in the
// map, so reading it says so. Errors: corrupt (the page is given up), those of the pool and the device (not yet).
Task<Result<void>> Checkpointer::load_from_journal(HomePage home, DirtyPage& page) {
  CO_TRY(mem::Buf buf, co_await state_.context.pool.alloc(kPageBytes, mem::Purpose::internal));
  const auto loaded =
      co_await read_patiently(state_.context.device, Journal::device_offset(state_.layout, page.lsn), buf);
  if (loaded && crc32c(buf.bytes()) == page.crc) {
    page.buf = std::move(buf);
    co_return Result<void>{};
  }
  if (!loaded && unreadable_in_a_row_ < kUnreadableTries) co_return loaded.error();
  state_.metrics.corrupt_pages.add();
  LOG(error,
      "shard {}: a small write can't be read back from the journal at position {}: the page at offset {} is lost",
      state_.extent.shard, page.lsn.value, state_.layout.page_offset(home));
  co_return Error(Errc::corrupt);
}

Task<Result<void>> Checkpointer::write_maps(const Cut& cut) {
  for (;;) {
    auto part = state_.image.next(kStoreWriteBytes);
    if (part.empty()) break;
    CO_TRY(co_await store_write(std::move(part)));
    co_await state_.context.loop.yield();
  }
  std::vector<kv::Mutation> last;
  last.reserve(cut.applied.size() + 1);
  for (const auto& [group, index] : cut.applied) {
    last.push_back({mark_key(KeySpace::group_mark, group), encode_mark(index)});
  }
  const StoreIdentity identity{
      .device = state_.extent.device, .shard = state_.extent.shard, .checkpoint = cut.checkpoint};
  last.push_back({key_prefix(KeySpace::identity), encode_identity(identity)});
  CO_TRY(co_await store_write(std::move(last)));
  co_return co_await state_.context.store.flush();
}

Task<Result<void>> Checkpointer::store_write(std::vector<kv::Mutation> mutations) {
  for (int tries = 0; tries < kStoreTries; ++tries) {
    auto written = state_.context.store.write(mutations);
    if (written.code() != Errc::busy) co_return written;
    CO_TRY(co_await state_.context.store.flush());
  }
  co_return Error(Errc::busy, "the store does not keep up with its flushes");
}

Task<void> Checkpointer::finish(const Cut& cut) {
  state_.saved_applies = cut.applies;
  state_.image.end();
  journal_.set_tail(cut.tail);
  state_.space.release_below(cut.tail);
  // What was written a moment ago is likely to be read, and most of it is in memory still.
  auto layer = state_.dirty.end_flush();
  state_.share_memory();
  size_t kept = 0;
  for (auto& [home, page] : layer) {
    // A newer version, or a unit that was given up meanwhile: the one isn't asked for here, the other is erased from
    // the cache before it is used again.
    if (page.buf.empty() || state_.dirty.find(home) != nullptr) continue;
    if (state_.context.pool.has_waiters()) break;
    state_.cache.insert_page(home, std::move(page.buf));
    if (++kept % kKeepAtOnce == 0) co_await state_.context.loop.yield();
  }
}

}  // namespace cairn::engine
