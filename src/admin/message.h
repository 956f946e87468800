// A request to the admin API and its answer, free of HTTP's wire format.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace cairn::admin {

struct Request {
  std::string method;         // upper case
  std::string path;           // without the query
  std::string query;          // behind the "?"
  std::string authorization;  // the header's value
  std::string body = "";
  bool from_loopback = false;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = "";
  std::string allow = "";  // for 405: the methods that the path has
};

// {"error": {"code": "not_found", "message": "..."}} with the HTTP status that fits the code.
Response error_response(const Error& error);
int http_status(Errc code);

}  // namespace cairn::admin
