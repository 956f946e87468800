// ObjectStore: buckets and objects over client::Client. Stateless but for caches: any number of gateways may run one
// each, since every change is one atomic, conditional batch on the group that holds the bucket's index.
//
// One instance per reactor. Names, keys and metadata are bytes as the protocol's gateway checked them; limits of a
// protocol (bucket naming, 1,024-byte keys) are the gateway's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "base/trace.h"
#include "mem/buf_chain.h"
#include "reactor/cancel.h"
#include "reactor/task.h"

namespace cairn::object {

struct CallContext {
  Time deadline = Time::never();
  CancelToken cancel{};
  Trace trace{};  // of the request that this is done for
};

struct BucketInfo {
  std::string name{};
  std::string owner{};  // access key that made it
  int64_t created_unix_ns = 0;
};

// A checksum that the client sent or asked for, kept and returned.
struct Checksum {
  std::string algorithm{};  // "CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"
  std::string value{};      // base64, for composite ones with "-N"
  bool full_object = true;
};

// What travels with an object besides its bytes.
struct Attributes {
  std::string content_type{};
  // Other headers returned as they came: cache-control, content-disposition, content-encoding, content-language,
  // expires, in lower case.
  std::map<std::string, std::string> headers{};
  std::map<std::string, std::string> user_metadata{};  // without "x-amz-meta-", names in lower case
};

struct PartInfo {
  uint32_t number = 0;
  uint64_t size = 0;
  std::string etag{};  // without quotes
  int64_t modified_unix_ns = 0;
  std::optional<Checksum> checksum{};
};

struct ObjectInfo {
  std::string key{};
  uint64_t size = 0;
  std::string etag{};  // without quotes
  int64_t modified_unix_ns = 0;
  Attributes attributes{};
  std::optional<Checksum> checksum{};
  std::vector<PartInfo> parts{};  // of a multipart object, for GET ?partNumber
};

// Conditions on the object that stands under the key, checked atomically with the change.
struct WriteConditions {
  bool if_none_match_any = false;         // "If-None-Match: *" -> Errc::already_exists
  std::optional<std::string> if_match{};  // an ETag or "*"; else Errc::condition_failed, or not_found if none is there
};

struct ListQuery {
  std::string prefix{};
  std::string delimiter{};
  std::string start_after{};  // keys greater than this (marker, start-after or a decoded token)
  // Set when start_after is a common prefix that was already returned: everything below it is skipped.
  bool start_after_is_prefix = false;
  size_t max_keys = 1000;
};

struct ListResult {
  std::vector<ObjectInfo> objects{};  // key, size, etag, modified and checksum only
  std::vector<std::string> common_prefixes{};
  bool truncated = false;
  std::string next{};  // the last key or common prefix returned
  bool next_is_prefix = false;
};

struct UploadInfo {
  std::string key{};
  std::string upload_id{};
  int64_t initiated_unix_ns = 0;
};

// Receives an object's or a part's bytes. Nothing is visible before commit; destroying without commit discards what was
// written, in the background.
class Writer {
 public:
  virtual ~Writer() = default;
  // Takes the next bytes. Every chain but the last of a writer is a multiple of 4 KiB in size with 4 KiB-aligned
  // slices, so that it goes to the disk without a copy; wait for the result before the next call. Returns once the
  // pipeline has room; errors of earlier writes surface here or at commit.
  virtual Task<Result<void>> write(mem::BufChain data) = 0;
  struct Commit {
    std::string etag{};
    Attributes attributes{};
    std::optional<Checksum> checksum{};
    WriteConditions conditions{};
  };
  // Durable and visible when it returns ok. Call once.
  virtual Task<Result<ObjectInfo>> commit(Commit commit) = 0;
  // Gives the space back now instead of later.
  virtual Task<void> abort() = 0;
};

// Gives an object's bytes. The object it was opened on stays readable through overwrites and deletes, whole.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual const ObjectInfo& info() const = 0;
  // The next bytes of the range it was opened on, at most one chunk; empty at the end.
  virtual Task<Result<mem::BufChain>> next() = 0;
};

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Decides on the range when the object's size and attributes are known, e.g. by Range and If-* headers. An error is
// returned by open() as it is.
class RangeChooser {
 public:
  virtual ~RangeChooser() = default;
  virtual Result<ByteRange> choose(const ObjectInfo& info) = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Buckets. create: already_exists; remove: not_found, or condition_failed when it isn't empty (uploads in progress
  // don't count and are aborted).
  virtual Task<Result<BucketInfo>> create_bucket(std::string name, std::string owner, CallContext context) = 0;
  virtual Task<Result<BucketInfo>> head_bucket(std::string name, CallContext context) = 0;
  virtual Task<Result<void>> remove_bucket(std::string name, CallContext context) = 0;
  virtual Task<Result<std::vector<BucketInfo>>> list_buckets(CallContext context) = 0;

