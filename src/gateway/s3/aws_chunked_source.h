// AwsChunkedSource: the content of an aws-chunked body as a ByteSource: framing lines are taken one by one, data goes
// straight to where the caller wants it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gateway/http/byte_source.h"
#include "gateway/s3/aws_chunked.h"

namespace cairn::s3 {

class AwsChunkedSource final : public http::ByteSource {
 public:
  // `body` outlives it.
  AwsChunkedSource(http::ByteSource& body, AwsChunkedDecoder::Options options)
      : body_(body), left_(options.decoded_length), decoder_(std::move(options)) {}

  // protocol_error when the decoder refused the body: error() has S3's word for it.
  Task<Result<std::string_view>> peek(size_t max) override;
  Task<Result<void>> skip(size_t n) override;
  Task<Result<size_t>> receive(std::span<std::byte> out) override;
  std::optional<uint64_t> remaining() const override { return left_; }

  const std::optional<S3Error>& error() const { return error_; }
  // At the end.
  const std::map<std::string, std::string>& trailers() const { return decoder_.trailers(); }

 private:
  // Takes framing until data is next or the body has ended, and has ended in truth.
  Task<Result<void>> advance();
  Task<Result<void>> take_line();
  Error refuse(S3Error error);

  http::ByteSource& body_;
  uint64_t left_;
  AwsChunkedDecoder decoder_;
  std::string line_;
  bool ended_ = false;
  std::optional<S3Error> error_;
};

}  // namespace cairn::s3
