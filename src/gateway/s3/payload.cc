#include "gateway/s3/payload.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/assert.h"
#include "base/base64.h"
#include "base/hex.h"
#include "base/sha256.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kUnsigned = "UNSIGNED-PAYLOAD";
constexpr std::string_view kChecksumPrefix = "x-amz-checksum-";
// Received and hashed in steps that stay in the core's cache in between.
constexpr size_t kStep = size_t{128} << 10;
constexpr size_t kFirstBlock = mem::kClassBytes[2];

// The values of x-amz-content-sha256 that aren't a hash.
struct Streaming {
  std::string_view value;
  bool is_signed;
  bool has_trailer;
};
constexpr std::array<Streaming, 3> kStreaming = {
    Streaming{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true, false},
    Streaming{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", true, true},
    Streaming{"STREAMING-UNSIGNED-PAYLOAD-TRAILER", false, true},
};

bool is_sha256_hex(std::string_view text) {
  std::array<std::byte, 32> raw;
  return from_hex(text, raw);
}

std::string hex_of(std::string_view raw) { return to_hex(std::as_bytes(std::span(raw))); }

std::optional<uint64_t> decimal(std::string_view text) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::vector<std::string> announced_trailers(const http::Headers& headers) {
  std::vector<std::string> names;
  std::string_view list = headers.value("x-amz-trailer");
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string name(http::trim(list.substr(0, comma)));
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (!name.empty()) names.push_back(std::move(name));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return names;
}

}  // namespace

S3Result<std::unique_ptr<Payload>> Payload::of_call(Call& call, Wants wants) {
  std::unique_ptr<Payload> payload(new Payload(call, wants));
  TRY(payload->choose_coding());
  TRY(payload->choose_checks());
  if (payload->size_ > payload->wants_.max_bytes) return Code::EntityTooLarge;
  return payload;
}

S3Result<void> Payload::choose_coding() {
  const http::Headers& headers = call_.request.headers();
  const std::string& hash = call_.authorization.payload_hash;
  const auto streaming = std::ranges::find(kStreaming, hash, &Streaming::value);
  const bool coded =
      streaming != kStreaming.end() || http::list_has_token(headers.value("content-encoding"), "aws-chunked");
  if (streaming == kStreaming.end() && hash.starts_with("STREAMING-")) {
    return S3Error(Code::NotImplemented, "x-amz-content-sha256: " + hash + " is not supported.");
  }
  const auto decoded = decimal(headers.value("x-amz-decoded-content-length"));
  if (!coded) {
    // A body in HTTP chunks is as long as the decoded length says, if anything says it.
    const auto sent = call_.request.content_length();
    const auto length = sent ? sent : decoded;
    sized_ = length.has_value();
    if (!sized_ && !wants_.length_optional) return Code::MissingContentLength;
    size_ = length.value_or(0);
    // Somebody's aws-chunked body that doesn't call itself one: its framing would become content.
    if (headers.has("x-amz-trailer") || (sent && decoded && *sent != *decoded)) {
      return S3Error(
          Code::InvalidRequest,
          "The body isn't announced as aws-chunked, but x-amz-trailer or x-amz-decoded-content-length is there.");
    }
    if (hash != kUnsigned) {
      if (!is_sha256_hex(hash)) {
        return S3Error(Code::InvalidArgument,
                       "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-... or a valid sha256 value.");
      }
      expected_sha256_ = hash;
    }
    return {};
  }
  if (!decoded) {
    return S3Error(Code::MissingContentLength, "An aws-chunked body needs x-amz-decoded-content-length.");
  }
  size_ = *decoded;
  AwsChunkedDecoder::Options options{
      .signer = std::nullopt, .announced_trailers = announced_trailers(headers), .decoded_length = size_};
  if (streaming != kStreaming.end() && streaming->is_signed) {
    options.signer.emplace(call_.signing_key, call_.authorization);
  } else if (streaming == kStreaming.end() && hash != kUnsigned) {
    // A hash over the whole body can't be told from one over the content.
    return S3Error(Code::InvalidRequest, "An aws-chunked body needs x-amz-content-sha256 to say how it is signed.");
  }
  for (const std::string& name : options.announced_trailers) {
    if (!checksum_by_header(name)) {
      return S3Error(Code::InvalidRequest, "The value specified in the x-amz-trailer header is not supported");
    }
    if (!checksum_trailer_.empty()) return S3Error(Code::InvalidRequest, "Expecting a single x-amz-checksum- trailer");
    checksum_trailer_ = name;
  }
  chunked_ = std::make_unique<AwsChunkedSource>(call_.request.body(), std::move(options));
  return {};
}

