#include "gateway/http/body.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"

namespace cairn::http {

Body::Body(const RequestHead& head, ByteSource& wire, BodyGate& gate)
    : wire_(wire), gate_(gate), chunked_(head.framing == RequestHead::Framing::chunked) {
  left_ = chunked_ ? 0 : head.content_length;
  state_ = chunked_ ? State::chunk_head : left_ > 0 ? State::data : State::end;
}

Error Body::fail(Error error) {
  if (failure_ == Errc::ok) {
    failure_ = error.code();
    failure_message_ = error.message();
  }
  return error;
}

std::optional<uint64_t> Body::remaining() const {
  if (chunked_ && state_ != State::end) return std::nullopt;
  return left_;
}

void Body::took(size_t n) {
  ASSERT(n <= left_);
  left_ -= n;
  if (left_ == 0) state_ = chunked_ ? State::chunk_end : State::end;
}

Task<Result<void>> Body::advance() {
  if (failure_ != Errc::ok) co_return Error(failure_, failure_message_);
  if (!used_) {
    used_ = true;
    if (state_ != State::end) {
      if (auto opened = co_await gate_.on_first_use(); !opened) co_return fail(std::move(opened).error());
    }
  }
  while (state_ == State::chunk_end || state_ == State::chunk_head) {
    if (state_ == State::chunk_end) {
      auto line = co_await read_line(wire_, 0);
      if (!line) {
        if (line.error().code() != Errc::too_large) co_return fail(std::move(line).error());
        co_return fail(Error(Errc::protocol_error, "a chunk is longer than its size says"));
      }
      state_ = State::chunk_head;
    }
    if (auto done = co_await read_chunk_head(); !done) co_return fail(std::move(done).error());
  }
  co_return Result<void>();
}

Task<Result<void>> Body::read_chunk_head() {
  CO_TRY(const std::string line, co_await read_line(wire_, kMaxChunkHeadBytes));
  // chunk-size [ BWS ";" extensions ]; extensions have no meaning here.
  const std::string_view size = trim(std::string_view(line).substr(0, line.find(';')));
  // 15 digits are beyond any object and far from overflow.
  if (size.empty() || size.size() > 15 || size.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
    co_return Error(Errc::protocol_error, "a chunk's size is not a hexadecimal number");
  }
  (void)std::from_chars(size.data(), size.data() + size.size(), left_, 16);
  if (left_ > 0) {
    state_ = State::data;
    co_return Result<void>();
  }
  CO_TRY(co_await read_trailers());
  state_ = State::end;
  co_return Result<void>();
}

Task<Result<void>> Body::read_trailers() {
  // Nothing here wants them; they are bounded and dropped (RFC 9112 section 7.1.2 allows it).
  size_t left = kMaxTrailerBytes;
  for (;;) {
    CO_TRY(const std::string line, co_await read_line(wire_, left));
    if (line.empty()) co_return Result<void>();
    if (line.find(':') == std::string::npos) co_return Error(Errc::protocol_error, "a malformed trailer");
    left -= line.size();
  }
}

Task<Result<std::string_view>> Body::peek(size_t max) {
  CO_TRY(co_await advance());
  if (state_ == State::end) co_return std::string_view();
  auto seen = co_await wire_.peek(static_cast<size_t>(std::min<uint64_t>(max, left_)));
  if (!seen) co_return fail(std::move(seen).error());
  if (seen->empty()) co_return fail(Error(Errc::closed, "the client closed the connection within the body"));
  co_return *seen;
}

Task<Result<void>> Body::skip(size_t n) {
  ASSERT(state_ == State::data && n <= left_);
  if (auto done = co_await wire_.skip(n); !done) co_return fail(std::move(done).error());
  took(n);
  co_return Result<void>();
}

Task<Result<size_t>> Body::receive(std::span<std::byte> out) {
  ASSERT(!out.empty());
  CO_TRY(co_await advance());
  if (state_ == State::end) co_return size_t{0};
  auto n = co_await wire_.receive(out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), left_))));
  if (!n) co_return fail(std::move(n).error());
  if (*n == 0) co_return fail(Error(Errc::closed, "the client closed the connection within the body"));
  took(*n);
  co_return *n;
}

}  // namespace cairn::http
