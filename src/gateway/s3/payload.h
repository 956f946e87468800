// Payload: the content of a PUT or POST with all that proves it whole, whichever way the client sends it:
//
//   plain            Content-Length                    x-amz-content-sha256: HEX or UNSIGNED-PAYLOAD
//   aws-chunked      x-amz-decoded-content-length      STREAMING-..., signed per chunk or not, with trailers or not
//
// Content-MD5, x-amz-checksum-* (header or trailer) and the payload's hash are checked at its end. Until read() has
// returned an empty chain nothing is proven, so nothing may be committed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gateway/s3/aws_chunked_source.h"
#include "gateway/s3/call.h"
#include "gateway/s3/checksum.h"
#include "gateway/s3/digest.h"
#include "mem/buf_chain.h"

namespace cairn::s3 {

class Payload {
 public:
  struct Wants {
    bool etag = true;                        // compute the MD5
    std::optional<ChecksumKind> checksum{};  // compute this one, even if the client doesn't send it
    uint64_t max_bytes = UINT64_MAX;
    bool needs_integrity = false;  // Content-MD5 or a checksum is required
    bool checksum_headers = true;  // x-amz-checksum-* speak of this content
    bool length_optional = false;  // for read_text() only: it stops at its limit
  };
  // From the headers. MissingContentLength, EntityTooLarge, InvalidRequest, InvalidDigest, ... are found here, before
  // the client has sent the body.
  static S3Result<std::unique_ptr<Payload>> of_call(Call& call, Wants wants);

  uint64_t size() const { return size_; }

  // The next bytes in 4 KiB-aligned buffers: `want` (a multiple of 4 KiB), or less at the end; or fewer whole pages
  // when there is no memory for more now; empty when there are no more, and then everything was checked.
  Task<S3Result<mem::BufChain>> read(size_t want);
  // For documents: checked and whole.
  Task<S3Result<std::string>> read_text(size_t limit);

  // After the end.
  const std::string& md5() const { return md5_; }  // raw
  const std::optional<object::Checksum>& checksum() const { return checksum_; }

 private:
  Payload(Call& call, Wants wants) : call_(call), wants_(wants) {}
  S3Result<void> choose_coding();
  S3Result<void> choose_checks();
  S3Result<void> expect_checksum(std::string_view header, std::string_view value);
  http::ByteSource& source();
  size_t next_block() const;
  void update(std::span<const std::byte> bytes);
  S3Result<void> finish();
  S3Error from_source(const Error& error) const;

  Call& call_;
  Wants wants_;
  bool sized_ = true;
  uint64_t size_ = 0;
  uint64_t received_ = 0;
  bool finished_ = false;
  std::unique_ptr<AwsChunkedSource> chunked_;
  std::optional<std::string> expected_sha256_;  // hexadecimal
  std::optional<std::string> expected_md5_;     // raw
  std::optional<ChecksumKind> kind_;
  std::optional<std::string> expected_checksum_;
  std::string checksum_trailer_;  // the header that the trailer will bring

  std::optional<Digest> md5_digest_;
  std::optional<Digest> sha256_digest_;
  std::unique_ptr<ChecksumStream> checksum_stream_;
  std::string md5_;
  std::optional<object::Checksum> checksum_;
};

// The whole of a small body, proven; MaxMessageLengthExceeded when it is longer than `limit`.
Task<S3Result<std::string>> read_document(Call& call, size_t limit, Payload::Wants wants);

}  // namespace cairn::s3
