// The aws-chunked content coding, without input or output: the caller receives, this decides what the bytes are.
//
//   body    := chunk* last [trailers] CRLF          chunk := HEX [";chunk-signature=" 64HEX] CRLF data CRLF
//   last    := "0" [";chunk-signature=" 64HEX] CRLF
//   trailers:= (name ":" value CRLF)*               signed ones end with x-amz-trailer-signature
//
// Framing bytes are fed to consume(); the data between them can be received straight to where it belongs and is only
// shown to data(), for the signature. So payload is never copied.
//
//   while (!decoder.done()) {
//     if (decoder.data_left() > 0) { n = receive(min(room, data_left)); CO_TRY(decoder.data(bytes received)); }
//     else { peek(); CO_TRY(auto n, decoder.consume(peeked)); drop n bytes; when n == 0: wait for more }
//   }
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/s3/digest.h"
#include "gateway/s3/error.h"
#include "gateway/s3/sigv4.h"

namespace cairn::s3 {

class AwsChunkedDecoder {
 public:
  struct Options {
    // Chunks and trailer must carry valid signatures (STREAMING-AWS4-HMAC-SHA256-PAYLOAD[-TRAILER]).
    std::optional<ChunkSigner> signer;
    // Names in lower case from x-amz-trailer; each must come, no other may.
    std::vector<std::string> announced_trailers;
    // x-amz-decoded-content-length.
    uint64_t decoded_length = 0;
  };
  // Longer framing lines are refused.
  static constexpr size_t kMaxLine = 1024;
  static constexpr size_t kMaxTrailers = 16;

  explicit AwsChunkedDecoder(Options options);

  // Bytes of the current chunk that are still to come; while it isn't 0, they are given to data() and not to consume().
  uint64_t data_left() const { return data_left_; }
  // Takes framing off the front of `bytes` and returns how much; 0 when a line isn't complete yet (then `bytes` must
  // grow before the next call). Stops where data begins. Errors: IncompleteBody (lengths don't add up), InvalidRequest
  // (framing), SignatureDoesNotMatch, MalformedTrailerError.
  S3Result<size_t> consume(std::string_view bytes);
  // Shows the next received bytes of the chunk, at most data_left().
  S3Result<void> data(std::span<const std::byte> bytes);
  bool done() const { return state_ == State::done; }

  // Once done; names in lower case, x-amz-trailer-signature left out.
  const std::map<std::string, std::string>& trailers() const { return trailers_; }

 private:
  enum class State { head, data_end, trailers, done };

  S3Result<void> on_head(std::string_view line);
  S3Result<void> on_chunk_end();
  S3Result<void> on_trailer(std::string_view line);
  S3Result<void> on_end();

  Options options_;
  State state_ = State::head;
  uint64_t data_left_ = 0;
  uint64_t decoded_ = 0;
  Digest hash_;
  std::string chunk_signature_;
  std::map<std::string, std::string> trailers_;
  std::string trailer_lines_;  // as signed
  std::string trailer_signature_;
};

}  // namespace cairn::s3
