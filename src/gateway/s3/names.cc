#include "gateway/s3/names.h"

#include <algorithm>

#include "gateway/s3/uri.h"
#include "gateway/s3/utf8.h"

namespace cairn::s3 {
namespace {

bool letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool looks_like_address(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c == '.' || (c >= '0' && c <= '9'); }) &&
         std::ranges::count(name, '.') == 3;
}

}  // namespace

S3Result<void> check_bucket_name(std::string_view name) {
  const bool ok = name.size() >= 3 && name.size() <= 63 && letter_or_digit(name.front()) &&
                  letter_or_digit(name.back()) && name.find("..") == std::string_view::npos &&
                  std::ranges::all_of(name, [](char c) { return letter_or_digit(c) || c == '-' || c == '.'; }) &&
                  !looks_like_address(name);
  if (ok) return {};
  return S3Error(Code::InvalidBucketName,
                 "The bucket name is not valid: 3 to 63 lower-case letters, digits, hyphens and dots, starting and "
                 "ending with a letter or digit.");
}

S3Result<void> check_key(std::string_view key) {
  if (key.size() > kMaxKeyBytes) return Code::KeyTooLongError;
  if (key.empty()) return S3Error(Code::InvalidArgument, "The key is empty.");
  if (!is_utf8(key)) return S3Error(Code::InvalidArgument, "The key is not valid UTF-8.");
  return {};
}

S3Result<void> check_version_id(std::string_view id) {
  if (id.empty() || id == "null") return {};
  return S3Error(Code::InvalidArgument, "Invalid version id specified");
}

S3Result<CopySource> parse_copy_source(std::string_view header) {
  const size_t question = header.find('?');
  if (question != std::string_view::npos) {
    const std::string_view rest = header.substr(question + 1);
    if (rest.starts_with("versionId=") && rest != "versionId=null") {
      return S3Error(Code::NotImplemented, "Copying from a version is not supported: there is no versioning yet.");
    }
    if (rest.starts_with("versionId=")) header = header.substr(0, question);
  }
  auto source = uri_decode(header, false);
  const auto bad = [] {
    return S3Error(Code::InvalidArgument, "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
  };
  if (!source) return bad();
  if (source->starts_with('/')) source->erase(0, 1);
  const size_t slash = source->find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == source->size()) return bad();
  return CopySource{source->substr(0, slash), source->substr(slash + 1)};
}

}  // namespace cairn::s3
