// ByteSource: bytes that come in order, in two ways that can be mixed: looked at and skipped (framing: chunk heads,
// trailers), or received straight to where they belong (payload).
//
//   CO_TRY(auto head, co_await read_line(source, 256));        // "1000;chunk-signature=..."
//   CO_TRY(auto n, co_await source.receive(buffer));           // payload, no copy in between
//
// The layers of a body stack as ByteSources: connection, HTTP chunks, aws-chunked. Each gives only its own content and
// leaves what follows untouched, so payload goes from the socket to its place through any number of layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reactor/task.h"

namespace cairn::http {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // At least one and at most `max` of the next bytes, which stay unread; empty at the end. The view is valid until the
  // next call of anything here.
  virtual Task<Result<std::string_view>> peek(size_t max) = 0;
  // Drops `n` bytes that the last peek() showed.
  virtual Task<Result<void>> skip(size_t n) = 0;
  // Receives at least one byte into `out` (not empty); 0 at the end.
  virtual Task<Result<size_t>> receive(std::span<std::byte> out) = 0;
  // How many bytes are still to come, if known. Even at 0 the end is proven only by peek() or receive(), which then
  // check what follows the content (a last chunk, trailers).
  virtual std::optional<uint64_t> remaining() const = 0;
};

// The next line without its CRLF. Errors: protocol_error for a bare LF or CR, closed at the end within the line,
// too_large beyond `limit` bytes.
Task<Result<std::string>> read_line(ByteSource& source, size_t limit);

// Fills `out`, or less at the end of the source; returns how much.
Task<Result<size_t>> receive_full(ByteSource& source, std::span<std::byte> out);

}  // namespace cairn::http
