// ChildServer: srpc-perf's server as a process of its own, for measurements that need no second machine.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/reactor.h"

namespace cairn::srpc::tools {

class ChildServer {
 public:
  // This program once more, on a free port of loopback. Returns when it listens. Before this process has threads.
  // `key_file`: empty for an open server, which has no `tls`.
  static Result<std::unique_ptr<ChildServer>> start(Mode mode, uint32_t poll_groups, const std::string& key_file,
                                                    bool tls);
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;
  // Asks it to stop and waits for its end. (It also ends when this process does, however that ends.)
  ~ChildServer();

  const std::string& address() const { return address_; }

 private:
  explicit ChildServer(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::string address_;
};

}  // namespace cairn::srpc::tools
