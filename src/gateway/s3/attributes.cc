#include "gateway/s3/attributes.h"

#include <algorithm>
#include <array>

namespace cairn::s3 {
namespace {

constexpr std::string_view kUserPrefix = "x-amz-meta-";
constexpr std::string_view kDefaultType = "binary/octet-stream";
constexpr std::array<std::string_view, 6> kKept = {"cache-control",    "content-disposition",
                                                   "content-encoding", "content-language",
                                                   "expires",          "x-amz-website-redirect-location"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string without_aws_chunked(std::string_view list) {
  std::string out;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view item = http::trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (item.empty() || http::equals_ignoring_case(item, "aws-chunked")) continue;
    if (!out.empty()) out += ",";
    out += item;
  }
  return out;
}

}  // namespace

S3Result<object::Attributes> attributes_of(const http::Headers& headers) {
  object::Attributes attributes;
  size_t user_bytes = 0;
  for (const auto& field : headers) {
    std::string name = lower(field.name);
    if (name == "content-type") {
      attributes.content_type = field.value;
    } else if (name.starts_with(kUserPrefix)) {
      name.erase(0, kUserPrefix.size());
      user_bytes += name.size() + field.value.size();
      // Several fields of one name are one field with a list (RFC 9110 section 5.3).
      std::string& value = attributes.user_metadata[name];
      if (!value.empty()) value += ",";
      value += field.value;
    } else if (std::ranges::find(kKept, name) != kKept.end()) {
      std::string value = name == "content-encoding" ? without_aws_chunked(field.value) : std::string(field.value);
      if (!value.empty()) attributes.headers[std::move(name)] = std::move(value);
    }
  }
  if (user_bytes > kMaxUserMetadataBytes) return Code::MetadataTooLarge;
  if (attributes.content_type.empty()) attributes.content_type = kDefaultType;
  return attributes;
}

std::vector<std::pair<std::string, std::string_view>> attribute_headers(const object::Attributes& attributes) {
  std::vector<std::pair<std::string, std::string_view>> out;
  out.emplace_back("Content-Type", attributes.content_type.empty() ? kDefaultType : attributes.content_type);
  for (const auto& [name, value] : attributes.headers) out.emplace_back(name, value);
  for (const auto& [name, value] : attributes.user_metadata) out.emplace_back(std::string(kUserPrefix) + name, value);
  return out;
}

}  // namespace cairn::s3
