// What the machine must give before a node can start, checked early, so that the error names the cause and not one of
// its consequences.
#pragma once

#include "base/status.h"
#include "node/ports.h"
#include "reactor/address.h"

namespace cairn::node {

// Raises the soft limit of open files to the hard one; a warning when that isn't much.
void raise_file_limit();

// Whether this process can listen there. Errors: busy (taken; names the port and the setting), permission_denied,
// invalid_argument (not an address of this machine). The listeners proper share their port between reactors
// (SO_REUSEPORT), so they would not notice another process of the same user that does the same.
Result<void> check_port_free(Service service, const Address& at);

// An error of a listener, with the service, the address, and the settings to change.
Error listen_error(const Error& error, Service service, const Address& at);

}  // namespace cairn::node
