// What srpc-perf's subcommands have in common.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "reactor/address.h"
#include "tools/srpc/exit_code.h"

namespace cairn::srpc::tools {

inline constexpr const char* kPerfProgram = "srpc-perf";

Failure failure_of(const Error& error, Exit exit = Exit::failed);
// A server as the command line names it, on a reactor of its own.
Result<Address> resolve_address(const std::string& text);
// At once, also into a pipe: a measurement takes long enough for somebody to wonder.
void print_line(const std::string& line);
bool write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace cairn::srpc::tools
