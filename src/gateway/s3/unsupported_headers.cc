#include <algorithm>
#include <string>

#include "gateway/s3/put_operations.h"

namespace cairn::s3 {
namespace {

struct Unsupported {
  std::string_view name;  // one that ends with "-" stands for all that begin with it
  // Values that ask for nothing beyond what there is, besides the empty one.
  std::string_view harmless[3];
  std::string_view what;
  Code code = Code::NotImplemented;
};
constexpr Unsupported kUnsupported[] = {
    {"x-amz-acl", {"private", "bucket-owner-full-control", "bucket-owner-read"}, "Access for others than the owner"},
    {"x-amz-grant-", {}, "Access for others than the owner"},
    {"x-amz-server-side-encryption", {}, "Server-side encryption"},
    {"x-amz-server-side-encryption-", {}, "Server-side encryption"},
    {"x-amz-copy-source-server-side-encryption-", {}, "Server-side encryption"},
    {"x-amz-tagging", {}, "Object tagging"},
    // There are no tags to copy or replace.
    {"x-amz-tagging-directive", {"COPY", "REPLACE"}, "Object tagging"},
    {"x-amz-object-lock-", {}, "Object lock"},
    {"x-amz-storage-class",
     {"STANDARD", "REDUCED_REDUNDANCY"},
     "A storage class beside STANDARD",
     Code::InvalidStorageClass},
    {"x-amz-write-offset-bytes", {}, "Appending to objects"},
    {"x-amz-if-match-", {}, "Deleting under conditions on size or time"},
};

bool names(const Unsupported& entry, std::string_view header) {
  return entry.name.ends_with('-') ? header.starts_with(entry.name) : header == entry.name;
}

}  // namespace

S3Result<void> check_unsupported_headers(const http::Headers& headers) {
  for (const auto& field : headers) {
    for (const Unsupported& entry : kUnsupported) {
      if (!names(entry, field.name) || field.value.empty()) continue;
      if (std::ranges::find(entry.harmless, field.value) != std::end(entry.harmless)) continue;
      return S3Error(entry.code, std::string(entry.what) + " is not implemented by this server (header " +
                                     std::string(field.name) + ").");
    }
  }
  return {};
}

}  // namespace cairn::s3
