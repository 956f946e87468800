#include "gateway/s3/aws_chunked_source.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::s3 {

Error AwsChunkedSource::refuse(S3Error error) {
  if (!error_) error_ = std::move(error);
  return Error(Errc::protocol_error, std::string(error_->message()));
}

Task<Result<void>> AwsChunkedSource::take_line() {
  line_.clear();
  do {
    if (line_.size() > AwsChunkedDecoder::kMaxLine) {
      co_return refuse(S3Error(Code::InvalidRequest, "The aws-chunked body has a line that is too long."));
    }
    CO_TRY(const std::string_view seen, co_await body_.peek(AwsChunkedDecoder::kMaxLine + 2));
    if (seen.empty()) co_return refuse(S3Error(Code::IncompleteBody, "The aws-chunked body ends too early."));
    const size_t newline = seen.find('\n');
    const size_t n = newline == std::string_view::npos ? seen.size() : newline + 1;
    line_.append(seen.substr(0, n));
    CO_TRY(co_await body_.skip(n));
  } while (!line_.ends_with("\r\n"));
  co_return Result<void>();
}

Task<Result<void>> AwsChunkedSource::advance() {
  if (error_) co_return refuse(*error_);
  while (decoder_.data_left() == 0 && !decoder_.done()) {
    CO_TRY(co_await take_line());
    const auto taken = decoder_.consume(line_);
    if (!taken) co_return refuse(taken.error());
    ASSERT(*taken == line_.size());
  }
  if (decoder_.done() && !ended_) {
    CO_TRY(const std::string_view rest, co_await body_.peek(1));
    if (!rest.empty()) {
      co_return refuse(S3Error(Code::InvalidRequest, "The aws-chunked body goes on behind its end."));
    }
    ended_ = true;
  }
  co_return Result<void>();
}

Task<Result<std::string_view>> AwsChunkedSource::peek(size_t max) {
  CO_TRY(co_await advance());
  if (decoder_.done()) co_return std::string_view();
  co_return co_await body_.peek(static_cast<size_t>(std::min<uint64_t>(max, decoder_.data_left())));
}

Task<Result<void>> AwsChunkedSource::skip(size_t n) {
  // Content must pass the signature's hash: receive it.
  std::array<std::byte, 512> dropped;
  while (n > 0) {
    CO_TRY(const size_t done, co_await receive(std::span(dropped).first(std::min(n, dropped.size()))));
    ASSERT(done > 0);
    n -= done;
  }
  co_return Result<void>();
}

Task<Result<size_t>> AwsChunkedSource::receive(std::span<std::byte> out) {
  CO_TRY(co_await advance());
  if (decoder_.done()) co_return size_t{0};
  const auto room = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), decoder_.data_left())));
  CO_TRY(const size_t n, co_await body_.receive(room));
  if (n == 0) co_return refuse(S3Error(Code::IncompleteBody, "The aws-chunked body ends too early."));
  const auto shown = decoder_.data(room.first(n));
  if (!shown) co_return refuse(shown.error());
  left_ -= n;
  co_return n;
}

}  // namespace cairn::s3
