#include "gateway/http/wire.h"

#include <algorithm>

namespace cairn::http {

void Wire::begin_wait() {
  wait_began_ = loop_.now();
  read_guard_.set_limit(wait_began_ + (options_.stall_time - waited_));
}

Result<size_t> Wire::end_wait(Result<size_t> result) {
  read_guard_.clear_limit();
  if (!result) return result;
  waited_ = waited_ + (loop_.now() - wait_began_);
  window_bytes_ += *result;
  if (window_bytes_ >= options_.stall_bytes) {
    waited_ = {};
    window_bytes_ = 0;
  } else if (waited_ >= options_.stall_time) {
    // A byte now and then ends the wait each time, but doesn't extend it.
    return Error(Errc::timed_out, "the client sends too slowly");
  }
  return result;
}

Task<Result<std::string_view>> Wire::peek(size_t max) {
  const auto out = std::span(peeked_).first(std::min(max, peeked_.size()));
  begin_wait();
  auto result = co_await stream_->peek(out, read_guard_.token());
  // What was only looked at isn't progress: it is counted when it is taken.
  const size_t n = result.value_or(0);
  if (result) result = size_t{0};
  CO_TRY(end_wait(std::move(result)));
  co_return std::string_view(reinterpret_cast<const char*>(peeked_.data()), n);
}

Task<Result<void>> Wire::skip(size_t n) {
  while (n > 0) {
    CO_TRY(const size_t done, co_await receive(std::span(peeked_).first(std::min(n, peeked_.size()))));
    if (done == 0) co_return Error(Errc::closed, "the client closed the connection");
    n -= done;
  }
  co_return Result<void>();
}

Task<Result<size_t>> Wire::receive(std::span<std::byte> out) {
  begin_wait();
  CO_TRY(const size_t n, end_wait(co_await stream_->recv(out, read_guard_.token())));
  received_ += n;
  co_return n;
}

Task<Result<void>> Wire::take_head(std::span<std::byte> out) {
  // Everything was seen by a peek before, so this doesn't wait.
  while (!out.empty()) {
    CO_TRY(const size_t n, co_await stream_->recv(out, read_guard_.token()));
    if (n == 0) co_return Error(Errc::closed);
    received_ += n;
    out = out.subspan(n);
  }
  co_return Result<void>();
}

Task<Result<void>> Wire::send(std::string_view text, const mem::BufChain& chain, std::string_view tail) {
  const auto vector = [](std::string_view bytes) { return iovec{const_cast<char*>(bytes.data()), bytes.size()}; };
  const uint64_t total = text.size() + chain.size() + tail.size();
  write_guard_.set_limit(loop_.now() + options_.stall_time +
                         seconds(static_cast<int64_t>(total / options_.send_bytes_per_second)));
  std::array<iovec, kVectors> vectors;
  size_t skip = 0;
  bool text_left = !text.empty();
  do {
    size_t n = 0;
    if (text_left) vectors[n++] = vector(text);
    text_left = false;
    // One entry stays free for the tail.
    const size_t first = n;
    n += chain.to_iovecs(std::span(vectors).subspan(first, kVectors - 1 - first), skip);
    for (size_t i = first; i < n; ++i) skip += vectors[i].iov_len;
    if (skip == chain.size() && !tail.empty()) vectors[n++] = vector(tail);
    CO_TRY(co_await stream_->send_all(std::span(vectors).first(n), write_guard_.token()));
  } while (skip < chain.size());
  write_guard_.clear_limit();
  sent_ += total;
  co_return Result<void>();
}

}  // namespace cairn::http
