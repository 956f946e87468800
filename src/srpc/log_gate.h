// LogGate: what happens in a loop must not fill the log: one line a second, which tells how many were left out.
//
//   if (auto left_out = gate.open(loop.now())) LOG(info, "it happened again{}", *left_out);
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"

namespace cairn::srpc {

class LogGate {
 public:
  // nullopt: no line now. Else what to append to it: nothing, or " (3 more of late)".
  std::optional<std::string> open(Time now) {
    if (now < next_) {
      ++left_out_;
      return std::nullopt;
    }
    next_ = now + seconds(1);
    const uint64_t left_out = std::exchange(left_out_, 0);
    return left_out == 0 ? std::string() : fmt::format(" ({} more of late)", left_out);
  }

 private:
  Time next_;
  uint64_t left_out_ = 0;
};

}  // namespace cairn::srpc
