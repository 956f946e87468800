// An object's attributes to and from headers: Content-Type and its kin, and user metadata.
// Reference: "Working with object metadata" of the Amazon S3 user guide.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "gateway/http/headers.h"
#include "gateway/s3/error.h"
#include "object/object_store.h"

namespace cairn::s3 {

inline constexpr size_t kMaxUserMetadataBytes = 2048;  // names and values together

// Of a PUT, POST ?uploads or copy with replaced metadata. "aws-chunked" is taken out of Content-Encoding: it says how
// the body came, not what the object is. MetadataTooLarge beyond 2 KiB of user metadata.
S3Result<object::Attributes> attributes_of(const http::Headers& headers);

// The response headers that return them; the views live as long as `attributes`.
std::vector<std::pair<std::string, std::string_view>> attribute_headers(const object::Attributes& attributes);

}  // namespace cairn::s3
