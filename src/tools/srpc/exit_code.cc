#include "tools/srpc/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/json_text.h"

namespace cairn::srpc::tools {

int report(const char* program, const Failure& failure, bool json) {
  if (json) {
    fmt::print(stderr, "{{\"error\": {{\"code\": \"{}\", \"message\": \"{}\"}}}}\n", failure.code,
               json_escape(failure.message));
  } else {
    fmt::print(stderr, "{}: {}\n", program, failure.message);
  }
  return static_cast<int>(failure.exit);
}

}  // namespace cairn::srpc::tools