S3Result<void> Payload::expect_checksum(std::string_view header, std::string_view value) {
  const auto kind = checksum_by_header(header);
  if (kind_ || !checksum_trailer_.empty()) {
    return S3Error(Code::InvalidRequest,
                   "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.");
  }
  if (!is_checksum_value(*kind, value)) {
    return S3Error(Code::InvalidRequest, "Value for " + std::string(header) + " header is invalid.");
  }
  kind_ = kind;
  expected_checksum_ = value;
  return {};
}

S3Result<void> Payload::choose_checks() {
  for (const auto& field : call_.request.headers()) {
    if (!wants_.checksum_headers || !field.name.starts_with(kChecksumPrefix)) continue;
    if (field.name == "x-amz-checksum-algorithm" || field.name == "x-amz-checksum-type" ||
        field.name == "x-amz-checksum-mode") {
      continue;
    }
    if (!checksum_by_header(field.name)) {
      return S3Error(Code::InvalidRequest, "The header " + std::string(field.name) + " names no known checksum.");
    }
    TRY(expect_checksum(field.name, field.value));
  }
  if (!checksum_trailer_.empty()) kind_ = checksum_by_header(checksum_trailer_);
  if (const auto named = call_.request.headers().get("x-amz-sdk-checksum-algorithm")) {
    const auto kind = checksum_by_name(*named);
    if (!kind) return S3Error(Code::InvalidRequest, "Checksum algorithm provided is unsupported.");
    if (kind_ && *kind != *kind_) {
      return S3Error(Code::InvalidRequest, "Value for x-amz-sdk-checksum-algorithm header is invalid.");
    }
    kind_ = kind;
  }
  if (wants_.checksum) {
    if (kind_ && *kind_ != *wants_.checksum) {
      return S3Error(Code::InvalidRequest, "Checksum Type mismatch occurred, expected checksum Type: " +
                                               std::string(checksum_info(*wants_.checksum).name) +
                                               ", actual checksum Type: " + std::string(checksum_info(*kind_).name));
    }
    kind_ = wants_.checksum;
  }
  if (const auto md5 = call_.request.headers().get("content-md5")) {
    expected_md5_ = from_base64(*md5);
    if (!expected_md5_ || expected_md5_->size() != 16) return S3Error(Code::InvalidDigest);
  }
  if (wants_.needs_integrity && !expected_md5_ && !expected_checksum_ && checksum_trailer_.empty()) {
    return Code::MissingContentMD5;
  }
  if (wants_.etag || expected_md5_) md5_digest_.emplace(DigestKind::md5);
  if (expected_sha256_) sha256_digest_.emplace(DigestKind::sha256);
  if (kind_) checksum_stream_ = ChecksumStream::create(*kind_);
  return {};
}

http::ByteSource& Payload::source() {
  return chunked_ ? static_cast<http::ByteSource&>(*chunked_) : call_.request.body();
}

S3Error Payload::from_source(const Error& error) const {
  if (chunked_ && chunked_->error()) return *chunked_->error();
  switch (error.code()) {
    case Errc::closed:
      return S3Error(Code::IncompleteBody);
    case Errc::timed_out:
      return S3Error(Code::RequestTimeout);
    case Errc::protocol_error:
    case Errc::too_large:
      return S3Error(Code::InvalidRequest, error.message());
    default:
      return to_s3_error(error);
  }
}

void Payload::update(std::span<const std::byte> bytes) {
  received_ += bytes.size();
  if (md5_digest_) md5_digest_->update(bytes);
  if (sha256_digest_) sha256_digest_->update(bytes);
  if (checksum_stream_) checksum_stream_->update(bytes);
}

