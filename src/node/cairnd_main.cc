// cairnd: a node of a Cairn cluster.
#include <fmt/format.h>

#include <cstdio>

#include "base/log.h"
#include "node/command_line.h"
#include "node/process.h"
#include "reactor/stop_signals.h"

namespace cairn::node {
namespace {

void set_up_log(const NodeSettings& settings) {
  using log::Level;
  const Level level = settings.log_level == "debug"  ? Level::debug
                      : settings.log_level == "info" ? Level::info
                      : settings.log_level == "warn" ? Level::warn
                                                     : Level::error;
  log::setup(level, settings.log_format == "json" ? log::Format::json : log::Format::text);
}

void report(const Error& error, const NodeSettings& settings) {
  if (settings.log_format == "json") {
    LOG(error, "{}", error.message());
  } else {
    fmt::print(stderr, "cairnd: {}\n", error.message().empty() ? errc_name(error.code()) : error.message());
  }
}

int run(const CommandLine& line) {
  set_up_log(line.settings.values());
  StopSignals signals;
  Process process(line, signals);
  const auto started = process.start();
  if (started) {
    signals.wait();
    LOG(info, "stopping; a second signal ends it at once");
  } else {
    report(started.error(), line.settings.values());
  }
  signals.let_the_next_one_kill();
  process.stop();
  if (!started) return kExitError;
  LOG(info, "stopped");
  return 0;
}

int main(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv);
  switch (line.action) {
    case CommandLine::Action::done:
      return line.exit_code;
    case CommandLine::Action::print_config:
      fmt::print("{}", print_config(line.settings));
      return 0;
    case CommandLine::Action::check_config:
      fmt::print("the settings are fine\n");
      return 0;
    case CommandLine::Action::run:
      return run(line);
  }
  return kExitError;
}

}  // namespace
}  // namespace cairn::node

int main(int argc, char** argv) { return cairn::node::main(argc, argv); }
