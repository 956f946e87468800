#include "admin/message.h"

#include <nlohmann/json.hpp>

namespace cairn::admin {

int http_status(Errc code) {
  switch (code) {
    case Errc::ok:
      return 200;
    case Errc::invalid_argument:
    case Errc::protocol_error:
      return 400;
    case Errc::unauthenticated:
      return 401;
    case Errc::permission_denied:
      return 403;
    case Errc::not_found:
      return 404;
    case Errc::already_exists:
    case Errc::condition_failed:
      return 409;
    case Errc::too_large:
      return 413;
    case Errc::unsupported:
      return 501;
    case Errc::busy:
    case Errc::unavailable:
    case Errc::closed:
    case Errc::stale_epoch:
    case Errc::cancelled:
      return 503;
    case Errc::timed_out:
      return 504;
    case Errc::no_space:
      return 507;
    case Errc::corrupt:
    case Errc::io_error:
    case Errc::device_fenced:
    case Errc::unknown:
      return 500;
  }
  return 500;
}

Response error_response(const Error& error) {
  const std::string message = error.message().empty() ? std::string(errc_name(error.code())) : error.message();
  const nlohmann::json body = {{"error", {{"code", errc_name(error.code())}, {"message", message}}}};
  return {.status = http_status(error.code()),
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace cairn::admin
