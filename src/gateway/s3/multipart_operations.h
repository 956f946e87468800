// Multipart uploads but for the parts' bytes: create, complete, abort, list parts. put_operations.h has UploadPart.
#pragma once

#include "gateway/s3/call.h"

namespace cairn::s3 {

inline constexpr uint64_t kMinPartBytes = 5 * 1024 * 1024;  // but for the last part

Answer create_upload(Call& call);
Answer complete_upload(Call& call);
Answer abort_upload(Call& call);
Answer list_parts(Call& call);

// "md5(of the parts' binary MD5s)-N": the ETag that sync tools compute themselves. None when an ETag is no MD5.
std::optional<std::string> multipart_etag(const std::vector<std::string>& part_etags);

}  // namespace cairn::s3
