// A blocking HTTP client for one request at a time (libcurl).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/outcome.h"

namespace cairn::cli {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::string bearer_token = "";
  std::string json_body = "";  // sent with its content type when not empty
  Duration timeout = seconds(60);
};

struct HttpResponse {
  long status = 0;
  std::string body;
};

// Any answer of a server is a response, whatever its status. Failures: unreachable (nobody answers, or too late),
// error. Answers beyond 64 MiB are refused.
std::expected<HttpResponse, Failure> send(const HttpRequest& request);

}  // namespace cairn::cli
