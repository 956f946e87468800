// StringSource: a ByteSource over text that arrives in pieces, for tests and fuzzers.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "gateway/http/byte_source.h"

namespace cairn::http::testing {

class StringSource final : public ByteSource {
 public:
  // Gives at most `piece` bytes at once, and no more than up to `split` in one call: as a socket whose sender paused
  // there. Ends after the text, or with `end_error`.
  explicit StringSource(std::string text, size_t piece = SIZE_MAX, size_t split = SIZE_MAX, Errc end_error = Errc::ok)
      : text_(std::move(text)), piece_(piece), split_(split), end_error_(end_error) {}

  Task<Result<std::string_view>> peek(size_t max) override {
    if (at_ == text_.size() && end_error_ != Errc::ok) co_return Error(end_error_);
    co_return std::string_view(text_).substr(at_, available(max));
  }
  Task<Result<void>> skip(size_t n) override {
    at_ += n;
    co_return Result<void>();
  }
  Task<Result<size_t>> receive(std::span<std::byte> out) override {
    if (at_ == text_.size() && end_error_ != Errc::ok) co_return Error(end_error_);
    const size_t n = available(out.size());
    // cairn-allow(memcpy): a test's text
    std::memcpy(out.data(), text_.data() + at_, n);
    at_ += n;
    co_return n;
  }
  std::optional<uint64_t> remaining() const override { return std::nullopt; }

  std::string_view rest() const { return std::string_view(text_).substr(at_); }

 private:
  size_t available(size_t max) const {
    size_t n = std::min({max, piece_, text_.size() - at_});
    if (at_ < split_) n = std::min(n, split_ - at_);
    return n;
  }

  std::string text_;
  size_t piece_;
  size_t split_;
  Errc end_error_;
  size_t at_ = 0;
};

}  // namespace cairn::http::testing
