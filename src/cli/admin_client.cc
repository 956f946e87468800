#include "cli/admin_client.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "cli/http_client.h"

namespace cairn::cli {
namespace {

constexpr std::string_view kDefaultEndpoint = "127.0.0.1:7070";

std::string read_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string first_line(std::string text) {
  text.resize(std::min(text.size(), text.find_first_of("\r\n")));
  return text;
}

std::string endpoint_of_data_directory(const std::string& directory) {
  const auto document = nlohmann::json::parse(read_file(directory + "/endpoints.json"), nullptr, false);
  const auto endpoints = document.is_object() ? document.find("endpoints") : document.end();
  if (endpoints == document.end() || !endpoints->is_object()) return "";
  const auto admin = endpoints->find("admin");
  return admin != endpoints->end() && admin->is_string() ? admin->get<std::string>() : "";
}

Exit exit_of(long status) {
  switch (status) {
    case 401:
    case 403:
      return Exit::unauthorized;
    case 404:
      return Exit::not_found;
    case 409:
      return Exit::conflict;
    default:
      return Exit::error;
  }
}

}  // namespace

TargetOptions with_environment(TargetOptions options, Environment get) {
  if (options.endpoint.empty()) options.endpoint = get("CAIRN_ENDPOINT");
  if (options.token.empty()) options.token = get("CAIRN_TOKEN");
  if (options.data_directory.empty()) options.data_directory = get("CAIRN_DATA");
  if (options.data_directory.empty()) options.data_directory = "run";
  return options;
}

Target find_target(const TargetOptions& options) {
  Target target{options.endpoint, options.token};
  if (target.endpoint.empty()) target.endpoint = endpoint_of_data_directory(options.data_directory);
  if (target.endpoint.empty()) target.endpoint = kDefaultEndpoint;
  if (target.endpoint.find("://") == std::string::npos) target.endpoint = "http://" + target.endpoint;
  while (target.endpoint.ends_with('/')) target.endpoint.pop_back();
  if (target.token.empty()) target.token = first_line(read_file(options.data_directory + "/admin_token"));
  return target;
}

AdminClient::Answer AdminClient::call(std::string_view method, std::string_view path, std::string body) const {
  const auto response = send({.method = std::string(method),
                              .url = target_.endpoint + std::string(path),
                              .bearer_token = target_.token,
                              .json_body = std::move(body),
                              .timeout = timeout_});
  if (!response) return std::unexpected(response.error());
  auto answer = interpret(response->status, response->body);
  if (!answer && answer.error().exit == Exit::unauthorized) {
    answer.error().message = target_.token.empty()
                                 ? "no admin token: set CAIRN_TOKEN, or name the node's data directory with --data"
                                 : "the node refused the admin token: does CAIRN_TOKEN or --data belong to this node?";
  }
  return answer;
}

AdminClient::Answer interpret(long status, const std::string& body) {
  auto document = nlohmann::json::parse(body, nullptr, false);
  if (status >= 200 && status < 300) {
    if (document.is_object()) return document;
    return std::unexpected(Failure{Exit::error, "protocol_error",
                                   "the answer is not from Cairn's admin API; is this the admin endpoint?"});
  }
  Failure failure{exit_of(status), "unknown", fmt::format("the server answered with HTTP status {}", status)};
  const auto error = document.is_object() ? document.find("error") : document.end();
  if (error == document.end() || !error->is_object()) {
    // Somebody else's 404 says nothing about our bucket.
    failure.exit = Exit::error;
    failure.code = "protocol_error";
    failure.message += "; is this the admin endpoint?";
    return std::unexpected(failure);
  }
  if (const auto code = error->find("code"); code != error->end() && code->is_string()) failure.code = *code;
  if (const auto text = error->find("message"); text != error->end() && text->is_string()) failure.message = *text;
  return std::unexpected(failure);
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace cairn::cli
