#include "node/host_checks.h"

#include <sys/resource.h>

#include <cstdint>

#include "base/log.h"

namespace cairn::node {

void raise_file_limit() {
  constexpr rlim_t kFewFiles = 4096;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < kFewFiles) {
    LOG(warn, "only {} files and connections can be open at a time; raise the limit (ulimit -n, LimitNOFILE=)",
        static_cast<uint64_t>(limit.rlim_max));
  }
}

}  // namespace cairn::node
