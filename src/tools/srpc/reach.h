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

// One attempt, `timeout` at most.
Task<std::optional<Failure>> reach(Channel& channel, Way way, Duration timeout);

// What an attempt's error means. `reached`: somebody took the connection.
Failure explain(const Error& error, bool reached, std::string_view where, Way way, Duration timeout);

}  // namespace cairn::srpc::tools
