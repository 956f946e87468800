// The routes of the admin API and the values that handlers share. Internal to admin/.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "admin/api.h"

namespace cairn::admin {

enum class Access {
  open,      // says nothing secret
  loopback,  // open for callers on this machine, with the token for others
  token,
};

// A routed request.
struct Api::Call {
  const Request& request;
  std::string_view argument;  // what "{}" in the route's path matched
};

struct Api::Route {
  std::string_view method;
  std::string_view path;  // may end in "/{}", which matches one segment
  Access access;
  Task<Response> (Api::*handler)(const Call& call);
};

inline Response json_response(const nlohmann::json& body, int status = 200) {
  // Bytes that aren't UTF-8 (a key's note from an older release, say) must not end the process.
  return {.status = status, .body = body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

// The body as a JSON object with members of this list only; an empty body is {}.
Result<nlohmann::json> parse_body(const Request& request, std::initializer_list<std::string_view> known);
// A text member: empty when missing; invalid_argument when it isn't a text or longer than `limit` bytes.
Result<std::string> text_member(const nlohmann::json& body, const char* name, size_t limit);
// "true"/"1" or absent for the one query parameter `name`; everything else is invalid_argument.
Result<bool> flag_parameter(const Request& request, std::string_view name);

}  // namespace cairn::admin
