// What cairnd was asked to do.
#pragma once

#include <string>

#include "base/status.h"
#include "node/settings.h"

namespace cairn::node {

struct CommandLine {
  enum class Action { run, print_config, check_config, done };

  Action action = Action::run;
  std::string data_directory;
  std::string ready_file;
  Settings settings;
  int exit_code = 0;  // for Action::done: help and version were printed, or what was wrong
};

inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// Prints help, version and usage errors itself.
CommandLine parse_command_line(int argc, const char* const* argv);

// The settings with values, origins and help, as a config file.
std::string print_config(const Settings& settings);

}  // namespace cairn::node
