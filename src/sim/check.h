// Check: how a scenario says that the code under test broke its promise. Only the first failure counts: what follows it
// is usually its echo. Scenarios look at ok() and stop by themselves (no exception crosses a coroutine).
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>

namespace cairn::sim {

class Check {
 public:
  bool ok() const { return !failure_.has_value(); }
  const std::optional<std::string>& failure() const { return failure_; }

  // Returns `condition`.
  template <typename... Arguments>
  bool that(bool condition, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!condition) fail(text, std::forward<Arguments>(arguments)...);
    return condition;
  }
  template <typename... Arguments>
  void fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!failure_) failure_ = fmt::format(text, std::forward<Arguments>(arguments)...);
  }

 private:
  std::optional<std::string> failure_;
};

}  // namespace cairn::sim
