// Errors are values. A function that can fail returns Result<T>; exceptions do not cross a module.
//
//   Result<Superblock> read_superblock(...);
//
//   Result<void> open() {
//     TRY(auto superblock, read_superblock(...));   // returns the error to our caller
//     TRY(check(superblock));                       // for Result<void>
//     return {};
//   }
//
// In a coroutine use CO_TRY(auto x, co_await f()), which differs only in co_return.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace cairn {

// What went wrong, in the few kinds that callers treat differently. The values travel on the wire (SRPC status) and
// must never be renumbered.
enum class Errc : uint16_t {
  ok = 0,
  invalid_argument = 1,    // the request can never succeed as it is
  not_found = 2,           // no such chunk, key, bucket, ...
  already_exists = 3,      // a condition "must not exist" failed
  condition_failed = 4,    // another condition failed (versions differ); read again and retry if it makes sense
  no_space = 5,            // the device or a quota is full: delete something or add devices
  corrupt = 6,             // stored bytes do not match their checksum
  io_error = 7,            // the device answered with an error
  device_fenced = 8,       // the device failed a write or flush before and takes no more
  busy = 9,                // a bounded queue or pool is full: come back later
  timed_out = 10,          // the deadline passed; the effect is unknown
  cancelled = 11,          // the caller gave up; the effect is unknown
  closed = 12,             // the connection, channel or object is closed
  unavailable = 13,        // nobody serves this now (starting, stopping, no leader)
  stale_epoch = 14,        // the caller's cluster map is older than the server's
  permission_denied = 15,  // known but not allowed
  unauthenticated = 16,    // the proof of identity is missing or wrong
  unsupported = 17,        // a version, feature or method that this side doesn't have
  protocol_error = 18,     // the peer's bytes break the protocol
  too_large = 19,          // over a stated limit
  unknown = 20,            // reported by a peer with a code that this build doesn't know
};

// The code's name as it stands above, for logs and for scripts.
std::string_view errc_name(Errc code) noexcept;
// Codes received from outside: out-of-range values become Errc::unknown.
Errc errc_from_wire(uint16_t value) noexcept;

// A code and a sentence for people: what happened to what, and where there is a cure, the cure.
class [[nodiscard]] Error {
 public:
  explicit Error(Errc code) noexcept : code_(code) {}
  Error(Errc code, std::string message) noexcept : code_(code), message_(std::move(message)) {}

  Errc code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  // "no_space: device 'd0' is full"
  std::string to_string() const;
  // The same code, with "context: " put before the message.
  Error with_context(std::string_view context) &&;

 private:
  Errc code_;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  // NOLINTNEXTLINE(google-explicit-constructor): `return Error(...)` must read like that
  Result(Error error) noexcept : std::expected<T, Error>(std::unexpected(std::move(error))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Errc code) noexcept : Result(Error(code)) {}

  // Errc::ok when there is a value.
  Errc code() const noexcept { return this->has_value() ? Errc::ok : this->error().code(); }
};

template <>
class [[nodiscard]] Result<void> : public std::expected<void, Error> {
 public:
  using std::expected<void, Error>::expected;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) noexcept : std::expected<void, Error>(std::unexpected(std::move(error))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Errc code) noexcept : Result(Error(code)) {}

  Errc code() const noexcept { return this->has_value() ? Errc::ok : this->error().code(); }
};

// The error of errno, with the call's name: "io_error: open /dev/x: Permission denied".
Error error_from_errno(int errno_value, std::string_view what);

}  // namespace cairn

#define CAIRN_CONCAT_INNER(a, b) a##b
#define CAIRN_CONCAT(a, b) CAIRN_CONCAT_INNER(a, b)
#define CAIRN_TRY_1(ret, name, expression)  \
  do {                                      \
    auto name = (expression);               \
    if (!name) ret std::move(name).error(); \
  } while (false)
#define CAIRN_TRY_2(ret, name, declaration, expression) \
  auto name = (expression);                             \
  if (!name) ret std::move(name).error();               \
  declaration = *std::move(name)
#define CAIRN_TRY_PICK(_1, _2, picked, ...) picked
#define CAIRN_TRY(ret, ...)                                     \
  CAIRN_TRY_PICK(__VA_ARGS__, CAIRN_TRY_2, CAIRN_TRY_1, unused) \
  (ret, CAIRN_CONCAT(try_result_, __COUNTER__), __VA_ARGS__)

#define TRY(...) CAIRN_TRY(return, __VA_ARGS__)
#define CO_TRY(...) CAIRN_TRY(co_return, __VA_ARGS__)
