// Handler: what a server calls for each request.
#pragma once

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
};

}  // namespace cairn::http
