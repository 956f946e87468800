#include "scenarios/engine_checks.h"

#include <algorithm>
#include <array>

namespace cairn::scenarios {

using engine::ChunkId;
using engine::kPageBytes;

namespace {

std::string name_of(ChunkId chunk) { return chunk.to_string().substr(30); }

// The answer cut into pieces that each lie in one page of the chunk.
template <typename F>
void for_each_piece(const mem::BufChain& data, uint32_t offset, F f) {
  uint32_t at = offset;
  for (const mem::Buf& buf : data.slices()) {
    std::span<const std::byte> rest = buf.bytes();
    while (!rest.empty()) {
      const auto n = std::min<size_t>(rest.size(), kPageBytes - at % kPageBytes);
      f(at, rest.first(n));
      at += static_cast<uint32_t>(n);
      rest = rest.subspan(n);
    }
  }
}

std::string describe(std::span<const std::byte> bytes, uint32_t within) {
  if (within != 0) return "something else";
  const PageClaim claim = claim_of(bytes);
  if (claim.known) return fmt::format("page {} of write {}", claim.page, claim.version);
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; })) return "zeroes";
  return "unknown bytes";
}

std::string describe(const std::vector<PageVersion>& versions) {
  std::string text;
  for (const PageVersion& v : versions) text += fmt::format("{}{}", text.empty() ? "" : " or ", v.version);
  return text.empty() ? "nothing" : "write " + text;
}

void check_content(EngineWorld& world, const OpenRead& read, uint32_t offset, const mem::BufChain& data) {
  for_each_piece(data, offset, [&](uint32_t at, std::span<const std::byte> bytes) {
    const uint32_t page = at / kPageBytes;
    const auto& versions = read.pages[page - read.first_page];
    const bool right = std::ranges::any_of(
        versions, [&](const PageVersion& v) { return page_matches(bytes, at % kPageBytes, v, page); });
    if (right) return;  // describing each page would take longer than everything else
    world.check.fail("WRONG BYTES: chunk {} page {} is {}, and it should be {}", name_of(read.chunk), page,
                     describe(bytes, at % kPageBytes), describe(versions));
  });
}

bool size_is_possible(const OpenRead& read, uint32_t offset, uint32_t length, size_t got) {
  return std::ranges::any_of(read.sizes, [&](const std::optional<uint32_t>& size) {
    if (!size) return false;
    const uint64_t end = std::min<uint64_t>(uint64_t{offset} + length, *size);
    return got == (end > offset ? end - offset : 0);
  });
}

// Errors that are nobody's fault. `corrupt` is judged by the caller.
bool error_is_explained(EngineWorld& world, Errc code) {
  if (!world.powered()) return true;
  switch (code) {
    case Errc::io_error:
      return world.disk.faults().read_error_ppm > 0;
    case Errc::cancelled:
    case Errc::timed_out:
      return true;  // by our token
    case Errc::closed:
      return true;  // the shard is being closed
    case Errc::busy:
      return true;  // no memory for it now
    default:
      return false;
  }
}

}  // namespace

Task<void> checked_read(EngineWorld& world, ChunkId chunk, uint32_t offset, uint32_t length, CancelToken cancel) {
  const auto open = world.model.begin_read(chunk, offset, length);
  const auto data = co_await world.shard->read(chunk, offset, length, cancel);
  world.sim.trace().event("engine.read", offset, length, static_cast<uint64_t>(data.code()), data ? data->size() : 0);
  if (data) {
    world.check.that(size_is_possible(*open, offset, length, data->size()),
                     "chunk {}: a read of {} bytes at {} gave {}", name_of(chunk), length, offset, data->size());
    if (world.check.ok()) check_content(world, *open, offset, *data);
    world.coverage.hit("read.ok");
  } else if (data.code() == Errc::not_found) {
    world.check.that(std::ranges::any_of(open->sizes, [](const auto& size) { return !size.has_value(); }),
                     "chunk {} is gone", name_of(chunk));
    world.coverage.hit("read.not_found");
  } else if (data.code() == Errc::corrupt) {
    world.check.that(world.damaged_pages_max() > 0, "chunk {}: corrupt, and nothing was damaged: {}", name_of(chunk),
                     data.error().message());
    world.coverage.hit("read.corrupt");
  } else {
    world.check.that(error_is_explained(world, data.code()), "chunk {}: a read failed without a cause: {}",
                     name_of(chunk), data.error().to_string());
    world.coverage.hit("read.error");
  }
  world.model.end_read(open);
}

