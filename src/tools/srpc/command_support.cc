#include "tools/srpc/command_support.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "srpc/reactor_host.h"
#include "tools/srpc/perf_commands.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {

Failure failure_of(const Error& error, Exit exit) {
  return {exit, std::string(errc_name(error.code())), error.message()};
}

Result<Address> resolve_address(const std::string& text) {
  TRY(auto host, ReactorHost::create({.mode = Mode::economy, .memory = size_t{2} << 20}));
  return find_server(*host, text, kPerfPort);
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

bool write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  return out.good();
}

}  // namespace cairn::srpc::tools
