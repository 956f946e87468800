#include "gateway/http/writer.h"

#include <fmt/format.h>

#include <iterator>

#include "base/assert.h"

namespace cairn::http {

bool Writer::must_close() const {
  if (close_ || !setup_.head->keep_alive || setup_.stopping || framing_ == Framing::until_close) return true;
  if (body_ == nullptr || body_->complete()) return false;
  if (body_->failure() != Errc::ok) return true;
  // A client that waits for "100 Continue" may or may not send the body now: only closing is unambiguous.
  if (setup_.head->expects_continue && !continued_) return true;
  const auto left = body_->remaining();
  return !left || *left > setup_.skip_bytes;
}

void Writer::make_head(Framing framing, uint64_t content_length) {
  ASSERT(state_ == State::fresh);
  state_ = State::body;
  framing_ = framing == Framing::chunked && setup_.head->minor_version == 0 ? Framing::until_close : framing;
  left_ = content_length;
  close_ = must_close();
  pending_.reserve(256 + fields_.size());
  auto out = std::back_inserter(pending_);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nServer: {}\r\nDate: {}\r\n", status_, reason_phrase(status_),
                 setup_.server_name, setup_.date);
  pending_ += fields_;
  if (framing_ == Framing::length) fmt::format_to(out, "Content-Length: {}\r\n", content_length);
  if (framing_ == Framing::chunked) pending_ += "Transfer-Encoding: chunked\r\n";
  if (close_) {
    pending_ += "Connection: close\r\n";
  } else if (setup_.head->minor_version == 0) {
    pending_ += "Connection: keep-alive\r\n";
  }
  pending_ += "\r\n";
}

Task<Result<void>> Writer::put(std::string_view text, const mem::BufChain& chain, std::string_view tail) {
  if (failed_) co_return Error(Errc::closed, "the connection failed before");
  if (text.empty() && chain.empty() && tail.empty()) co_return Result<void>();
  auto sent = co_await setup_.wire->send(text, chain, tail);
  if (!sent) failed_ = true;
  co_return sent;
}

Task<Result<void>> Writer::on_first_use() {
  if (!setup_.head->expects_continue || continued_ || started()) co_return Result<void>();
  continued_ = true;
  co_return co_await put("HTTP/1.1 100 Continue\r\n\r\n", {});
}

Task<Result<void>> Writer::send(std::string body) {
  make_head(Framing::length, body.size());
  state_ = State::done;
  if (!is_head()) {
    body_bytes_ = body.size();
    pending_ += body;
  }
  co_return co_await put(pending_, {});
}

Task<Result<void>> Writer::send(mem::BufChain body) {
  make_head(Framing::length, body.size());
  state_ = State::done;
  if (is_head()) body.clear();
  body_bytes_ = body.size();
  co_return co_await put(pending_, body);
}

Task<Result<void>> Writer::send_no_body() {
  make_head(Framing::none, 0);
  state_ = State::done;
  co_return co_await put(pending_, {});
}

Task<Result<void>> Writer::send_head_only(uint64_t content_length) {
  make_head(Framing::length, content_length);
  state_ = State::done;
  co_return co_await put(pending_, {});
}

Task<Result<void>> Writer::begin(uint64_t content_length) {
  make_head(Framing::length, content_length);
  co_return Result<void>();
}

Task<Result<void>> Writer::begin_chunked() {
  make_head(Framing::chunked, 0);
  co_return Result<void>();
}

Task<Result<void>> Writer::write(mem::BufChain piece) {
  ASSERT(state_ == State::body);
  if (piece.empty()) co_return Result<void>();
  if (framing_ == Framing::length) {
    ASSERT(piece.size() <= left_);
    left_ -= piece.size();
  }
  std::string_view tail;
  if (is_head()) {
    piece.clear();
  } else if (framing_ == Framing::chunked) {
    fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", piece.size());
    tail = "\r\n";
  }
  body_bytes_ += piece.size();
  auto sent = co_await put(pending_, piece, tail);
  pending_.clear();
  co_return sent;
}

Task<Result<void>> Writer::write(std::string piece) {
  ASSERT(state_ == State::body);
  if (piece.empty()) co_return Result<void>();
  if (framing_ == Framing::length) {
    ASSERT(piece.size() <= left_);
    left_ -= piece.size();
  }
  if (!is_head()) {
    if (framing_ == Framing::chunked) fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", piece.size());
    pending_ += piece;
    if (framing_ == Framing::chunked) pending_ += "\r\n";
    body_bytes_ += piece.size();
  }
  auto sent = co_await put(pending_, {});
  pending_.clear();
  co_return sent;
}

Task<Result<void>> Writer::flush() {
  auto sent = co_await put(pending_, {});
  pending_.clear();
  co_return sent;
}

Task<Result<void>> Writer::finish() {
  ASSERT(state_ == State::body);
  if (framing_ == Framing::length && left_ > 0) {
    // The announced length can't be kept any more: the connection ends short.
    aborted_ = true;
    co_return Error(Errc::io_error, "the answer ended before its announced length");
  }
  if (framing_ == Framing::chunked && !is_head()) pending_ += "0\r\n\r\n";
  state_ = State::done;
  auto sent = co_await put(pending_, {});
  pending_.clear();
  co_return sent;
}

}  // namespace cairn::http
