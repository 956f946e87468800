// The release that this is.
#pragma once

#include <string_view>

namespace cairn {

// The same as project(VERSION) in the root CMakeLists.txt; a test of node/ compares them.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace cairn
