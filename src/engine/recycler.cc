#include "engine/recycler.h"

#include <algorithm>

#include "engine/device_group.h"

namespace cairn::engine {
namespace {

constexpr size_t kAtOnce = 1024;
constexpr size_t kDiscardsInFlight = 16;

}  // namespace

// When units are scarce, somebody waits for them: discarding comes second.
bool Recycler::wants_discard() const {
  return state_.context.device.supports_discard() && state_.space.free() > state_.space.total() / 16;
}

Task<void> Recycler::run() {
  while (!stopping_) {
    std::vector<Unit> units = state_.space.take_released(kAtOnce);
    if (units.empty()) {
      wake_.reset();
      (void)co_await wake_.wait();
      continue;
    }
    std::ranges::sort(units);
    if (wants_discard()) co_await discard(units);
    for (const Unit unit : units) state_.space.free_unit(unit);
    listener_.on_units_freed();
    co_await state_.context.loop.yield();
  }
}

// A discard that fails changes nothing: the unit is free either way.
Task<void> Recycler::discard(std::vector<Unit> units) {
  for (size_t i = 0; i < units.size();) {
    DeviceGroup group(state_.context.device, kDiscardsInFlight);
    for (size_t n = 0; n < kDiscardsInFlight && i < units.size(); ++n) {
      const Unit first = units[i];
      uint32_t count = 1;
      while (i + count < units.size() && units[i + count] == first + count) ++count;
      group.add_discard(state_.layout.unit_offset(first), uint64_t{count} * kUnitBytes);
      state_.metrics.discarded_bytes.add(uint64_t{count} * kUnitBytes);
      i += count;
    }
    (void)co_await group;
  }
}

}  // namespace cairn::engine
