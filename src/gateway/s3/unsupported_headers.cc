#include <algorithm>
#include <string>

#include "gateway/s3/put_operations.h"

namespace cairn::s3 {
namespace {

struct Unsupported {
  std::string_view prefix;
  // Values that ask for nothing beyond what there is.
  std::string_view harmless[3];
  std::string_view what;
};
constexpr Unsupported kUnsupported[] = {
    {"x-amz-acl", {"private", "bucket-owner-full-control", "bucket-owner-read"}, "Access for others than the owner"},
    {"x-amz-grant-", {}, "Access for others than the owner"},
    {"x-amz-server-side-encryption", {}, "Server-side encryption"},
    {"x-amz-copy-source-server-side-encryption", {}, "Server-side encryption"},
    {"x-amz-tagging", {"", "COPY"}, "Object tagging"},
    {"x-amz-object-lock-", {}, "Object lock"},
    {"x-amz-write-offset-bytes", {}, "Appending to objects"},
};

}  // namespace

S3Result<void> check_unsupported_headers(const http::Headers& headers) {
  for (const auto& field : headers) {
    for (const Unsupported& entry : kUnsupported) {
      if (!field.name.starts_with(entry.prefix)) continue;
      // x-amz-tagging-directive: COPY and an empty x-amz-tagging are sent by default by some clients.
      const bool exact = field.name == entry.prefix || field.name == "x-amz-tagging-directive";
      if (exact && std::ranges::find(entry.harmless, field.value) != std::end(entry.harmless)) continue;
      return S3Error(Code::NotImplemented, std::string(entry.what) + " is not implemented by this server (header " +
                                               std::string(field.name) + ").");
    }
  }
  return {};
}

}  // namespace cairn::s3
