// What the commands are and do. Each file of commands_*.cc adds its own to the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/admin_client.h"
#include "cli/outcome.h"
#include "cli/output.h"

namespace cairn::cli {

struct Session {
  AdminClient client;
  bool json = false;
  Style style;
};

// Does the command and returns what to print.
using Action = std::function<std::expected<std::string, Failure>(Session& session)>;

// Adds commands to `app`. When one is parsed, it puts what to do into `chosen`.
void add_node_commands(CLI::App& app, Action& chosen);
void add_bucket_commands(CLI::App& app, Action& chosen);
void add_key_commands(CLI::App& app, Action& chosen);

// Calls `render(answer, style)` for people, and gives the answer as it is with --json.
std::expected<std::string, Failure> show(const Session& session, const AdminClient::Answer& answer,
                                         std::string (*render)(const nlohmann::json&, const Style&));

// Members of an answer; what is missing or of another type (a newer node) reads as "" and 0 and never throws.
std::string text_of(const nlohmann::json& object, const char* name);
uint64_t number_of(const nlohmann::json& object, const char* name);
double real_of(const nlohmann::json& object, const char* name);
// The list under `name`, or an empty one.
const nlohmann::json& list_of(const nlohmann::json& object, const char* name);

// For tests: what people see of answers.
std::string render_status(const nlohmann::json& answer, const Style& style);
std::string render_config(const nlohmann::json& answer, const Style& style);
std::string render_orphans(const nlohmann::json& answer, const Style& style);
std::string render_buckets(const nlohmann::json& answer, const Style& style);
std::string render_bucket(const nlohmann::json& answer, const Style& style);
std::string render_keys(const nlohmann::json& answer, const Style& style);

// A script for bash that completes the commands and options of `app`.
std::string bash_completion(const CLI::App& app);

}  // namespace cairn::cli
