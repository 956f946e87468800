// Uploads: multipart uploads. Each part is a run of data of its own with a record; completing moves no data, it makes
// an object whose part table names the runs.
//
// Parts are committed under the condition that the upload exists and isn't frozen. Completing freezes it, so that the
// parts that it looks at are the parts that the object gets, and then replaces the object, deletes the upload and
// queues the part records (and what wasn't named) for deletion, in one batch.
#pragma once

#include <string>

#include "object/objects.h"

namespace cairn::object {

class Uploads {
 public:
  Uploads(Core& core, Buckets& buckets, Session& session, Objects& objects)
      : core_(core), buckets_(buckets), session_(session), objects_(objects) {}

  struct Found {
    Buckets::Ref bucket;
    Id128 id;
    UploadRecord record;
  };
  // not_found "bucket" or "upload".
  Task<Result<Found>> find(std::string bucket, std::string key, std::string upload_id, CallContext context);

  Task<Result<std::string>> create(std::string bucket, std::string key, ObjectStore::UploadOptions options,
                                   CallContext context);
  Task<Result<ObjectInfo>> commit_part(Found upload, std::string key, uint32_t number, DataSink& sink,
                                       Writer::Commit commit, CallContext context);
  Task<Result<ObjectStore::PartList>> list_parts(Found upload, uint32_t after, size_t limit, CallContext context);
  Task<Result<ObjectInfo>> complete(std::string bucket, std::string key, std::string upload_id,
                                    ObjectStore::Completion completion, CallContext context);
  Task<Result<void>> abort(std::string bucket, std::string key, std::string upload_id, CallContext context);

 private:
  // What an upload's parts are once nothing changes them any more.
  struct Assembly {
    PartTable table;
    uint64_t size = 0;
    std::vector<DataRef> left_over;  // data of parts that were not named
  };
  Task<Result<Assembly>> assemble(const Found& upload, const ObjectStore::Completion& completion, CallContext context);
  Task<Result<ObjectInfo>> complete_frozen(const Found& upload, std::string bucket, std::string key,
                                           const ObjectStore::Completion& completion, class Freeze& freeze,
                                           bool& try_again, CallContext context);
  Task<Result<std::optional<ObjectInfo>>> completed_before(std::string bucket, std::string key, Id128 upload,
                                                           const ObjectStore::Completion& completion,
                                                           CallContext context);

  Core& core_;
  Buckets& buckets_;
  Session& session_;
  Objects& objects_;
};

}  // namespace cairn::object
