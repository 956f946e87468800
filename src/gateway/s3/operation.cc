#include "gateway/s3/operation.h"

#include <algorithm>
#include <array>

#include "gateway/s3/list_parameters.h"

namespace cairn::s3 {
namespace {

enum class Level : uint8_t { service, bucket, object };

struct Row {
  std::string_view method;
  Level level;
  std::string_view subresource;  // "" for none
  Operation operation;
};

constexpr Row kRows[] = {
    {"GET", Level::service, "", Operation::list_buckets},
    {"PUT", Level::bucket, "", Operation::create_bucket},
    {"HEAD", Level::bucket, "", Operation::head_bucket},
    {"DELETE", Level::bucket, "", Operation::delete_bucket},
    {"GET", Level::bucket, "", Operation::list_objects},
    {"GET", Level::bucket, "versions", Operation::list_versions},
    {"GET", Level::bucket, "uploads", Operation::list_uploads},
    {"POST", Level::bucket, "delete", Operation::delete_objects},
    {"GET", Level::bucket, "accelerate", Operation::bucket_subresource},
    {"GET", Level::bucket, "acl", Operation::bucket_subresource},
    {"GET", Level::bucket, "cors", Operation::bucket_subresource},
    {"GET", Level::bucket, "encryption", Operation::bucket_subresource},
    {"GET", Level::bucket, "lifecycle", Operation::bucket_subresource},
    {"GET", Level::bucket, "location", Operation::bucket_subresource},
    {"GET", Level::bucket, "logging", Operation::bucket_subresource},
    {"GET", Level::bucket, "notification", Operation::bucket_subresource},
    {"GET", Level::bucket, "object-lock", Operation::bucket_subresource},
    {"GET", Level::bucket, "ownershipControls", Operation::bucket_subresource},
    {"GET", Level::bucket, "policy", Operation::bucket_subresource},
    {"GET", Level::bucket, "policyStatus", Operation::bucket_subresource},
    {"GET", Level::bucket, "publicAccessBlock", Operation::bucket_subresource},
    {"GET", Level::bucket, "replication", Operation::bucket_subresource},
    {"GET", Level::bucket, "requestPayment", Operation::bucket_subresource},
    {"GET", Level::bucket, "tagging", Operation::bucket_subresource},
    {"GET", Level::bucket, "versioning", Operation::bucket_subresource},
    {"GET", Level::bucket, "website", Operation::bucket_subresource},
    {"PUT", Level::object, "", Operation::put_object},
    {"GET", Level::object, "", Operation::get_object},
    {"HEAD", Level::object, "", Operation::head_object},
    {"DELETE", Level::object, "", Operation::delete_object},
    {"GET", Level::object, "attributes", Operation::get_attributes},
    {"POST", Level::object, "uploads", Operation::create_upload},
    {"PUT", Level::object, "uploadId", Operation::upload_part},
    {"POST", Level::object, "uploadId", Operation::complete_upload},
    {"DELETE", Level::object, "uploadId", Operation::abort_upload},
    {"GET", Level::object, "uploadId", Operation::list_parts},
    {"GET", Level::object, "acl", Operation::object_subresource},
    {"GET", Level::object, "tagging", Operation::object_subresource},
};

// Every query parameter that names a sub-resource, ours or not; `append` is Ceph's. All others only refine an
// operation.
constexpr std::string_view kSubresources[] = {"abac",
                                              "accelerate",
                                              "acl",
                                              "analytics",
                                              "append",
                                              "attributes",
                                              "cors",
                                              "delete",
                                              "encryption",
                                              "intelligent-tiering",
                                              "inventory",
                                              "legal-hold",
                                              "lifecycle",
                                              "location",
                                              "logging",
                                              "metadataConfiguration",
                                              "metadataInventoryTable",
                                              "metadataJournalTable",
                                              "metadataTable",
                                              "metrics",
                                              "notification",
                                              "object-lock",
                                              "ownershipControls",
                                              "policy",
                                              "policyStatus",
                                              "publicAccessBlock",
                                              "renameObject",
                                              "replication",
                                              "requestPayment",
                                              "restore",
                                              "retention",
                                              "select",
                                              "session",
                                              "tagging",
                                              "torrent",
                                              "uploadId",
                                              "uploads",
                                              "versioning",
                                              "versions",
                                              "website"};

constexpr std::array<std::string_view, 22> kNames = {"ListBuckets",
                                                     "CreateBucket",
                                                     "HeadBucket",
                                                     "DeleteBucket",
                                                     "ListObjects",
                                                     "ListObjectVersions",
                                                     "ListMultipartUploads",
                                                     "DeleteObjects",
                                                     "BucketSubresource",
                                                     "PutObject",
                                                     "CopyObject",
                                                     "GetObject",
                                                     "HeadObject",
                                                     "GetObjectAttributes",
                                                     "DeleteObject",
                                                     "CreateMultipartUpload",
                                                     "UploadPart",
                                                     "UploadPartCopy",
                                                     "CompleteMultipartUpload",
                                                     "AbortMultipartUpload",
                                                     "ListParts",
                                                     "ObjectSubresource"};
static_assert(kNames.size() == static_cast<size_t>(Operation::object_subresource) + 1);

// Parameters that make a write mean something else than it would without them: a part whose upload got lost must not
// become the object, nor a version the current one.
S3Result<void> check_parameters(Operation operation, const QueryParameters& query) {
  const bool whole = operation == Operation::put_object || operation == Operation::copy_object;
  const bool writes = whole || operation == Operation::create_upload || operation == Operation::complete_upload ||
                      operation == Operation::upload_part || operation == Operation::upload_part_copy;
  if (whole && has_parameter(query, "partNumber")) {
    return S3Error(Code::InvalidArgument, "This operation does not accept a part number without an upload id.");
  }
  if (writes && has_parameter(query, "versionId")) {
    return S3Error(Code::InvalidArgument, "This operation does not accept a version-id.");
  }
  return {};
}

Level level_of(const Target& target) {
  if (!target.has_bucket) return Level::service;
  return target.has_key ? Level::object : Level::bucket;
}

Operation turned_into_copy(Operation operation) {
  if (operation == Operation::put_object) return Operation::copy_object;
  return operation == Operation::upload_part ? Operation::upload_part_copy : operation;
}

}  // namespace

std::string_view operation_name(Operation operation) { return kNames[static_cast<size_t>(operation)]; }

S3Result<Operation> route(const Target& target, const QueryParameters& query) {
  const Level level = level_of(target);
  std::string_view subresource;
  for (const std::string_view name : kSubresources) {
    if (!has_parameter(query, name)) continue;
    if (!subresource.empty()) {
      return S3Error(Code::InvalidArgument,
                     "Conflicting query parameters: " + std::string(subresource) + ", " + std::string(name));
    }
    subresource = name;
  }
  bool method_known = false;
  for (const Row& row : kRows) {
    if (row.level != level || row.subresource != subresource) continue;
    if (row.method != target.method) {
      method_known = true;
      continue;
    }
    const Operation operation = target.has_copy_source ? turned_into_copy(row.operation) : row.operation;
    TRY(check_parameters(operation, query));
    return operation;
  }
  if (!subresource.empty()) {
    return S3Error(Code::NotImplemented, std::string(target.method) + " ?" + std::string(subresource) +
                                             " is not implemented by this server.");
  }
  if (method_known || level == Level::service) return Code::MethodNotAllowed;
  return Code::NotImplemented;
}

std::string allowed_methods(const Target& target) {
  std::string methods;
  for (const Row& row : kRows) {
    if (row.level != level_of(target) || !row.subresource.empty()) continue;
    if (!methods.empty()) methods += ", ";
    methods += row.method;
  }
  return methods;
}

}  // namespace cairn::s3
