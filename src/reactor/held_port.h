// A port that is ours from the first moment of a start, so that another process that has it is found before anything is
// made, and a port chosen by the kernel is known before anything needs it.
#pragma once

#include "base/fd.h"
#include "base/status.h"
#include "reactor/address.h"

namespace cairn {

class HeldPort {
 public:
  HeldPort() = default;
  // Finds out that nobody else listens there, then binds with SO_REUSEPORT and doesn't listen: the listeners of the
  // reactors join it, and connections go to them only. (They alone would not notice another process of the same user
  // that shares its port likewise.) Port 0: any free one. Errors: busy (in use), permission_denied (below 1024), and
  // whatever else the address brings.
  static Result<HeldPort> take(const Address& at);

  // With the port that was had.
  const Address& address() const { return address_; }

 private:
  Fd socket_;
  Address address_;
};

}  // namespace cairn
