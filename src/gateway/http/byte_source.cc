#include "gateway/http/byte_source.h"

#include <utility>

namespace cairn::http {

Task<Result<std::string>> read_line(ByteSource& source, size_t limit) {
  std::string line;
  for (;;) {
    // Two more than the limit, for CRLF.
    if (line.size() >= limit + 2) co_return Error(Errc::too_large, "a line of the body's framing is too long");
    CO_TRY(const std::string_view seen, co_await source.peek(limit + 2 - line.size()));
    if (seen.empty()) co_return Error(Errc::closed, "the body ended within a line of its framing");
    const size_t newline = seen.find('\n');
    const size_t n = newline == std::string_view::npos ? seen.size() : newline + 1;
    line.append(seen.substr(0, n));
    CO_TRY(co_await source.skip(n));
    if (newline == std::string_view::npos) continue;
    if (line.size() < 2 || line[line.size() - 2] != '\r') {
      co_return Error(Errc::protocol_error, "a line of the body's framing ends without CR");
    }
    line.resize(line.size() - 2);
    if (line.find('\r') != std::string::npos) {
      co_return Error(Errc::protocol_error, "a line of the body's framing holds a stray CR");
    }
    co_return line;
  }
}

Task<Result<size_t>> receive_full(ByteSource& source, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    CO_TRY(const size_t n, co_await source.receive(out.subspan(done)));
    if (n == 0) break;
    done += n;
  }
  co_return done;
}

}  // namespace cairn::http
