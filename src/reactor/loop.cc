#include "reactor/loop.h"

namespace cairn {

size_t Loop::run_ready() {
  const size_t n = ready_.size();
  for (size_t i = 0; i < n; ++i) {
    const Ready ready = ready_.front();
    ready_.pop_front();
    ready.function(ready.argument);
  }
  return n;
}

}  // namespace cairn
