// Conditional requests: If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since in the order of RFC 9110
// section 13.2.2, the x-amz-copy-source-if-* of copies, and the conditions of writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gateway/http/headers.h"
#include "gateway/s3/error.h"
#include "object/object_store.h"

namespace cairn::s3 {

enum class Verdict {
  proceed,
  not_modified,         // 304
  precondition_failed,  // 412
};

struct ReadConditions {
  std::optional<std::string_view> if_match;
  std::optional<std::string_view> if_none_match;
  std::optional<int64_t> if_modified_since;  // seconds since 1970; unparsable dates count as absent
  std::optional<int64_t> if_unmodified_since;

  static ReadConditions of_request(const http::Headers& headers);
  static ReadConditions of_copy_source(const http::Headers& headers);

  // For GET and HEAD; a copy takes every verdict but `proceed` as failed.
  Verdict judge(std::string_view etag, int64_t modified_unix_ns) const;
};

// Of PUT, CompleteMultipartUpload (If-Match, If-None-Match: *) and DELETE (If-Match). NotImplemented for what S3
// doesn't define there: If-None-Match with an ETag.
S3Result<object::WriteConditions> write_conditions(const http::Headers& headers);

// If-Range (RFC 9110 section 13.1.5): whether a Range header applies.
bool range_applies(const http::Headers& headers, std::string_view etag, int64_t modified_unix_ns);

}  // namespace cairn::s3
