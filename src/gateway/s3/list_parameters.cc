#include "gateway/s3/list_parameters.h"

#include <charconv>

#include "base/base64.h"
#include "base/crc32c.h"
#include "gateway/s3/names.h"

namespace cairn::s3 {
namespace {

constexpr uint8_t kTokenVersion = 1;

// Version, flags (bit 0: the position is a common prefix), CRC32C of the rest (little-endian), the position.
struct Token {
  std::string position;
  bool is_prefix = false;
};

std::optional<Token> parse_token(std::string_view text) {
  const auto raw = from_base64(text);
  if (!raw || raw->size() < 6 || static_cast<uint8_t>((*raw)[0]) != kTokenVersion) return std::nullopt;
  const std::string position = raw->substr(6);
  uint32_t crc = 0;
  for (size_t i = 4; i > 0; --i) crc = crc << 8 | static_cast<unsigned char>((*raw)[1 + i]);
  if (crc != crc32c(std::as_bytes(std::span(position)))) return std::nullopt;
  return Token{position, ((*raw)[1] & 1) != 0};
}

// V1's marker is a plain key. One that ends where a common prefix would end is that prefix, as NextMarker gave it.
bool is_common_prefix(std::string_view marker, std::string_view prefix, std::string_view delimiter) {
  if (delimiter.empty() || !marker.starts_with(prefix)) return false;
  const size_t at = marker.find(delimiter, prefix.size());
  return at != std::string_view::npos && at + delimiter.size() == marker.size();
}

}  // namespace

std::string_view parameter(const QueryParameters& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return {};
}

bool has_parameter(const QueryParameters& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters) {
    if (key == name) return true;
  }
  return false;
}

S3Result<size_t> parse_count(const QueryParameters& parameters, std::string_view name, size_t absent) {
  const std::string_view text = parameter(parameters, name);
  if (text.empty()) return absent;
  int32_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) {
    return S3Error(Code::InvalidArgument,
                   "Argument " + std::string(name) + " must be an integer between 0 and 2147483647");
  }
  return std::min(static_cast<size_t>(value), kMaxListKeys);
}

S3Result<bool> parse_encoding(const QueryParameters& parameters) {
  const std::string_view text = parameter(parameters, "encoding-type");
  if (text.empty()) return false;
  if (text == "url") return true;
  return S3Error(Code::InvalidArgument, "Invalid Encoding Method specified in Request");
}

namespace {

// Positions are bounded like the keys that they are compared with.
S3Result<void> check_lengths(const QueryParameters& parameters) {
  for (const std::string_view name : {"prefix", "marker", "start-after", "key-marker"}) {
    if (parameter(parameters, name).size() > kMaxKeyBytes) return Code::KeyTooLongError;
  }
  return {};
}

}  // namespace

S3Result<ListView> parse_list(const QueryParameters& parameters, std::string bucket, std::string owner) {
  TRY(check_lengths(parameters));
  ListView view;
  view.version = parameter(parameters, "list-type") == "2" ? 2 : 1;
  view.bucket = std::move(bucket);
  view.owner = std::move(owner);
  view.query.prefix = parameter(parameters, "prefix");
  view.query.delimiter = parameter(parameters, "delimiter");
  TRY(view.query.max_keys, parse_count(parameters, "max-keys"));
  TRY(view.url_encoding, parse_encoding(parameters));
  if (view.version == 1) {
    view.marker = parameter(parameters, "marker");
    view.query.start_after = view.marker;
    view.query.start_after_is_prefix = is_common_prefix(view.marker, view.query.prefix, view.query.delimiter);
    return view;
  }
  view.fetch_owner = parameter(parameters, "fetch-owner") == "true";
  view.start_after = parameter(parameters, "start-after");
  view.query.start_after = view.start_after;
  if (has_parameter(parameters, "continuation-token")) {
    view.continuation_token = parameter(parameters, "continuation-token");
    auto token = parse_token(view.continuation_token);
    if (!token) return S3Error(Code::InvalidArgument, "The continuation token provided is incorrect");
    view.query.start_after = std::move(token->position);
    view.query.start_after_is_prefix = token->is_prefix;
  }
  return view;
}

S3Result<UploadsView> parse_uploads(const QueryParameters& parameters, std::string bucket, std::string owner) {
  TRY(check_lengths(parameters));
  UploadsView view;
  view.bucket = std::move(bucket);
  view.owner = std::move(owner);
  view.query.prefix = parameter(parameters, "prefix");
  view.query.delimiter = parameter(parameters, "delimiter");
  view.query.key_marker = parameter(parameters, "key-marker");
  // Without a key marker it means nothing.
  if (!view.query.key_marker.empty()) view.query.upload_id_marker = parameter(parameters, "upload-id-marker");
  TRY(view.query.max_uploads, parse_count(parameters, "max-uploads"));
  TRY(view.url_encoding, parse_encoding(parameters));
  return view;
}

S3Result<PartsView> parse_parts(const QueryParameters& parameters, std::string bucket, std::string key,
                                std::string owner) {
  PartsView view;
  view.bucket = std::move(bucket);
  view.key = std::move(key);
  view.owner = std::move(owner);
  view.upload_id = parameter(parameters, "uploadId");
  TRY(view.max_parts, parse_count(parameters, "max-parts"));
  TRY(view.url_encoding, parse_encoding(parameters));
  const std::string_view after = parameter(parameters, "part-number-marker");
  if (!after.empty()) {
    const auto [end, problem] = std::from_chars(after.data(), after.data() + after.size(), view.after);
    if (problem != std::errc() || end != after.data() + after.size()) {
      return S3Error(Code::InvalidArgument, "Argument part-number-marker must be an integer between 0 and 2147483647");
    }
  }
  return view;
}

std::string make_token(const object::ListResult& result) {
  std::string raw;
  raw.push_back(static_cast<char>(kTokenVersion));
  raw.push_back(result.next_is_prefix ? 1 : 0);
  const uint32_t crc = crc32c(std::as_bytes(std::span(result.next)));
  for (unsigned shift = 0; shift < 32; shift += 8) raw.push_back(static_cast<char>(crc >> shift));
  raw += result.next;
  return to_base64(std::as_bytes(std::span(raw)));
}

}  // namespace cairn::s3
