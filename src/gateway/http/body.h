// The body of one request as a ByteSource: by length or in chunks (RFC 9112 sections 6 and 7.1). Never reads a byte
// beyond the body, where the next pipelined request begins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gateway/http/byte_source.h"
#include "gateway/http/request.h"

namespace cairn::http {

// What must happen before the first byte of a body is waited for: the interim "100 Continue".
class BodyGate {
 public:
  virtual ~BodyGate() = default;
  virtual Task<Result<void>> on_first_use() = 0;
};

class Body final : public ByteSource {
 public:
  static constexpr size_t kMaxChunkHeadBytes = 256;
  static constexpr size_t kMaxTrailerBytes = 4096;

  // `head`, `wire` and `gate` outlive it.
  Body(const RequestHead& head, ByteSource& wire, BodyGate& gate);

  Task<Result<std::string_view>> peek(size_t max) override;
  Task<Result<void>> skip(size_t n) override;
  Task<Result<size_t>> receive(std::span<std::byte> out) override;
  std::optional<uint64_t> remaining() const override;

  bool used() const { return used_; }
  // Everything was taken, trailers included: the next request can follow.
  bool complete() const { return state_ == State::end; }
  // The first error, after which nothing more can be read: ok, closed, timed_out, cancelled, protocol_error, too_large.
  Errc failure() const { return failure_; }
  std::string_view failure_message() const { return failure_message_; }

 private:
  enum class State : uint8_t {
    data,        // left_ bytes of content are next
    chunk_head,  // a chunk's size line is next
    chunk_end,   // the CRLF behind a chunk's data is next
    end,
  };

  // Passes framing until content is next or the body has ended.
  Task<Result<void>> advance();
  Task<Result<void>> read_chunk_head();
  Task<Result<void>> read_trailers();
  void took(size_t n);
  Error fail(Error error);

  ByteSource& wire_;
  BodyGate& gate_;
  bool chunked_;
  bool used_ = false;
  State state_;
  uint64_t left_ = 0;
  Errc failure_ = Errc::ok;
  std::string failure_message_;
};

}  // namespace cairn::http
