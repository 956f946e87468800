// The XML bodies that S3 answers with. Plain values in, a document out; no input or output here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/s3/error.h"
#include "object/object_store.h"

namespace cairn::s3 {

std::string render_error(const S3Error& error, std::string_view resource, std::string_view request_id,
                         std::string_view host_id);

struct BucketsView {
  std::string owner{};
  std::string prefix{};  // as asked
  std::vector<object::BucketInfo> buckets{};
  std::string next_token{};  // when there are more
};
std::string render_buckets(const BucketsView& view);
std::string render_location(std::string_view region);

struct ListView {
  int version = 2;  // 1: ListObjects, 2: ListObjectsV2
  std::string bucket;
  object::ListQuery query;
  bool url_encoding = false;  // encoding-type=url
  bool fetch_owner = true;    // V1 always does
  std::string owner;
  std::string marker;              // V1: as asked
  std::string continuation_token;  // V2: as asked
  std::string start_after;         // V2: as asked
  std::string next_token;          // V2: when truncated
};
std::string render_list(const ListView& view, const object::ListResult& result);
// ListObjectVersions of a bucket without versioning; view.marker is the key-marker.
std::string render_versions(const ListView& view, const object::ListResult& result);

std::string render_initiate_upload(std::string_view bucket, std::string_view key, std::string_view upload_id);
// Without the XML declaration when `declaration` is false: it was sent ahead, with blanks, to keep the connection
// alive.
std::string render_complete_upload(std::string_view location, std::string_view bucket, std::string_view key,
                                   std::string_view etag, const std::optional<object::Checksum>& checksum,
                                   bool declaration);
// `root`: "CopyObjectResult" or "CopyPartResult".
std::string render_copy(std::string_view root, std::string_view etag, int64_t modified_unix_ns,
                        const std::optional<object::Checksum>& checksum);

struct PartsView {
  std::string bucket;
  std::string key;
  std::string upload_id;
  std::string owner;
  uint32_t after = 0;
  uint64_t max_parts = 1000;
  bool url_encoding = false;
  std::string checksum_algorithm;
  std::string checksum_type;
};
std::string render_parts(const PartsView& view, const object::ObjectStore::PartList& parts);

struct UploadsView {
  std::string bucket;
  std::string owner;
  object::ObjectStore::UploadQuery query;
  bool url_encoding = false;
};
std::string render_uploads(const UploadsView& view, const object::ObjectStore::UploadList& uploads);

struct DeleteOutcome {
  std::string key;
  std::optional<S3Error> error;
};
std::string render_delete(const std::vector<DeleteOutcome>& outcomes, bool quiet);

// The owner's full control: what every bucket and object has while there are no other lists.
std::string render_acl(std::string_view owner);

}  // namespace cairn::s3
