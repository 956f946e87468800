// The admin API behind an HTTP server.
#pragma once

#include "admin/api.h"
#include "gateway/http/handler.h"

namespace cairn::admin {

class HttpHandler final : public http::Handler {
 public:
  explicit HttpHandler(Api& api) : api_(api) {}
  Task<void> handle(http::Request& request, http::ResponseWriter& response) override;

 private:
  Api& api_;
};

}  // namespace cairn::admin
