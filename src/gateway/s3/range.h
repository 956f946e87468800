// Range headers (RFC 9110 section 14) and copy-source ranges, on an object of known size.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gateway/s3/error.h"
#include "object/object_store.h"

namespace cairn::s3 {

// The one range to serve, or none: serve the whole with 200. A header that isn't understood, has an invalid range or
// asks for several ranges counts as absent, as the RFC allows; InvalidRange (416) when it can't be satisfied.
S3Result<std::optional<object::ByteRange>> parse_range(std::string_view header, uint64_t size);

// x-amz-copy-source-range: "bytes=FIRST-LAST" with both ends inside the source, else InvalidArgument.
S3Result<object::ByteRange> parse_copy_range(std::string_view header, uint64_t size);

}  // namespace cairn::s3
