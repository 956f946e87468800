// The small GETs that clients ask before they work: where is the bucket, is it versioned, has it a policy. What this
// server doesn't have is answered as on a bucket that was never configured.
#pragma once

#include "gateway/s3/call.h"

namespace cairn::s3 {

Answer bucket_subresource(Call& call);
Answer object_subresource(Call& call);

}  // namespace cairn::s3
