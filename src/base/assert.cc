#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace cairn {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace cairn
