// DeleteObject and DeleteObjects.
#pragma once

#include "gateway/s3/call.h"

namespace cairn::s3 {

Answer delete_object(Call& call);
Answer delete_objects(Call& call);

}  // namespace cairn::s3
