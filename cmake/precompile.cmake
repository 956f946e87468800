# The headers that most sources include and that cost most to parse, parsed once. A source still names every header it
# uses: scripts/check-headers and scripts/check-tidy compile without this.
#
# cairn_precompiled(TARGET): TARGET's sources start from them. Libraries (-fPIC) and programs (-fPIE) can't share one file;
# the programs' is for tests and has gtest, too.
set(cairn_common_headers <algorithm> <array> <charconv> <coroutine> <cstring> <deque> <functional> <map> <memory>
  <optional> <span> <string> <string_view> <unordered_map> <utility> <vector> <fmt/format.h>)

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompile/library.cc" CONTENT "")
add_library(cairn_precompile_library OBJECT "${PROJECT_BINARY_DIR}/precompile/library.cc")
target_link_libraries(cairn_precompile_library PRIVATE fmt::fmt spdlog::spdlog Threads::Threads)
target_precompile_headers(cairn_precompile_library PRIVATE ${cairn_common_headers})

if(GTest_FOUND)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompile/test.cc" CONTENT "int main() {}\n")
  add_executable(cairn_precompile_test "${PROJECT_BINARY_DIR}/precompile/test.cc")
  target_link_libraries(cairn_precompile_test PRIVATE fmt::fmt spdlog::spdlog Threads::Threads GTest::gmock)
  target_precompile_headers(cairn_precompile_test PRIVATE ${cairn_common_headers} <gtest/gtest.h> <gmock/gmock.h>)
endif()

function(cairn_precompiled target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    target_precompile_headers(${target} REUSE_FROM cairn_precompile_library)
  elseif(type STREQUAL EXECUTABLE)
    target_precompile_headers(${target} REUSE_FROM cairn_precompile_test)
  endif()
endfunction()
