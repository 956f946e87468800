// What to tell when a service can't listen.
#pragma once

#include "base/status.h"
#include "node/ports.h"
#include "reactor/address.h"

namespace cairn::node {

// An error of a listener or of HeldPort, with the service, the address, and the settings to change.
Error listen_error(const Error& error, Service service, const Address& at);

}  // namespace cairn::node
