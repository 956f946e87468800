// MemoryStore: an ObjectStore in memory, for the gateway's tests. Keeps what it is given by reference.
//
// Fault model: what a test sets in `faults`, and nothing else: an error at the n-th piece of a read (a chunk that turns
// out unreadable in the midst of an answer), errors of any call by name, a full device, a slow completion or one by
// somebody else, a store that keeps nothing. No crash, no lost writes: those belong to the layers below.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "object/object_store.h"
#include "reactor/loop.h"

namespace cairn::s3::testing {

class MemoryStore final : public object::ObjectStore {
 public:
  // Readers give pieces of at most this size.
  static constexpr size_t kPiece = size_t{4} << 20;

  MemoryStore(Loop& loop, const WallClock& clock) : loop_(loop), clock_(clock) {}

  struct Faults {
    size_t piece_bytes = kPiece;
    // The piece of this number (from 0) of every read fails.
    std::optional<size_t> bad_piece;
    Error bad_piece_error{Errc::corrupt, "a test's fault"};
    std::optional<Error> write;   // of every Writer::write
    std::optional<Error> commit;  // of every commit and completion
    std::optional<Error> every;   // of every call but those of the access keys
    Duration completion_takes{};
    // Somebody else completes the upload just before its parts are listed, once.
    std::optional<Completion> completed_beside;
    // What is written is dropped, so that its memory comes back as if it had gone to a device.
    bool forget = false;
  };
  Faults faults;
  size_t writers_open = 0;
  Trace last_trace;  // of head_bucket
  size_t completions = 0;

  Task<Result<object::BucketInfo>> create_bucket(std::string name, std::string owner,
                                                 object::CallContext context) override;
  Task<Result<object::BucketInfo>> head_bucket(std::string name, object::CallContext context) override;
  Task<Result<void>> remove_bucket(std::string name, object::CallContext context) override;
  Task<Result<std::vector<object::BucketInfo>>> list_buckets(object::CallContext context) override;

  Task<Result<std::unique_ptr<object::Writer>>> put(std::string bucket, std::string key,
                                                    object::CallContext context) override;
  Task<Result<object::ObjectInfo>> head(std::string bucket, std::string key, object::CallContext context) override;
  Task<Result<std::unique_ptr<object::Reader>>> open(std::string bucket, std::string key, object::RangeChooser* chooser,
                                                     object::CallContext context) override;
  Task<Result<void>> remove(std::string bucket, std::string key, object::WriteConditions conditions,
                            object::CallContext context) override;
  Task<Result<object::ListResult>> list(std::string bucket, object::ListQuery query,
                                        object::CallContext context) override;

  Task<Result<std::string>> create_upload(std::string bucket, std::string key, UploadOptions options,
                                          object::CallContext context) override;
  Task<Result<UploadOptions>> head_upload(std::string bucket, std::string key, std::string upload_id,
                                          object::CallContext context) override;
  Task<Result<std::unique_ptr<object::Writer>>> put_part(std::string bucket, std::string key, std::string upload_id,
                                                         uint32_t number, object::CallContext context) override;
  Task<Result<PartList>> list_parts(std::string bucket, std::string key, std::string upload_id, uint32_t after,
                                    size_t limit, object::CallContext context) override;
  Task<Result<object::ObjectInfo>> complete_upload(std::string bucket, std::string key, std::string upload_id,
                                                   Completion completion, object::CallContext context) override;
  Task<Result<void>> abort_upload(std::string bucket, std::string key, std::string upload_id,
                                  object::CallContext context) override;
  Task<Result<UploadList>> list_uploads(std::string bucket, UploadQuery query, object::CallContext context) override;

  Task<Result<void>> put_access_key(AccessKey key, object::CallContext context) override;
  Task<Result<AccessKey>> get_access_key(std::string access_key, object::CallContext context) override;
  Task<Result<void>> remove_access_key(std::string access_key, object::CallContext context) override;
  Task<Result<std::vector<AccessKey>>> list_access_keys(object::CallContext context) override;

 private:
  class StoreWriter;
  class StoreReader;

  struct Object {
    object::ObjectInfo info;
    mem::BufChain data;
  };
  struct Part {
    object::PartInfo info;
    mem::BufChain data;
  };
  struct Upload {
    std::string key;
    std::string id;
    int64_t initiated_unix_ns = 0;
    UploadOptions options;
    std::map<uint32_t, Part> parts;
  };
  struct Bucket {
    object::BucketInfo info;
    std::map<std::string, std::shared_ptr<Object>> objects;
    std::map<std::string, Upload> uploads;                // by id
    std::map<std::string, object::ObjectInfo> completed;  // by upload id
  };

  std::unique_ptr<object::Writer> make_part_writer(std::string bucket, std::string key, std::string upload_id,
                                                   uint32_t number);
  Result<Bucket*> find(const std::string& bucket);
  Result<Upload*> find_upload(const std::string& bucket, const std::string& key, const std::string& upload_id);
  Result<void> check(const Bucket& bucket, const std::string& key, const object::WriteConditions& conditions) const;
  Result<object::ObjectInfo> store(const std::string& bucket, const std::string& key, object::Writer::Commit commit,
                                   mem::BufChain data, std::vector<object::PartInfo> parts);
  Result<object::ObjectInfo> finish_upload(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id, Completion completion);

  Loop& loop_;
  const WallClock& clock_;
  std::map<std::string, Bucket> buckets_;
  std::map<std::string, AccessKey> keys_;
  uint64_t next_upload_ = 1;
};

}  // namespace cairn::s3::testing
