#include "base/status.h"

#include <array>
#include <cerrno>
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
    case ENODEV:
    case ENXIO:
      return Errc::not_found;
    case EEXIST:
      return Errc::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::permission_denied;
    case ENOSPC:
    case EDQUOT:
      return Errc::no_space;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case EADDRNOTAVAIL:
      return Errc::invalid_argument;
    case EFBIG:
      return Errc::too_large;
    // The system's own limits: it may go better later.
    case EBUSY:
    case EADDRINUSE:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return Errc::busy;
    case ECANCELED:
      return Errc::cancelled;
    case ETIMEDOUT:
      return Errc::timed_out;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
      return Errc::unavailable;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case ESHUTDOWN:
      return Errc::closed;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
      return Errc::unsupported;
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
  // Not strerror: that one isn't for threads.
  const char* description = strerrordesc_np(errno_value);
  text.append(": ").append(description != nullptr ? description : "unknown error " + std::to_string(errno_value));
  return Error(errc_from_errno(errno_value), std::move(text));
}

}  // namespace cairn