// Large blocks only for those who have sent as much already: what a client that drips can pin is in proportion to what
// it has sent.
size_t Payload::next_block() const {
  if (received_ < kFirstBlock) return kFirstBlock;
  return received_ < kFirstBlock + mem::kClassBytes[3] ? mem::kClassBytes[3] : mem::kMaxBlock;
}

Task<S3Result<mem::BufChain>> Payload::read(size_t want) {
  ASSERT(!finished_ && want % mem::kPage == 0);
  mem::BufChain chain;
  want = static_cast<size_t>(std::min<uint64_t>(want, size_ - received_));
  while (chain.size() < want) {
    const size_t block = std::min(want - chain.size(), next_block());
    if (block > kFirstBlock) {
      // Whoever sends nothing holds nothing.
      const auto next = co_await source().peek(1);
      if (!next) co_return from_source(next.error());
      if (next->empty()) co_return Code::IncompleteBody;
    }
    auto buf = call_.request.pool().try_alloc(block, mem::Purpose::client);
    // Uploads that wait for each other's memory would wait for ever: what is here goes on its way first.
    if (!buf && !chain.empty()) break;
    if (!buf) buf = co_await call_.request.pool().alloc(block, mem::Purpose::client, call_.request.cancel());
    if (!buf) co_return to_s3_error(buf.error());
    for (size_t at = 0; at < buf->size();) {
      const auto step = buf->writable_bytes().subspan(at, std::min(kStep, buf->size() - at));
      const auto n = co_await http::receive_full(source(), step);
      if (!n) co_return from_source(n.error());
      if (*n < step.size()) co_return Code::IncompleteBody;
      update(step);
      at += step.size();
    }
    chain.append(*std::move(buf));
  }
  if (chain.empty()) {
    // What follows the content, such as trailers, is read and checked here.
    const auto rest = co_await source().peek(1);
    if (!rest) co_return from_source(rest.error());
    if (!rest->empty()) co_return S3Error(Code::IncompleteBody, "The body is longer than announced.");
    CO_TRY(finish());
  }
  co_return chain;
}

Task<S3Result<std::string>> Payload::read_text(size_t limit) {
  if (size_ > limit) co_return Code::MaxMessageLengthExceeded;
  const auto text = co_await http::read_text(source(), limit);
  if (!text) {
    if (text.error().code() == Errc::too_large) co_return Code::MaxMessageLengthExceeded;
    co_return from_source(text.error());
  }
  update(std::as_bytes(std::span(*text)));
  if (!sized_) size_ = received_;
  CO_TRY(finish());
  co_return *text;
}

Task<S3Result<std::string>> read_document(Call& call, size_t limit, Payload::Wants wants) {
  wants.length_optional = true;
  CO_TRY(const auto payload, Payload::of_call(call, wants));
  co_return co_await payload->read_text(limit);
}

S3Result<void> Payload::finish() {
  finished_ = true;
  if (received_ != size_) return Code::IncompleteBody;
  if (sha256_digest_ && !equal_secret(hex_of(sha256_digest_->finish()), *expected_sha256_)) {
    return Code::XAmzContentSHA256Mismatch;
  }
  if (md5_digest_) md5_ = md5_digest_->finish();
  if (expected_md5_ && md5_ != *expected_md5_) {
    return S3Error(Code::BadDigest, "The Content-MD5 you specified did not match what we received.");
  }
  if (!checksum_stream_) return {};
  const ChecksumInfo& info = checksum_info(*kind_);
  if (!checksum_trailer_.empty()) {
    const auto found = chunked_->trailers().find(checksum_trailer_);
    if (found == chunked_->trailers().end()) return Code::MalformedTrailerError;
    if (!is_checksum_value(*kind_, found->second)) {
      return S3Error(Code::InvalidRequest, "Value for " + checksum_trailer_ + " trailing header is invalid.");
    }
    expected_checksum_ = found->second;
  }
  checksum_ = object::Checksum{std::string(info.name), checksum_stream_->finish(), true};
  if (expected_checksum_ && *expected_checksum_ != checksum_->value) {
    return S3Error(Code::BadDigest,
                   "The " + std::string(info.name) + " you specified did not match the calculated checksum.");
  }
  return {};
}

}  // namespace cairn::s3
