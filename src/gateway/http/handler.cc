#include "gateway/http/handler.h"

namespace cairn::http {

Task<void> Handler::refuse(int status, std::string_view reason, ResponseWriter& response) {
  response.set_status(status);
  response.set_header("Content-Type", "text/plain; charset=utf-8");
  (void)co_await response.send(std::string(reason) + "\n");
}

}  // namespace cairn::http
