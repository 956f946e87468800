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

// Asks for the addresses of a name, on a helper thread; their ports don't matter.
using Lookup = Result<std::vector<Address>> (*)(const std::string& host);
// By the system's resolver: /etc/hosts, DNS and what else nsswitch.conf names.
Result<std::vector<Address>> look_up_by_system(const std::string& host);

// "example.org:9000", "localhost:9000", or what Address::parse takes. Best first, at least one. Asking for a
// name may take seconds; numbers are answered at once.
Task<Result<std::vector<Address>>> resolve(OffloadPool& helpers, Reactor& reactor, std::string host_and_port,
                                           Lookup lookup = &look_up_by_system);

}  // namespace cairn
