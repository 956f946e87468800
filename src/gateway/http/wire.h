// Wire: a connection's stream with the limits on time applied and the bytes counted; the bottom of the stack of
// ByteSources.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "gateway/http/byte_source.h"
#include "gateway/http/guard.h"
#include "gateway/http/server.h"
#include "mem/buf_chain.h"
#include "reactor/stream.h"

namespace cairn::http {

class Wire final : public ByteSource {
 public:
  Wire(Loop& loop, std::unique_ptr<Stream> stream, const Options& options, CancelToken cancel)
      : loop_(loop),
        stream_(std::move(stream)),
        options_(options),
        read_guard_(loop, cancel),
        write_guard_(loop, cancel) {}

  // ByteSource, for bodies: time spent waiting for the client is held against Options::stall_time. Only what waits for
  // the client counts; waiting for buffers or the store is our own doing. Errors: timed_out, closed, cancelled.
  Task<Result<std::string_view>> peek(size_t max) override;
  Task<Result<void>> skip(size_t n) override;
  Task<Result<size_t>> receive(std::span<std::byte> out) override;
  std::optional<uint64_t> remaining() const override { return std::nullopt; }

  // For heads: the limit is whatever was set last.
  void set_read_limit(Time at) { read_guard_.set_limit(at); }
  void cancel_reads(Errc reason) { read_guard_.cancel(reason); }
  CancelToken read_token() { return read_guard_.token(); }
  Task<Result<size_t>> peek_head(std::span<std::byte> out) { return stream_->peek(out, read_guard_.token()); }
  Task<Result<void>> take_head(std::span<std::byte> out);
  // A new request: its body starts with a fresh allowance of waiting.
  void start_body() {
    waited_ = {};
    window_bytes_ = 0;
    read_guard_.clear_limit();
  }

  // `text` then `chain`, gathered into as few calls as the kernel takes, then `tail`.
  Task<Result<void>> send(std::string_view text, const mem::BufChain& chain, std::string_view tail = {});

  Stream& stream() { return *stream_; }
  uint64_t received() const { return received_; }
  uint64_t sent() const { return sent_; }

 private:
  // Pieces of a chain handed to the kernel at once: more than any chunk read needs, and a bounded frame.
  static constexpr size_t kVectors = 64;

  void begin_wait();
  Result<size_t> end_wait(Result<size_t> result);

  Loop& loop_;
  std::unique_ptr<Stream> stream_;
  const Options& options_;
  Guard read_guard_;
  Guard write_guard_;
  std::array<std::byte, 512> peeked_;
  // The window: stall_bytes must come within stall_time of waiting, then a new one begins.
  Time wait_began_;
  Duration waited_;
  size_t window_bytes_ = 0;
  uint64_t received_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace cairn::http
