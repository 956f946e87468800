// Listing in key order, with a prefix and a delimiter, by seeking: keys under a common prefix are jumped over, not
// walked through. At most one page of records is in memory.
#pragma once

#include <string>

#include "object/buckets.h"
#include "object/core.h"

namespace cairn::object {

Task<Result<ListResult>> list_objects(Core& core, Buckets::Ref bucket, ListQuery query, CallContext context);
Task<Result<ObjectStore::UploadList>> list_uploads(Core& core, Buckets::Ref bucket, ObjectStore::UploadQuery query,
                                                   CallContext context);

}  // namespace cairn::object
