// The query parameters of listings, checked as S3 checks them.
// Reference: ListObjects, ListObjectsV2, ListMultipartUploads and ListParts of the Amazon S3 API.
#pragma once

#include <string>
#include <string_view>

#include "gateway/s3/error.h"
#include "gateway/s3/uri.h"
#include "gateway/s3/xml_response.h"

namespace cairn::s3 {

inline constexpr size_t kMaxListKeys = 1000;

// The first value of a parameter, or "".
std::string_view parameter(const QueryParameters& parameters, std::string_view name);
bool has_parameter(const QueryParameters& parameters, std::string_view name);

// max-keys and the like: `absent` when missing or empty, at most 1,000 is served; InvalidArgument for what isn't a
// number from 0 to 2^31-1.
S3Result<size_t> parse_count(const QueryParameters& parameters, std::string_view name, size_t absent = kMaxListKeys);
// encoding-type: "url" or nothing; else InvalidArgument.
S3Result<bool> parse_encoding(const QueryParameters& parameters);

// ListObjects or ListObjectsV2 (list-type=2). The position is put into view.query.
S3Result<ListView> parse_list(const QueryParameters& parameters, std::string bucket, std::string owner);
S3Result<UploadsView> parse_uploads(const QueryParameters& parameters, std::string bucket, std::string owner);
S3Result<PartsView> parse_parts(const QueryParameters& parameters, std::string bucket, std::string key,
                                std::string owner);

// A continuation token says where the listing stopped. It carries a checksum: one that was changed or made up is
// InvalidArgument, never a listing from somewhere else.
std::string make_token(const object::ListResult& result);

}  // namespace cairn::s3
