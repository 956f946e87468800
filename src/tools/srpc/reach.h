// Getting a connection, and if there is none, saying what stands in the way and what to do about it.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"
#include "reactor/task.h"
#include "srpc/channel.h"
#include "srpc/reactor_host.h"
#include "tools/srpc/exit_code.h"

namespace cairn::srpc::tools {

// One attempt, `timeout` at most. `with_key`: the channel has one. Where the connection can go over to RDMA it has done
// so when this returns, or isn't about to; with Way::rdma that is a failure.
Task<std::optional<Failure>> reach(Channel& channel, Way way, Duration timeout, bool with_key);

// Its RDMA devices.
rdma::Verbs& this_machine();
// What a client's host needs for `way`.
std::optional<rdma::RdmaOptions> rdma_for(Way way);

struct Attempt {
  std::string_view where;
  Way way;
  Duration timeout;
  bool with_key;
  bool reached;  // somebody took the connection
};
// What an attempt's error means.
Failure explain(const Error& error, const Attempt& attempt);

}  // namespace cairn::srpc::tools
