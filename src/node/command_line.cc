#include "node/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <vector>

#include "base/version.h"
#include "node/config_file.h"
#include "node/resources.h"

namespace cairn::node {
namespace {

constexpr const char* kFooter = R"(
Examples:
  cairnd --data /var/lib/cairn
  cairnd --data ./run --set reactors=2 --set device.size=20GiB
  cairnd --data ./n1 --set ports.base=9100          S3 at 9100, admin at 9101, SRPC at 9102
  cairnd --print-config > cairn.toml                every setting with its default and what it means

Signals: TERM and INT stop gracefully (a second one at once); HUP does nothing.
Exit codes: 0 stopped, 1 failed, 2 wrong usage or configuration.)";

std::string toml_text(const Setting& setting, const std::string& value) {
  const bool list = std::holds_alternative<std::vector<std::string> NodeSettings::*>(setting.member);
  const bool plain_number = setting.unit == Unit::none && !value.empty() &&
                            value.find_first_not_of("0123456789") == std::string::npos &&
                            !std::holds_alternative<std::string NodeSettings::*>(setting.member) && !list;
  if (plain_number) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string print_config(const Settings& settings) {
  std::string out;
  std::string_view section;
  for (const auto& row : settings.rows()) {
    const auto dot = row.setting->name.find('.');
    const auto table = dot == std::string_view::npos ? std::string_view() : row.setting->name.substr(0, dot);
    if (table != section) {
      out += fmt::format("\n[{}]\n", table);
      section = table;
    }
    out += fmt::format("# {} ({})\n", row.setting->help, row.setting->type_text());
    const auto key = dot == std::string_view::npos ? row.setting->name : row.setting->name.substr(dot + 1);
    out += fmt::format("{} = {}  # {}\n", key, toml_text(*row.setting, row.value),
                       row.origin == "default" ? "default" : "from " + row.origin);
  }
  return out;
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  std::string config_file;
  std::vector<std::string> assignments;
  bool print = false;
  bool check = false;

  CLI::App app("cairnd: one node of a Cairn storage cluster", "cairnd");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("cairnd {}", kVersion));
  app.add_option("--data", line.data_directory, "data directory; made at the first start")->type_name("DIR");
  app.add_option("--config", config_file, "config file (TOML)")->type_name("FILE");
  app.add_option("--ready-file", line.ready_file, "write endpoints and credentials here (JSON) when everything is up")
      ->type_name("FILE");
  app.add_option("--set", assignments, "set one setting; stronger than the config file, may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  app.add_flag("--print-config", print, "print every setting, its value and where it comes from");
  app.add_flag("--check-config", check, "check the settings and stop");

  line.action = CommandLine::Action::done;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help and version on standard output, errors on standard error.
    line.exit_code = app.exit(error) == 0 ? 0 : kExitUsage;
    return line;
  }
  const auto usage = [&](const std::string& message) {
    fmt::print(stderr, "cairnd: {}\n", message);
    line.exit_code = kExitUsage;
    return line;
  };

  if (!config_file.empty()) {
    if (auto applied = apply_config_file(config_file, line.settings); !applied) return usage(applied.error().message());
  }
  for (const auto& assignment : assignments) {
    if (auto set = line.settings.set_assignment(assignment, "--set"); !set) return usage(set.error().message());
  }
  if (print) {
    line.action = CommandLine::Action::print_config;
    return line;
  }
  if (auto resources = resolve_resources(line.settings.values(), Machine::probe()); !resources) {
    return usage(resources.error().message());
  }
  if (check) {
    line.action = CommandLine::Action::check_config;
    return line;
  }
  if (line.data_directory.empty()) return usage("--data DIR is missing; try cairnd --help");
  line.action = CommandLine::Action::run;
  line.exit_code = 0;
  return line;
}

}  // namespace cairn::node
