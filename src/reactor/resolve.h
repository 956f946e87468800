// Names to addresses.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/offload.h"
#include "reactor/reactor.h"
#include "reactor/task.h"

namespace cairn {

// "example.org:9000", "localhost:9000", or what Address::parse takes. Best first, at least one. Asks the system's
// resolver on a helper thread, which may take seconds; numbers are answered at once.
Task<Result<std::vector<Address>>> resolve(OffloadPool& helpers, Reactor& reactor, std::string host_and_port);

}  // namespace cairn
