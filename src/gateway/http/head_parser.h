// The head of a request: syntax by Boost.Beast's parser, the rules against request smuggling by us.
//
// What two parsers could read differently is refused rather than repaired (RFC 9112 sections 2.2, 5.1, 5.2, 6.3): bare
// LF or CR, folded lines, spaces around a name, NUL and other controls, two Host fields, Content-Length that isn't a
// plain number or comes twice, Transfer-Encoding beside Content-Length, in HTTP/1.0, or other than "chunked".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gateway/http/request.h"

namespace cairn::http {

struct HeadLimits {
  size_t max_fields = 128;
  size_t max_target_bytes = 8 * 1024;
};

// Why a head is refused: the status to answer with and a sentence for the client.
struct HeadError {
  int status = 400;
  std::string reason;
};

// Looks for the end of a head in what has come of it so far. `from`: how much was searched before.
struct HeadScan {
  enum class State : uint8_t { incomplete, complete, malformed };
  State state = State::incomplete;
  size_t size = 0;  // of the head with its empty line, when complete
  std::string_view what;
};
HeadScan scan_head(std::string_view bytes, size_t from) noexcept;

// Parses a complete head. `head` gets views into `bytes`, in which field names are changed to lower case. Nothing:
// fine.
std::optional<HeadError> parse_head(std::span<char> bytes, const HeadLimits& limits, RequestHead& head);

}  // namespace cairn::http
