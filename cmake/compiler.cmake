# One compiler, checked early and with a message that says what to do. g++ 12 double-frees aggregate temporaries in
# co_await expressions and overflows the stack on symmetric transfer; src/reactor/compiler_probe_test.cc shows both.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR
    "Cairn needs clang 19 or newer, and this is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. "
    "g++ miscompiles coroutines. Run scripts/setup.sh, remove the build directory, and configure with a preset: "
    "cmake --preset release")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Precompiled headers need the sloppiness (and -fno-pch-timestamp); the rest lets checkouts and build folders share.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror -fno-omit-frame-pointer -msse4.2 -mpclmul)
add_compile_options(-fdiagnostics-color=always)
add_link_options(-fuse-ld=lld)

# Line tables only: enough for backtraces and perf, a third of the link time. Assertions stay on in every build: ours
# don't depend on NDEBUG.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -gline-tables-only")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

set(CAIRN_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")
option(CAIRN_FUZZ "Build the fuzz targets" OFF)
if(CAIRN_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
  add_compile_options(-fsanitize=${CAIRN_SANITIZE} -fno-sanitize-recover=all)
  string(REPLACE "fuzzer-no-link," "" CAIRN_SANITIZE_LINK "${CAIRN_SANITIZE}")
  add_link_options(-fsanitize=${CAIRN_SANITIZE_LINK})
endif()
