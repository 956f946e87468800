#include "admin/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "admin/api_routes.h"
#include "admin/secrets.h"

namespace cairn::admin {

const Api::Route Api::kRoutes[] = {
    {"GET", "/healthz", Access::open, &Api::healthz},
    {"GET", "/readyz", Access::open, &Api::readyz},
    {"GET", "/metrics", Access::loopback, &Api::metrics},
    {"GET", "/v1/status", Access::token, &Api::status},
    {"GET", "/v1/config", Access::token, &Api::config},
    {"POST", "/v1/checkpoint", Access::token, &Api::checkpoint},
    {"POST", "/v1/check/orphans", Access::token, &Api::check_orphans},
    {"GET", "/v1/buckets", Access::token, &Api::list_buckets},
    {"POST", "/v1/buckets", Access::token, &Api::create_bucket},
    {"GET", "/v1/buckets/{}", Access::token, &Api::show_bucket},
    {"DELETE", "/v1/buckets/{}", Access::token, &Api::delete_bucket},
    {"GET", "/v1/keys", Access::token, &Api::list_keys},
    {"POST", "/v1/keys", Access::token, &Api::create_key},
    {"DELETE", "/v1/keys/{}", Access::token, &Api::delete_key},
};

namespace {

constexpr Duration kCallTime = seconds(30);

// What "{}" in `pattern` stands for in `path`, "" when there is none, or nothing when they differ.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("{}")) return pattern == path ? std::optional<std::string_view>("") : std::nullopt;
  const auto stem = pattern.substr(0, pattern.size() - 2);
  if (!path.starts_with(stem)) return std::nullopt;
  const auto argument = path.substr(stem.size());
  if (argument.empty() || argument.find('/') != std::string_view::npos) return std::nullopt;
  return argument;
}

}  // namespace

bool Api::authorized(const Request& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view header = request.authorization;
  return header.starts_with(kScheme) && equal_in_constant_time(header.substr(kScheme.size()), token_);
}

object::CallContext Api::call_context() const { return {.deadline = context_.clock.now() + kCallTime, .cancel = {}}; }

Task<Response> Api::handle(Request request) {
  // HEAD is GET without the body, which the HTTP layer leaves out.
  if (request.method == "HEAD") request.method = "GET";
  std::string allow;
  for (const Route& route : kRoutes) {
    const auto argument = match(route.path, request.path);
    if (!argument) continue;
    if (route.method != request.method) {
      allow += (allow.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    const bool free = route.access == Access::open || (route.access == Access::loopback && request.from_loopback);
    if (!free && !authorized(request)) {
      co_return error_response(Error(Errc::unauthenticated,
                                     "the admin token is missing or wrong: send 'Authorization: Bearer TOKEN'; the "
                                     "token stands in the file admin_token of the data directory"));
    }
    const Call call{request, *argument};
    co_return co_await (this->*route.handler)(call);
  }
  // Who has no token learns nothing about which paths exist.
  if (request.path.starts_with("/v1/") && !authorized(request)) {
    co_return error_response(Error(Errc::unauthenticated, "the admin token is missing or wrong"));
  }
  if (!allow.empty()) {
    Response response = error_response(
        Error(Errc::invalid_argument, fmt::format("{} doesn't exist here; use {}", request.method, allow)));
    response.status = 405;
    response.allow = allow;
    co_return response;
  }
  co_return error_response(Error(Errc::not_found, "no such path; docs/admin-api.md lists them"));
}

Result<nlohmann::json> parse_body(const Request& request, std::initializer_list<std::string_view> known) {
  if (request.body.empty()) return nlohmann::json::object();
  if (request.body.size() > Api::kMaxBodyBytes) {
    return Error(Errc::too_large, fmt::format("the body is larger than {} bytes", Api::kMaxBodyBytes));
  }
  nlohmann::json body = nlohmann::json::parse(request.body, nullptr, false);
  if (!body.is_object()) return Error(Errc::invalid_argument, "the body is not a JSON object");
  for (const auto& [name, value] : body.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error(Errc::invalid_argument,
                   fmt::format("unknown member '{}'; known are: {}", name, fmt::join(known, ", ")));
    }
  }
  return body;
}

Result<std::string> text_member(const nlohmann::json& body, const char* name, size_t limit) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return std::string();
  if (!found->is_string()) return Error(Errc::invalid_argument, fmt::format("'{}' must be a text", name));
  auto text = found->get<std::string>();
  if (text.size() > limit) {
    return Error(Errc::invalid_argument, fmt::format("'{}' is longer than {} bytes", name, limit));
  }
  return text;
}

Result<bool> flag_parameter(const Request& request, std::string_view name) {
  if (request.query.empty()) return false;
  for (const std::string_view value : {"=true", "=1", ""}) {
    if (request.query == std::string(name) + std::string(value)) return true;
  }
  for (const std::string_view value : {"=false", "=0"}) {
    if (request.query == std::string(name) + std::string(value)) return false;
  }
  return Error(Errc::invalid_argument, fmt::format("unknown query; the only parameter here is {}=true", name));
}

}  // namespace cairn::admin
