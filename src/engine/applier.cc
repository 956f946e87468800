#include "engine/applier.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::engine {

void Applier::apply(PendingEntry& entry) {
  if (entry.covered) return;
  switch (entry.record.kind) {
    case EntryKind::chunk_write:
      return write(entry);
    case EntryKind::chunk_delete:
      return remove(entry);
    case EntryKind::chunk_discard:
      return discard(entry);
    case EntryKind::noop:
    case EntryKind::kv_batch:
      return;
  }
}

void Applier::write(PendingEntry& entry) {
  const Record& record = entry.record;
  state_.image.before_change(record.chunk);
  Chunk& chunk = state_.chunks[record.chunk];
  chunk.group = record.group;
  chunk.size = std::max(chunk.size, record.offset + record.length);
  chunk.last_change = record.index;
  write_inline(entry, chunk);
  write_units(entry, chunk);
  state_.space.unreserve(std::exchange(entry.reserved_units, 0));
}

void Applier::give_up_unit(UnitSlot& slot, Lsn by) {
  if (!slot.mapped()) return;
  state_.space.supersede_used(slot.unit, by);
  state_.dirty.drop_unit(slot.unit);
  state_.cache.erase_unit(slot.unit);
  slot = UnitSlot{};
}

// The middle of the write: whole units, already in place.
void Applier::write_units(PendingEntry& entry, Chunk& chunk) {
  const Record& record = entry.record;
  const WritePlan& plan = record.plan;
  const uint32_t first_unit = (record.offset / kPageBytes + plan.head_pages) / kPagesPerUnit;
  uint32_t page = plan.head_pages;  // of the write
  const uint32_t end = static_cast<uint32_t>(record.page_crcs.size()) - plan.tail_pages;
  for (uint32_t i = 0; i < plan.unit_count; ++i) {
    const uint32_t pages = std::min(kPagesPerUnit, end - page);
    UnitSlot& slot = chunk.slot(first_unit + i);
    give_up_unit(slot, entry.batch);
    slot.unit = record.units[i];
    state_.cache.erase_unit(slot.unit);  // what a checkpoint kept of its former contents
    slot.present = static_cast<uint16_t>((1u << pages) - 1);
    std::copy_n(record.page_crcs.begin() + page, pages, slot.crc.begin());  // cairn-allow(memcpy): checksums
    page += pages;

    // Written data is in memory anyway; a unit that lies in two blocks would cost two entries.
    if (entry.direct_payload.empty() || state_.context.pool.has_waiters()) continue;
    const mem::BufChain unit = entry.direct_payload.slice(size_t{i} * kUnitBytes, size_t{pages} * kPageBytes);
    if (unit.slices().size() == 1) state_.cache.insert_unit(slot.unit, unit.slices().front());
  }
  state_.space.pending_to_used(plan.unit_count);
}

// A place for a unit's first inline page; later ones find it there.
bool Applier::make_home(PendingEntry& entry, UnitSlot& slot) {
  if (slot.mapped()) return true;
  if (entry.reserved_units == 0 || state_.space.free() == 0) {
    // Only a replay of a journal that doesn't belong to this map gets here.
    state_.set_damage(Error(Errc::corrupt, fmt::format("no unit is left for entry {} of group {}, which was accepted: "
                                                       "the store and the device do not belong together",
                                                       entry.record.index.value, entry.record.group.value)));
    return false;
  }
  --entry.reserved_units;
  slot.unit = state_.space.take_home();
  state_.cache.erase_unit(slot.unit);  // what a checkpoint kept of its former contents
  return true;
}

void Applier::write_inline(PendingEntry& entry, Chunk& chunk) {
  const Record& record = entry.record;
  const WritePlan& plan = record.plan;
  const bool keep = !entry.inline_payload.empty() && !state_.context.pool.has_waiters();
  for (uint32_t i = 0; i < plan.inline_pages(); ++i) {
    const uint32_t of_write =
        i < plan.head_pages ? i : i + static_cast<uint32_t>(record.page_crcs.size()) - plan.inline_pages();
    const uint32_t of_chunk = record.offset / kPageBytes + of_write;
    UnitSlot& slot = chunk.slot(of_chunk / kPagesPerUnit);
    const uint32_t of_unit = of_chunk % kPagesPerUnit;
    const auto bit = static_cast<uint16_t>(1u << of_unit);
    if (!make_home(entry, slot)) return;
    const HomePage home = home_page(slot.unit, of_unit);
    state_.cache.erase_page(home);
    if ((entry.rotten_pages >> i & 1) != 0) {
      slot.present = static_cast<uint16_t>(slot.present & ~bit);
      slot.lost |= bit;
      state_.dirty.drop(home);
      continue;
    }
    slot.present |= bit;
    slot.lost = static_cast<uint16_t>(slot.lost & ~bit);
    slot.crc[of_unit] = record.page_crcs[of_write];
    DirtyPage page{.lsn = entry.inline_lsn + uint64_t{i} * kPageBytes, .crc = record.page_crcs[of_write], .buf = {}};
    if (keep) page.buf = entry.inline_payload.slice(size_t{i} * kPageBytes, kPageBytes).slices().front();
    state_.dirty.put(home, std::move(page));
  }
}

void Applier::remove(const PendingEntry& entry) {
  const auto found = state_.chunks.find(entry.record.chunk);
  if (found == state_.chunks.end()) return;
  state_.image.before_change(entry.record.chunk);
  for (UnitSlot& slot : found->second.slots) give_up_unit(slot, entry.batch);
  state_.chunks.erase(found);
}

void Applier::discard(const PendingEntry& entry) {
  const Record& record = entry.record;
  const auto found = state_.chunks.find(record.chunk);
  if (found == state_.chunks.end()) return;
  state_.image.before_change(record.chunk);
  Chunk& chunk = found->second;
  chunk.last_change = record.index;
  const uint32_t end = (record.offset + record.length) / kPageBytes;
  for (uint32_t page = record.offset / kPageBytes; page < end; ++page) {
    const uint32_t index = page / kPagesPerUnit;
    if (index >= chunk.slots.size()) break;
    UnitSlot& slot = chunk.slots[index];
    if (!slot.mapped()) continue;
    const auto bit = static_cast<uint16_t>(1u << page % kPagesPerUnit);
    const HomePage home = home_page(slot.unit, page % kPagesPerUnit);
    slot.present = static_cast<uint16_t>(slot.present & ~bit);
    slot.lost = static_cast<uint16_t>(slot.lost & ~bit);
    state_.dirty.drop(home);
    state_.cache.erase_page(home);
    if ((slot.present | slot.lost) == 0) give_up_unit(slot, entry.batch);
  }
}

}  // namespace cairn::engine
