#include "gateway/s3/operation.h"

#include <gtest/gtest.h>

namespace cairn::s3 {
namespace {

// "METHOD /bucket/key?query", with a copy source when `copy`.
std::string routed(std::string_view method, std::string_view path, bool copy = false) {
  const size_t question = path.find('?');
  const auto query = parse_query(question == std::string_view::npos ? "" : path.substr(question + 1));
  path = path.substr(0, question);
  const size_t slash = path.find('/', 1);
  const Target target{method, path.size() > 1, slash != std::string_view::npos && slash + 1 < path.size(), copy};
  const auto operation = route(target, *query);
  return std::string(operation ? operation_name(*operation) : operation.error().name());
}

TEST(Operation, Table) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"GET", "/", "ListBuckets"},
      {"POST", "/", "MethodNotAllowed"},
      {"PUT", "/b", "CreateBucket"},
      {"PUT", "/b/", "CreateBucket"},
      {"HEAD", "/b", "HeadBucket"},
      {"DELETE", "/b", "DeleteBucket"},
      {"GET", "/b?list-type=2&prefix=x", "ListObjects"},
      {"GET", "/b?versions", "ListObjectVersions"},
      {"GET", "/b?uploads", "ListMultipartUploads"},
      {"POST", "/b?delete", "DeleteObjects"},
      {"GET", "/b?location", "BucketSubresource"},
      {"GET", "/b?inventory", "NotImplemented"},
      {"PUT", "/b?policy", "NotImplemented"},
      {"DELETE", "/b?lifecycle", "NotImplemented"},
      {"PUT", "/b/k?x-id=PutObject", "PutObject"},
      {"PUT", "/b/k?acl", "NotImplemented"},
      {"PUT", "/b/k?tagging", "NotImplemented"},
      {"PUT", "/b/k?retention", "NotImplemented"},
      {"DELETE", "/b/k?tagging", "NotImplemented"},
      {"GET", "/b/k?partNumber=1", "GetObject"},
      {"GET", "/b/k?attributes", "GetObjectAttributes"},
      {"GET", "/b/k?torrent", "NotImplemented"},
      {"POST", "/b/k?uploads", "CreateMultipartUpload"},
      {"PUT", "/b/k?partNumber=1&uploadId=u", "UploadPart"},
      {"POST", "/b/k?uploadId=u", "CompleteMultipartUpload"},
      {"DELETE", "/b/k?uploadId=u", "AbortMultipartUpload"},
      {"GET", "/b/k?uploadId=u", "ListParts"},
      {"POST", "/b/k?select&select-type=2", "NotImplemented"},
      {"POST", "/b/k?restore", "NotImplemented"},
      {"PATCH", "/b/k", "MethodNotAllowed"},
      {"GET", "/b?acl&policy", "InvalidArgument"},
      {"PUT", "/b/k?renameObject", "NotImplemented"},
      {"PUT", "/b/k?append&position=0", "NotImplemented"},
      {"PUT", "/b/k?partNumber=1", "InvalidArgument"},
      {"PUT", "/b/k?versionId=null", "InvalidArgument"},
      {"POST", "/b/k?uploads&versionId=1", "InvalidArgument"},
      {"PUT", "/b/k?uploadId=u&partNumber=1&versionId=1", "InvalidArgument"},
      {"GET", "/b/k?versionId=null", "GetObject"},
      {"DELETE", "/b/k?versionId=null", "DeleteObject"},
  };
  for (const auto& [method, path, expected] : cases) EXPECT_EQ(routed(method, path), expected) << method << " " << path;
}

TEST(Operation, SaysWhatIsAllowed) {
  EXPECT_EQ(allowed_methods({.method = "PATCH", .has_bucket = true, .has_key = true}), "PUT, GET, HEAD, DELETE");
  EXPECT_EQ(allowed_methods({.method = "POST", .has_bucket = true}), "PUT, HEAD, DELETE, GET");
  EXPECT_EQ(allowed_methods({.method = "POST"}), "GET");
}

TEST(Operation, CopySourceTurnsWritesIntoCopies) {
  EXPECT_EQ(routed("PUT", "/b/k", true), "CopyObject");
  EXPECT_EQ(routed("PUT", "/b/k?partNumber=1&uploadId=u", true), "UploadPartCopy");
  EXPECT_EQ(routed("GET", "/b/k", true), "GetObject");
  EXPECT_EQ(routed("PUT", "/b/k?partNumber=1", true), "InvalidArgument");
}

}  // namespace
}  // namespace cairn::s3
