// Handler: what a server calls for each request.
#pragma once

#include <string_view>

#include "gateway/http/request.h"
#include "gateway/http/response.h"
#include "reactor/task.h"

namespace cairn::http {

class Handler {
 public:
  virtual ~Handler() = default;
  // Answers `request` by `response`; both live until the task ends. One that returns without having answered causes a
  // 500, and one without finish() a connection that is closed short.
  virtual Task<void> handle(Request& request, ResponseWriter& response) = 0;
  // Answers what didn't get as far as a request: a malformed, too large or too slow head, a connection too many. The
  // connection closes after it. By default `reason` as plain text.
  virtual Task<void> refuse(int status, std::string_view reason, ResponseWriter& response);
};

}  // namespace cairn::http