void check_stat(EngineWorld& world, ChunkId chunk) {
  const auto stat = world.shard->stat(chunk);
  const auto found = world.model.chunks().find(chunk);
  const bool exists = found != world.model.chunks().end();
  if (!world.check.that(stat.has_value() == exists, "chunk {} {} exist", name_of(chunk), exists ? "doesn't" : "does")) {
    return;
  }
  if (!exists) return;
  const ChunkModel& chunk_model = found->second;
  world.check.that(stat->size == chunk_model.size, "chunk {} has {} bytes, not {}", name_of(chunk), stat->size,
                   chunk_model.size);
  world.check.that(stat->last_change.value == chunk_model.last_change, "chunk {} was last changed by entry {}, not {}",
                   name_of(chunk), stat->last_change.value, chunk_model.last_change);
  world.check.that(stat->group == chunk_model.group, "chunk {} is in group {}", name_of(chunk), stat->group.value);
}

void check_list(EngineWorld& world, ChunkId after, size_t limit) {
  const auto listed = world.shard->list(after, limit);
  std::vector<ChunkId> expected;
  const auto& chunks = world.model.chunks();
  for (auto at = chunks.upper_bound(after); at != chunks.end() && expected.size() < limit; ++at) {
    expected.push_back(at->first);
  }
  world.check.that(listed == expected, "a list of at most {} chunks gave {}, not {} or others", limit, listed.size(),
                   expected.size());
}

void check_usage(EngineWorld& world) {
  const engine::SpaceUsage usage = world.shard->usage();
  world.check.that(usage.total_bytes == usage.free_bytes + usage.used_bytes + usage.pending_bytes + usage.freeing_bytes,
                   "space doesn't add up: total {}, free {}, used {}, pending {}, freeing {}", usage.total_bytes,
                   usage.free_bytes, usage.used_bytes, usage.pending_bytes, usage.freeing_bytes);
}

namespace {

// After a corrupt read of a whole chunk: which of its pages are, so that what is not damaged is seen to be readable.
Task<uint64_t> count_corrupt_pages(EngineWorld& world, ChunkId chunk, uint32_t size) {
  uint64_t corrupt = 0;
  for (uint32_t at = 0; at < size && world.check.ok(); at += kPageBytes) {
    const uint64_t before = world.coverage.count("read.corrupt");
    co_await checked_read(world, chunk, at, kPageBytes);
    corrupt += world.coverage.count("read.corrupt") - before;
  }
  co_return corrupt;
}

Task<void> check_keys(EngineWorld& world) {
  for (auto& group : world.groups()) {
    const kv::ScanOptions all{.max_items = 10'000};
    const auto state = co_await group->kv->scan(all);
    const KvModel& kv = world.model.kv(group->id);
    world.check.that(state && same_items(*state, kv.scan(all, world.model.applied(group->id))),
                     "the keys of group {} are not what its log says", group->id.value);
  }
}

}  // namespace

Task<void> check_everything(EngineWorld& world) {
  check_list(world, {}, 10'000);
  check_usage(world);
  uint64_t corrupt_pages = 0;
  for (uint32_t i = 0; i < world.sizes.chunks && world.check.ok(); ++i) {
    const ChunkId chunk = world.chunk_id(i);
    check_stat(world, chunk);
    const auto found = world.model.chunks().find(chunk);
    if (found == world.model.chunks().end()) continue;
    const uint32_t size = found->second.size;
    const uint64_t before = world.coverage.count("read.corrupt");
    co_await checked_read(world, chunk, 0, size);
    if (world.coverage.count("read.corrupt") == before) continue;
    corrupt_pages += co_await count_corrupt_pages(world, chunk, size);
  }
  world.check.that(corrupt_pages <= world.damaged_pages_max(), "{} pages are corrupt, and faults explain {}",
                   corrupt_pages, world.damaged_pages_max());
  if (world.check.ok()) co_await check_keys(world);
}

}  // namespace cairn::scenarios
