#include "gateway/http/request.h"

#include <algorithm>

namespace cairn::http {

Task<Result<mem::BufChain>> read_chain(ByteSource& source, mem::Pool& pool, size_t want, CancelToken cancel) {
  ASSERT(want > 0 && want % mem::kPage == 0);
  // Keeps a small body from taking a large buffer.
  if (const auto remaining = source.remaining()) want = static_cast<size_t>(std::min<uint64_t>(want, *remaining));
  mem::BufChain chain;
  while (chain.size() < want) {
    CO_TRY(mem::Buf buf,
           co_await pool.alloc(std::min(want - chain.size(), mem::kMaxBlock), mem::Purpose::client, cancel));
    CO_TRY(const size_t n, co_await receive_full(source, buf.writable_bytes()));
    const bool ended = n < buf.size();
    buf.truncate(n);
    chain.append(std::move(buf));
    if (ended) break;
  }
  if (want == 0) {
    CO_TRY(const std::string_view rest, co_await source.peek(1));
    if (!rest.empty()) co_return Error(Errc::protocol_error, "the body is longer than announced");
  }
  co_return chain;
}

Task<Result<std::string>> read_text(ByteSource& source, size_t limit) {
  constexpr size_t kStep = 16384;
  std::string text;
  for (;;) {
    const size_t before = text.size();
    // One byte beyond the limit shows that there is more.
    const uint64_t left = std::min<uint64_t>(limit - before + 1, source.remaining().value_or(kStep));
    text.resize(before + static_cast<size_t>(std::clamp<uint64_t>(left, 1, kStep)));
    CO_TRY(const size_t n, co_await source.receive(std::as_writable_bytes(std::span(text).subspan(before))));
    text.resize(before + n);
    if (n == 0) co_return text;
    if (text.size() > limit) {
      co_return Error(Errc::too_large, "the body is longer than the " + std::to_string(limit) + " bytes allowed here");
    }
  }
}

Task<Result<std::string>> Request::read_all(size_t limit) {
  if (content_length().value_or(0) > limit) {
    co_return Error(Errc::too_large, "the body is longer than the " + std::to_string(limit) + " bytes allowed here");
  }
  co_return co_await read_text(body(), limit);
}

}  // namespace cairn::http
