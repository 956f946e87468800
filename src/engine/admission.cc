#include "engine/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "reactor/deadline.h"

namespace cairn::engine {

Admission::Admission(ShardState& state, Journal& journal, Listener& listener)
    : state_(state),
      journal_(journal),
      listener_(listener),
      turns_{Semaphore(state.context.loop, 1), Semaphore(state.context.loop, 1), Semaphore(state.context.loop, 1)},
      changed_(state.context.loop) {}

Need Admission::need_of(const Entry& entry) {
  Need need;
  uint64_t record_bytes = sizeof(RecordOnDisk) + entry.body.size();
  uint64_t inline_bytes = 0;
  if (entry.kind == EntryKind::chunk_write) {
    // A last unit that isn't full counts once either way: as a unit of its own or as the home of inline pages.
    const WritePlan plan = plan_write(entry.offset, entry.length, false);
    need.units = plan.unit_count + inline_units(plan, entry.offset, entry.length);
    inline_bytes = uint64_t{plan.inline_pages()} * kPageBytes;
    record_bytes += (pages_of(entry.length) + plan.unit_count + 1) * sizeof(Le32);
  }
  need.journal_bytes = meta_bytes_for(record_bytes) + inline_bytes;
  return need;
}

Admission::Lane Admission::lane_of(const Entry& entry, mem::Purpose purpose) const {
  if (purpose == mem::Purpose::internal || entry.kind == EntryKind::chunk_delete ||
      entry.kind == EntryKind::chunk_discard) {
    return Lane::reserved;
  }
  if (entry.kind != EntryKind::chunk_write) return Lane::in_place;
  const WritePlan plan = plan_write(entry.offset, entry.length, false);
  const auto found = state_.chunks.find(entry.chunk);
  if (plan.unit_count > 0 || found == state_.chunks.end()) return Lane::client;
  const uint32_t first = entry.offset / kUnitBytes;
  for (uint32_t i = 0; i < inline_units(plan, entry.offset, entry.length); ++i) {
    const UnitSlot* slot = found->second.find_slot(first + i);
    if (slot == nullptr || !slot->mapped()) return Lane::client;
  }
  return Lane::in_place;
}

Admission::Outcome Admission::try_take(Need need, Lane lane) {
  const uint64_t keep_journal = lane == Lane::reserved ? 0 : journal_.reserve() + state_.pace.held_back();
  if (!journal_.has_room(need.journal_bytes, keep_journal)) return Outcome::no_journal_yet;
  const uint64_t keep_units = lane == Lane::client ? state_.space.reserve_units() : 0;
  if (need.units > 0 && !state_.space.try_reserve(need.units, keep_units)) {
    // What others hold may come back, too, but only for those who may use the reserve is that more than chance.
    const bool comes = state_.space.freeing() > 0 || (lane != Lane::client && state_.space.reserved() > 0);
    return comes ? Outcome::no_units_yet : Outcome::no_units;
  }
  journal_.promise(need.journal_bytes);
  return Outcome::fits;
}

std::optional<Error> Admission::refusal() const {
  if (state_.damage) return state_.damage;
  if (journal_.fenced()) return journal_.fenced();
  if (closed_) return Error(Errc::closed, "the shard is closing");
  return std::nullopt;
}

Task<Result<Permit>> Admission::admit(Need need, Lane lane, CancelToken token) {
  if (auto error = refusal()) co_return *std::move(error);
  if (token.cancelled()) co_return Error(token.reason());
  // Those who wait in this lane go first.
  if (turns_[static_cast<size_t>(lane)].available() > 0) {
    const Outcome outcome = try_take(need, lane);
    if (outcome == Outcome::fits) co_return Permit(*this, need);
    if (outcome == Outcome::no_units) co_return too_late(outcome);
  }
  if (waiting_ >= state_.options.admission_queue) {
    co_return Error(Errc::busy, fmt::format("{} writes wait for the journal already", waiting_));
  }
  state_.metrics.admission_waits.add();
  ++waiting_;
  auto permit = co_await wait(need, lane, token);
  --waiting_;
  co_return permit;
}

Task<Result<Permit>> Admission::wait(Need need, Lane lane, CancelToken token) {
  Deadline deadline(state_.context.loop, state_.context.loop.now() + state_.options.admission_wait, token);
  Semaphore& turn = turns_[static_cast<size_t>(lane)];
  Outcome outcome = Outcome::no_journal_yet;
  if (!co_await turn.take(1, deadline.token())) {
    if (token.cancelled()) co_return Error(token.reason());
    co_return too_late(outcome);
  }
  Result<Permit> result = Errc::busy;
  for (;;) {
    if (auto error = refusal()) {
      result = *std::move(error);
      break;
    }
    outcome = try_take(need, lane);
    if (outcome == Outcome::fits) {
      result = Permit(*this, need);
      break;
    }
    if (outcome == Outcome::no_units) {
      result = too_late(outcome);
      break;
    }
    if (checkpoint_helps(outcome)) listener_.want_checkpoint();
    changed_.reset();
    if (!co_await changed_.wait(deadline.token())) {
      result = token.cancelled() ? Error(token.reason()) : too_late(outcome);
      break;
    }
  }
  turn.give();
  co_return result;
}

// Otherwise what is missing waits for an entry to be applied or a read to end, which is told by changed(), too.
bool Admission::checkpoint_helps(Outcome outcome) const {
  if (outcome == Outcome::no_units_yet) return state_.space.would_release(journal_.first_unapplied());
  return journal_.first_unapplied() > journal_.tail();
}

Error Admission::too_late(Outcome outcome) const {
  if (outcome == Outcome::no_journal_yet) {
    return Error(Errc::busy, "the journal is full and its checkpoint is not keeping up");
  }
  const uint64_t unit = kUnitBytes;
  return Error(Errc::no_space, fmt::format("the shard is full ({} of {} MiB used): delete something or add a device",
                                           (state_.space.used() + state_.space.pending()) * unit / kMiB,
                                           state_.space.total() * unit / kMiB));
}

void Admission::give_back(Need need) {
  state_.space.unreserve(need.units);
  journal_.take_back(need.journal_bytes);
  changed();
}

}  // namespace cairn::engine
