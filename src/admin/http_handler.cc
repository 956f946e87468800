#include "admin/http_handler.h"

#include "reactor/address.h"

namespace cairn::admin {
namespace {

bool is_loopback(std::string_view peer) {
  const auto address = Address::parse(peer);
  return address && address->is_loopback();
}

Task<void> answer(http::ResponseWriter& writer, Response response) {
  writer.set_status(response.status);
  writer.set_header("Content-Type", response.content_type);
  writer.set_header("Cache-Control", "no-store");
  if (!response.allow.empty()) writer.set_header("Allow", response.allow);
  if (response.status == 401) writer.set_header("WWW-Authenticate", "Bearer");
  // An error here means that the client is gone, which ends the connection anyway.
  (void)co_await writer.send(std::move(response.body));
}

}  // namespace

Task<void> HttpHandler::handle(http::Request& request, http::ResponseWriter& response) {
  Request call{.method = std::string(request.head().method_text),
               .path = std::string(request.path()),
               .query = std::string(request.query()),
               .authorization = std::string(request.headers().value("Authorization")),
               .body = "",
               .from_loopback = is_loopback(request.peer())};
  if (request.has_body()) {
    auto body = co_await request.read_all(Api::kMaxBodyBytes);
    if (!body) {
      co_await answer(response, error_response(body.error()));
      co_return;
    }
    call.body = *std::move(body);
  }
  co_await answer(response, co_await api_.handle(std::move(call)));
}

}  // namespace cairn::admin
