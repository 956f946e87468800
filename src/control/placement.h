// Placement: which group holds what. The answers are part of the format: a chunk or key written under one group is
// never looked for in another.
#pragma once

#include <cstdint>

#include "base/id.h"
#include "engine/types.h"

namespace cairn::control {

// Group 0 also holds cluster-wide state: bucket names, access keys.
inline constexpr engine::GroupId kSystemGroup{0};
inline constexpr uint32_t kDefaultGroups = 16;
inline constexpr uint32_t kMaxGroups = 65'536;

// Uniform in [0, groups), for identifiers that are random and for ones that count.
engine::GroupId group_of(const Id128& id, uint32_t groups);

}  // namespace cairn::control
