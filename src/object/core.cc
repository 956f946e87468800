#include "object/core.h"

#include <algorithm>

namespace cairn::object {

Task<Result<void>> Core::pause(uint32_t attempt, CancelToken cancel) const {
  // The first collision is nearly always over by now.
  if (attempt == 0) {
    if (cancel.cancelled()) co_return Error(cancel.reason());
    co_return Result<void>{};
  }
  constexpr int64_t kLongestUs = 50'000;
  const int64_t limit_us = std::min(kLongestUs, int64_t{100} << std::min(attempt, 20u));
  const auto us = static_cast<int64_t>(loop.rng().below(static_cast<uint64_t>(limit_us)));
  co_return co_await loop.sleep(microseconds(us), cancel);
}

}  // namespace cairn::object
