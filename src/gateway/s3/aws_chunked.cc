#include "gateway/s3/aws_chunked.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "base/hex.h"
#include "base/sha256.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kSignature = "chunk-signature=";

S3Error bad_framing(std::string_view what) {
  return S3Error(Code::InvalidRequest, "The aws-chunked body is malformed: " + std::string(what) + ".");
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

AwsChunkedDecoder::AwsChunkedDecoder(Options options) : options_(std::move(options)), hash_(DigestKind::sha256) {}

S3Result<size_t> AwsChunkedDecoder::consume(std::string_view bytes) {
  ASSERT(data_left_ == 0);
  size_t taken = 0;
  while (state_ != State::done && data_left_ == 0) {
    const std::string_view rest = bytes.substr(taken);
    const size_t end = rest.find("\r\n");
    if (end == std::string_view::npos) {
      if (rest.size() > kMaxLine) return bad_framing("a line is too long");
      // Behind a chunk's data nothing but the line end can stand: don't wait for it in vain.
      if (state_ == State::data_end && !rest.empty() && rest != "\r") return bad_framing("no line end after a chunk");
      break;
    }
    const std::string_view line = rest.substr(0, end);
    if (line.size() > kMaxLine) return bad_framing("a line is too long");
    taken += end + 2;
    switch (state_) {
      case State::head:
        TRY(on_head(line));
        break;
      case State::data_end:
        if (!line.empty()) return bad_framing("no line end after a chunk");
        state_ = State::head;
        break;
      case State::trailers:
        if (line.empty()) {
          TRY(on_end());
        } else {
          TRY(on_trailer(line));
        }
        break;
      case State::done:
        break;
    }
  }
  return taken;
}

S3Result<void> AwsChunkedDecoder::on_head(std::string_view line) {
  const size_t semicolon = line.find(';');
  const std::string_view digits = trim(line.substr(0, semicolon));
  uint64_t size = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  if (digits.empty() || problem != std::errc() || end != digits.data() + digits.size()) {
    return bad_framing("a chunk's size is not a hexadecimal number");
  }
  if (size > options_.decoded_length - decoded_) {
    return S3Error(Code::IncompleteBody, "The body is longer than x-amz-decoded-content-length says.");
  }
  chunk_signature_.clear();
  if (semicolon != std::string_view::npos) {
    const std::string_view extension = trim(line.substr(semicolon + 1));
    if (extension.starts_with(kSignature)) chunk_signature_ = extension.substr(kSignature.size());
  }
  if (options_.signer && chunk_signature_.empty()) {
    return S3Error(Code::SignatureDoesNotMatch, "A chunk of the body carries no signature.");
  }
  if (size > 0) {
    data_left_ = size;
    decoded_ += size;
    return {};
  }
  if (decoded_ != options_.decoded_length) {
    return S3Error(Code::IncompleteBody, "The body is shorter than x-amz-decoded-content-length says.");
  }
  TRY(on_chunk_end());
  state_ = State::trailers;
  return {};
}

S3Result<void> AwsChunkedDecoder::data(std::span<const std::byte> bytes) {
  ASSERT(bytes.size() <= data_left_);
  if (options_.signer) hash_.update(bytes);
  data_left_ -= bytes.size();
  if (data_left_ > 0) return {};
  state_ = State::data_end;
  return on_chunk_end();
}

S3Result<void> AwsChunkedDecoder::on_chunk_end() {
  if (!options_.signer) return {};
  const std::string hash = hash_.finish();
  const std::string expected = options_.signer->sign_chunk(to_hex(std::as_bytes(std::span(hash))));
  if (!equal_secret(expected, chunk_signature_)) {
    return S3Error(Code::SignatureDoesNotMatch, "The signature of a chunk of the body does not match.");
  }
  return {};
}

S3Result<void> AwsChunkedDecoder::on_trailer(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return Code::MalformedTrailerError;
  const std::string name = lower(trim(line.substr(0, colon)));
  const std::string value(trim(line.substr(colon + 1)));
  if (name == "x-amz-trailer-signature") {
    trailer_signature_ = value;
    return {};
  }
  if (std::ranges::find(options_.announced_trailers, name) == options_.announced_trailers.end()) {
    return S3Error(Code::MalformedTrailerError, "The trailer " + name + " was not announced by x-amz-trailer.");
  }
  if (trailers_.size() == kMaxTrailers || !trailers_.emplace(name, value).second) return Code::MalformedTrailerError;
  trailer_lines_.append(name).append(":").append(value).append("\n");
  return {};
}

S3Result<void> AwsChunkedDecoder::on_end() {
  for (const std::string& name : options_.announced_trailers) {
    if (!trailers_.contains(name)) {
      return S3Error(Code::MalformedTrailerError, "The trailer " + name + " was announced but did not come.");
    }
  }
  if (options_.signer && !options_.announced_trailers.empty()) {
    if (!equal_secret(options_.signer->sign_trailer(trailer_lines_), trailer_signature_)) {
      return S3Error(Code::SignatureDoesNotMatch, "The signature of the trailer is missing or does not match.");
    }
  }
  state_ = State::done;
  return {};
}

}  // namespace cairn::s3
