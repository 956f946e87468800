#include "base/status.h"

#include <array>
#include <cstring>

namespace cairn {
namespace {

constexpr std::array<std::string_view, 21> kNames = {"ok",
                                                     "invalid_argument",
                                                     "not_found",
                                                     "already_exists",
                                                     "condition_failed",
                                                     "no_space",
                                                     "corrupt",
                                                     "io_error",
                                                     "device_fenced",
                                                     "busy",
                                                     "timed_out",
                                                     "cancelled",
                                                     "closed",
                                                     "unavailable",
                                                     "stale_epoch",
                                                     "permission_denied",
                                                     "unauthenticated",
                                                     "unsupported",
                                                     "protocol_error",
                                                     "too_large",
                                                     "unknown"};
static_assert(kNames.size() == static_cast<size_t>(Errc::unknown) + 1);

Errc errc_from_errno(int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return Errc::not_found;
    case EEXIST:
      return Errc::already_exists;
    case EACCES:
    case EPERM:
      return Errc::permission_denied;
    case ENOSPC:
    case EDQUOT:
      return Errc::no_space;
    case EINVAL:
      return Errc::invalid_argument;
    case EBUSY:
    case EADDRINUSE:
      return Errc::busy;
    case ECANCELED:
      return Errc::cancelled;
    case ETIMEDOUT:
      return Errc::timed_out;
    case ECONNREFUSED:
      return Errc::unavailable;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return Errc::closed;
    default:
      return Errc::io_error;
  }
}

}  // namespace

std::string_view errc_name(Errc code) noexcept {
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : kNames.back();
}

Errc errc_from_wire(uint16_t value) noexcept {
  return value < kNames.size() ? static_cast<Errc>(value) : Errc::unknown;
}

std::string Error::to_string() const {
  std::string text(errc_name(code_));
  if (!message_.empty()) text.append(": ").append(message_);
  return text;
}

Error Error::with_context(std::string_view context) && {
  std::string text(context);
  if (!message_.empty()) text.append(": ").append(message_);
  return Error(code_, std::move(text));
}

Error error_from_errno(int errno_value, std::string_view what) {
  std::string text(what);
  text.append(": ").append(strerror(errno_value));
  return Error(errc_from_errno(errno_value), std::move(text));
}

}  // namespace cairn
