// cairn: the command line of a Cairn cluster.
#include <curl/curl.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"

namespace cairn::cli {
namespace {

constexpr const char* kFooter = R"text(
Examples:
  cairn status                        is all well, how full is it, where does it listen
  cairn bucket create photos
  cairn key create --note laptop      a new access key for S3 clients
  cairn --json status | jq .pools     for scripts
  cairn --data /var/lib/cairn status  a node with its data elsewhere
  eval "$(cairn completion bash)"     completion in this shell

The node is found by --endpoint, CAIRN_ENDPOINT, or the data directory (--data, CAIRN_DATA, ./run); the admin token
comes from CAIRN_TOKEN or the data directory.

Exit codes: 0 ok, 1 error, 2 wrong usage, 3 no node reachable, 4 not found, 5 exists already or not empty, 6 token
missing or wrong.)text";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void report(const Failure& failure, bool json) {
  if (json) {
    const nlohmann::json document = {{"error", {{"code", failure.code}, {"message", failure.message}}}};
    fmt::print(stderr, "{}\n", document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print(stderr, "cairn: {}\n", failure.message);
  }
}

int run(int argc, char** argv) {
  CLI::App app("cairn: look after a Cairn cluster", "cairn");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("cairn {}", kVersion));
  app.require_subcommand(1);
  // Options of the whole program may stand behind the command, too: cairn status --json.
  app.fallthrough();

  TargetOptions options;
  bool json = false;
  std::string timeout_text = "60s";
  app.add_option("--endpoint", options.endpoint, "admin endpoint of the node (CAIRN_ENDPOINT)")->type_name("HOST:PORT");
  app.add_option("--data", options.data_directory,
                 "data directory of the node, for its token and address (CAIRN_DATA, ./run)")
      ->type_name("DIR");
  app.add_flag("--json", json, "print the answer as JSON");
  app.add_option("--timeout", timeout_text, "how long to wait for an answer (60s)")->type_name("TIME");

  Action chosen;
  bool completion = false;
  add_node_commands(app, chosen);
  add_bucket_commands(app, chosen);
  add_key_commands(app, chosen);
  auto* completions = app.add_subcommand("completion", "print a completion script for a shell");
  completions->require_subcommand(1);
  completions->add_subcommand("bash", "for bash")->callback([&completion] { completion = true; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  if (completion) {
    fmt::print("{}", bash_completion(app));
    return 0;
  }
  const auto timeout = parse_duration(timeout_text);
  if (!timeout) {
    report({Exit::usage, "invalid_argument", "--timeout: " + timeout.error().message()}, json);
    return static_cast<int>(Exit::usage);
  }
  Session session{AdminClient(find_target(with_environment(options, &environment)), *timeout), json,
                  Style::for_standard_output()};
  const auto text = chosen(session);
  if (!text) {
    report(text.error(), json);
    return static_cast<int>(text.error().exit);
  }
  fmt::print("{}", *text);
  // Whoever pipes us into something must learn when the output got lost.
  return std::fflush(stdout) == 0 ? 0 : static_cast<int>(Exit::error);
}

}  // namespace
}  // namespace cairn::cli

int main(int argc, char** argv) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  int exit_code = 1;
  try {
    exit_code = cairn::cli::run(argc, argv);
  } catch (const std::exception& error) {
    // From libraries only; ours return errors.
    std::fprintf(stderr, "cairn: %s\n", error.what());
  }
  curl_global_cleanup();
  return exit_code;
}
