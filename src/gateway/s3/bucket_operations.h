// Operations on buckets and their listings.
#pragma once

#include "gateway/s3/call.h"

namespace cairn::s3 {

Answer list_buckets(Call& call);
Answer create_bucket(Call& call);
Answer head_bucket(Call& call);
Answer delete_bucket(Call& call);
// V1 and V2.
Answer list_objects(Call& call);
// Each object as its only version, "null": there is no versioning yet.
Answer list_versions(Call& call);
Answer list_uploads(Call& call);

}  // namespace cairn::s3
