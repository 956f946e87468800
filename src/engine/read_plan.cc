#include "engine/read_plan.h"

#include <algorithm>

namespace cairn::engine {
namespace {

class Planner {
 public:
  Planner(ShardState& state, ReadPlan& plan) : state_(state), plan_(plan) {}

  // Pages [from, to) of a unit; `chunk_page` is the chunk's page at `from`.
  Result<void> add_unit(const UnitSlot* slot, uint32_t chunk_page, uint32_t from, uint32_t to);

 private:
  static uint16_t mask(uint32_t from, uint32_t to) { return static_cast<uint16_t>((1u << to) - (1u << from)); }
  void add_zero(uint32_t chunk_page, uint32_t pages);
  void add_memory(uint32_t chunk_page, mem::Buf memory);
  void add_device(const UnitSlot& slot, uint32_t chunk_page, uint32_t from, uint32_t to);
  void add_journal(uint32_t chunk_page, const DirtyPage& page);
  bool add_cached(const UnitSlot& slot, uint32_t chunk_page, uint32_t from, uint32_t to);

  ShardState& state_;
  ReadPlan& plan_;
};

void Planner::add_zero(uint32_t chunk_page, uint32_t pages) {
  if (!plan_.pieces.empty() && plan_.pieces.back().source == ReadPiece::Source::zero) {
    plan_.pieces.back().pages += pages;
    return;
  }
  plan_.pieces.push_back({.source = ReadPiece::Source::zero, .first_page = chunk_page, .pages = pages, .memory = {}});
}

void Planner::add_memory(uint32_t chunk_page, mem::Buf memory) {
  const auto pages = static_cast<uint32_t>(memory.size() / kPageBytes);
  state_.metrics.cache_hits.add(pages);
  plan_.pieces.push_back(
      {.source = ReadPiece::Source::memory, .first_page = chunk_page, .pages = pages, .memory = std::move(memory)});
}

void Planner::add_device(const UnitSlot& slot, uint32_t chunk_page, uint32_t from, uint32_t to) {
  const HomePage home = home_page(slot.unit, from);
  const uint32_t pages = to - from;
  state_.metrics.cache_misses.add(pages);
  plan_.device_bytes += uint64_t{pages} * kPageBytes;
  const auto crc_at = static_cast<uint32_t>(plan_.crcs.size());
  plan_.crcs.insert(plan_.crcs.end(), slot.crc.begin() + from, slot.crc.begin() + to);
  if (!plan_.pieces.empty()) {
    ReadPiece& last = plan_.pieces.back();
    if (last.source == ReadPiece::Source::device && last.home + last.pages == home) {
      last.pages += pages;
      return;
    }
  }
  plan_.pieces.push_back({.source = ReadPiece::Source::device,
                          .first_page = chunk_page,
                          .pages = pages,
                          .memory = {},
                          .home = home,
                          .crc_at = crc_at});
}

void Planner::add_journal(uint32_t chunk_page, const DirtyPage& page) {
  state_.metrics.cache_misses.add();
  plan_.device_bytes += kPageBytes;
  const auto crc_at = static_cast<uint32_t>(plan_.crcs.size());
  plan_.crcs.push_back(page.crc);
  plan_.pieces.push_back({.source = ReadPiece::Source::journal,
                          .first_page = chunk_page,
                          .pages = 1,
                          .memory = {},
                          .lsn = page.lsn,
                          .crc_at = crc_at});
}

// All of the pages or none: reading the gaps between cached pages costs more than reading everything.
bool Planner::add_cached(const UnitSlot& slot, uint32_t chunk_page, uint32_t from, uint32_t to) {
  if (mem::Buf whole = state_.cache.find_unit(slot.unit, to)) {
    add_memory(chunk_page, whole.slice(size_t{from} * kPageBytes, size_t{to - from} * kPageBytes));
    return true;
  }
  boost::container::small_vector<mem::Buf, kPagesPerUnit> pages;
  for (uint32_t page = from; page < to; ++page) {
    mem::Buf hit = state_.cache.find_page(home_page(slot.unit, page));
    if (!hit) return false;
    pages.push_back(std::move(hit));
  }
  for (uint32_t i = 0; i < pages.size(); ++i) add_memory(chunk_page + i, std::move(pages[i]));
  return true;
}

Result<void> Planner::add_unit(const UnitSlot* slot, uint32_t chunk_page, uint32_t from, uint32_t to) {
  if (slot == nullptr || !slot->mapped()) {
    add_zero(chunk_page, to - from);
    return {};
  }
  if ((slot->lost & mask(from, to)) != 0) {
    return Error(Errc::corrupt, "rot in the journal destroyed this part of the chunk before it was at its home");
  }
  const bool clean = state_.dirty.none_of(slot->unit);
  if (clean && (slot->present & mask(from, to)) == mask(from, to)) {
    if (!add_cached(*slot, chunk_page, from, to)) add_device(*slot, chunk_page, from, to);
    return {};
  }
  for (uint32_t page = from; page < to; ++page, ++chunk_page) {
    if (!slot->is_present(page)) {
      add_zero(chunk_page, 1);
      continue;
    }
    const DirtyPage* dirty = clean ? nullptr : state_.dirty.find(home_page(slot->unit, page));
    if (dirty == nullptr) {
      if (!add_cached(*slot, chunk_page, page, page + 1)) add_device(*slot, chunk_page, page, page + 1);
    } else if (dirty->buf) {
      add_memory(chunk_page, dirty->buf);
    } else {
      add_journal(chunk_page, *dirty);
    }
  }
  return {};
}

}  // namespace

Result<ReadPlan> plan_read(ShardState& state, const Chunk& chunk, uint32_t first, uint32_t count) {
  ReadPlan plan;
  Planner planner(state, plan);
  for (uint32_t page = first; page < first + count;) {
    const uint32_t index = page / kPagesPerUnit;
    const uint32_t from = page % kPagesPerUnit;
    const uint32_t to = std::min(kPagesPerUnit, from + (first + count - page));
    TRY(planner.add_unit(chunk.find_slot(index), page, from, to));
    page += to - from;
  }
  return plan;
}

bool is_current(const ShardState& state, const Chunk& chunk, const ReadPlan& plan, const ReadPiece& piece,
                uint32_t index) {
  const uint32_t page = piece.first_page + index;
  const UnitSlot* slot = chunk.find_slot(page / kPagesPerUnit);
  if (slot == nullptr || !slot->mapped()) return false;
  const uint32_t of_unit = page % kPagesPerUnit;
  const HomePage home = home_page(slot->unit, of_unit);
  if (!slot->is_present(of_unit) || slot->crc[of_unit] != plan.crcs[piece.crc_at + index]) return false;
  const DirtyPage* dirty = state.dirty.find(home);
  if (piece.source == ReadPiece::Source::journal) return dirty != nullptr && dirty->lsn == piece.lsn;
  return dirty == nullptr && home == piece.home + index;
}

}  // namespace cairn::engine
