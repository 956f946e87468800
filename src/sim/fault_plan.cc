#include "sim/fault_plan.h"

#include <iterator>
#include <string_view>

namespace cairn::sim {
namespace {

// The kinds that are drawn alike: name, where it stands, in how many of 100 seeds it is on.
struct Kind {
  std::string_view name;
  bool FaultPlan::* field;
  uint32_t percent;
};
constexpr Kind kKinds[] = {
    {"slow", &FaultPlan::slow, 10},
    {"read-errors", &FaultPlan::read_errors, 8},
    {"write-errors", &FaultPlan::write_errors, 8},
    {"flush-errors", &FaultPlan::flush_errors, 6},
    {"sparse-full", &FaultPlan::sparse_full, 3},
    {"rot-data", &FaultPlan::rot_data, 10},
    {"rot-journal", &FaultPlan::rot_journal, 6},
    {"rot-superblock", &FaultPlan::rot_superblock, 5},
    {"lying-data-writes", &FaultPlan::lying_data_writes, 5},
    {"store-busy", &FaultPlan::store_busy, 10},
    {"store-errors", &FaultPlan::store_errors, 5},
};

std::string_view name_of(CrashStyle style) {
  switch (style) {
    case CrashStyle::keep_completed:
      return "keep-completed";
    case CrashStyle::lose_unflushed:
      return "lose-unflushed";
    case CrashStyle::mixed:
      return "mixed";
  }
  return "?";
}

}  // namespace

FaultPlan FaultPlan::draw(Rng& rng) {
  FaultPlan plan;
  // Every second seed has nothing but crashes: the strictest check, and the most of the workload gets done.
  const bool crashes_only = rng.chance(1, 2);
  for (const Kind& kind : kKinds) {
    const bool drawn = rng.chance(kind.percent, 100);  // always drawn: adding a condition shifts nothing
    plan.*kind.field = drawn && !crashes_only;
  }
  plan.crashes = rng.chance(19, 20);
  plan.crash_style = static_cast<CrashStyle>(rng.below(3));
  plan.tear_bytes = rng.chance(1, 2) ? 512 : 4096;
  plan.tear_to_garbage = rng.chance(1, 4);
  return plan;
}

bool FaultPlan::only_crashes() const {
  for (const Kind& kind : kKinds) {
    if (this->*kind.field) return false;
  }
  return true;
}

std::string FaultPlan::to_string() const {
  std::string text;
  for (const Kind& kind : kKinds) {
    if (this->*kind.field) text.append(kind.name).append(" ");
  }
  if (crashes) {
    text.append("crashes(").append(name_of(crash_style)).append(", torn at ").append(std::to_string(tear_bytes));
    text.append(tear_to_garbage ? ", garbage)" : ")");
  }
  return text;
}

}  // namespace cairn::sim
