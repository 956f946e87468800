// Bucket names, keys and copy sources: what S3 allows.
// Reference: "Bucket naming rules" and "Naming Amazon S3 objects" of the Amazon S3 user guide.
#pragma once

#include <string>
#include <string_view>

#include "gateway/s3/error.h"

namespace cairn::s3 {

inline constexpr size_t kMaxKeyBytes = 1024;

// InvalidBucketName unless 3 to 63 of a-z, 0-9, "-" and ".", starting and ending with a letter or digit, without ".."
// and not in the form of an IPv4 address.
S3Result<void> check_bucket_name(std::string_view name);
// KeyTooLongError over 1,024 bytes; InvalidArgument when empty or not UTF-8. Any other byte is allowed, NUL too, and
// nothing is normalised: "a//b", "./a" and "../a" are three keys.
S3Result<void> check_key(std::string_view key);

// There are no versions yet: InvalidArgument for any id but "null", the version of what was written without versioning.
S3Result<void> check_version_id(std::string_view id);

struct CopySource {
  std::string bucket;
  std::string key;
};
// x-amz-copy-source: "[/]bucket/key", percent-encoded, perhaps with "?versionId=null".
S3Result<CopySource> parse_copy_source(std::string_view header);

}  // namespace cairn::s3
