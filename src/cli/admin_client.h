// Calls to the admin API of one node.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/outcome.h"

namespace cairn::cli {

// Where the node is and what proves that we may ask. What the user said is stronger than the environment, and that is
// stronger than the data directory.
struct Target {
  std::string endpoint;  // "http://127.0.0.1:7070"
  std::string token;     // may be empty: the node will say what is missing
};

struct TargetOptions {
  std::string endpoint;        // --endpoint, else CAIRN_ENDPOINT
  std::string token;           // CAIRN_TOKEN
  std::string data_directory;  // --data, else CAIRN_DATA, else ./run: holds admin_token and endpoints.json
};

// Takes the environment as a function, so that a test can hand in its own.
using Environment = std::string (*)(const char* name);
TargetOptions with_environment(TargetOptions options, Environment get);
// The endpoint is options.endpoint, else what a node wrote into the data directory, else the default port.
Target find_target(const TargetOptions& options);

class AdminClient {
 public:
  AdminClient(Target target, Duration timeout) : target_(std::move(target)), timeout_(timeout) {}

  using Answer = std::expected<nlohmann::json, Failure>;
  Answer get(std::string_view path) const { return call("GET", path, ""); }
  Answer post(std::string_view path, const nlohmann::json& body) const { return call("POST", path, body.dump()); }
  Answer remove(std::string_view path) const { return call("DELETE", path, ""); }

 private:
  Answer call(std::string_view method, std::string_view path, std::string body) const;

  Target target_;
  Duration timeout_;
};

// What an answer of the API means: its body, or the failure that it names.
AdminClient::Answer interpret(long status, const std::string& body);
// For a path's segment: everything but letters, digits, '-', '_', '.' and '~' as %XX.
std::string percent_encode(std::string_view text);

}  // namespace cairn::cli
