// What stores bytes: PutObject, UploadPart, CopyObject, UploadPartCopy. All stream: a bounded window of the body is in
// memory, however large the object is.
#pragma once

#include "gateway/s3/call.h"

namespace cairn::s3 {

inline constexpr uint64_t kMaxPutBytes = uint64_t{5} << 30;  // of one PUT, one part, one copy

Answer put_object(Call& call);
Answer upload_part(Call& call);
Answer copy_object(Call& call);
Answer upload_part_copy(Call& call);

// NotImplemented for headers that ask for what this server doesn't do (encryption, tags, locks, access for others), and
// InvalidStorageClass: storing the object without it would break a promise that the client takes for given.
S3Result<void> check_unsupported_headers(const http::Headers& headers);

}  // namespace cairn::s3
