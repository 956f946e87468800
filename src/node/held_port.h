// A port that is ours from the first moment of a start, so that another process that has it is found before anything is
// made, and a port chosen by the kernel is known before anything needs it.
#pragma once

#include "base/fd.h"
#include "base/status.h"
#include "node/ports.h"
#include "reactor/address.h"

namespace cairn::node {

class HeldPort {
 public:
  HeldPort() = default;
  // Finds out that nobody else listens there, then binds with SO_REUSEPORT and doesn't listen: the listeners of the
  // reactors join it, and connections go to them only. (They alone would not notice another process of the same user
  // that shares its port likewise.) Port 0: any free one. Errors: busy, permission_denied, invalid_argument, with the
  // service, the address, and the settings to change.
  static Result<HeldPort> take(Service service, Address at);

  // With the port that was had.
  const Address& address() const { return address_; }

 private:
  Fd socket_;
  Address address_;
};

// An error of a listener, with the service, the address, and the settings to change.
Error listen_error(const Error& error, Service service, const Address& at);

}  // namespace cairn::node
