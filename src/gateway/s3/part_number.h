// The partNumber of UploadPart, GetObject and HeadObject.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/s3/error.h"
#include "gateway/s3/uri.h"

namespace cairn::s3 {

// 1 to 10,000, or none when the parameter is absent; else InvalidArgument.
S3Result<std::optional<uint32_t>> part_number_of(const QueryParameters& query);

}  // namespace cairn::s3