  // Objects. not_found with message "bucket" when the bucket is missing, "key" when the key is.
  virtual Task<Result<std::unique_ptr<Writer>>> put(std::string bucket, std::string key, CallContext context) = 0;
  virtual Task<Result<ObjectInfo>> head(std::string bucket, std::string key, CallContext context) = 0;
  // `chooser` outlives the call; none: the whole object.
  virtual Task<Result<std::unique_ptr<Reader>>> open(std::string bucket, std::string key, RangeChooser* chooser,
                                                     CallContext context) = 0;
  // Deleting what isn't there is ok (conditions apart).
  virtual Task<Result<void>> remove(std::string bucket, std::string key, WriteConditions conditions,
                                    CallContext context) = 0;
  virtual Task<Result<ListResult>> list(std::string bucket, ListQuery query, CallContext context) = 0;

  // Multipart uploads. not_found with message "upload" when the id is unknown for this key.
  struct UploadOptions {
    Attributes attributes{};
    std::string checksum_algorithm{};  // empty: none asked for
    std::string checksum_type{};       // "COMPOSITE", "FULL_OBJECT" or empty
  };
  virtual Task<Result<std::string>> create_upload(std::string bucket, std::string key, UploadOptions options,
                                                  CallContext context) = 0;
  virtual Task<Result<UploadOptions>> head_upload(std::string bucket, std::string key, std::string upload_id,
                                                  CallContext context) = 0;
  virtual Task<Result<std::unique_ptr<Writer>>> put_part(std::string bucket, std::string key, std::string upload_id,
                                                         uint32_t number, CallContext context) = 0;
  // Ascending by number, those greater than `after`, at most `limit`; `more` tells whether others follow.
  struct PartList {
    std::vector<PartInfo> parts{};
    bool more = false;
  };
  virtual Task<Result<PartList>> list_parts(std::string bucket, std::string key, std::string upload_id, uint32_t after,
                                            size_t limit, CallContext context) = 0;
  struct Completion {
    std::vector<PartInfo> parts{};  // number and etag as the client named them (checksum where it sent one)
    std::string etag{};
    std::optional<Checksum> checksum{};
    WriteConditions conditions{};
  };
  // The parts named become the object, atomically; the others are discarded. A repeat of a completed upload with the
  // same parts returns the same result as long as the object stands. invalid_argument with message "part N" when a part
  // is missing or its ETag differs.
  virtual Task<Result<ObjectInfo>> complete_upload(std::string bucket, std::string key, std::string upload_id,
                                                   Completion completion, CallContext context) = 0;
  virtual Task<Result<void>> abort_upload(std::string bucket, std::string key, std::string upload_id,
                                          CallContext context) = 0;
  struct UploadQuery {
    std::string prefix{};
    std::string delimiter{};
    std::string key_marker{};
    std::string upload_id_marker{};
    size_t max_uploads = 1000;
  };
  struct UploadList {
    std::vector<UploadInfo> uploads{};  // by key, then by time
    std::vector<std::string> common_prefixes{};
    bool truncated = false;
    std::string next_key_marker{};
    std::string next_upload_id_marker{};
  };
  virtual Task<Result<UploadList>> list_uploads(std::string bucket, UploadQuery query, CallContext context) = 0;

  // Access keys, kept in the system group. get_secret is cached for a few seconds.
  struct AccessKey {
    std::string access_key{};
    std::string secret_key{};
    int64_t created_unix_ns = 0;
    std::string note{};
  };
  virtual Task<Result<void>> put_access_key(AccessKey key, CallContext context) = 0;  // already_exists
  virtual Task<Result<AccessKey>> get_access_key(std::string access_key, CallContext context) = 0;
  virtual Task<Result<void>> remove_access_key(std::string access_key, CallContext context) = 0;
  virtual Task<Result<std::vector<AccessKey>>> list_access_keys(CallContext context) = 0;
};

}  // namespace cairn::object
