// What reads objects: GetObject, HeadObject, GetObjectAttributes.
#pragma once

#include "gateway/s3/call.h"

namespace cairn::s3 {

Answer get_object(Call& call);
Answer head_object(Call& call);
Answer get_attributes(Call& call);

}  // namespace cairn::s3
