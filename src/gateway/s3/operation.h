// Which operation a request asks for: one table of method, level and sub-resource.
// Reference: the requests of the Amazon S3 API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/s3/error.h"
#include "gateway/s3/uri.h"

namespace cairn::s3 {

enum class Operation : uint8_t {
  list_buckets,
  create_bucket,
  head_bucket,
  delete_bucket,
  list_objects,
  list_versions,
  list_uploads,
  delete_objects,
  bucket_subresource,  // the small GETs; subresources.h
  put_object,
  copy_object,
  get_object,
  head_object,
  get_attributes,
  delete_object,
  create_upload,
  upload_part,
  upload_part_copy,
  complete_upload,
  abort_upload,
  list_parts,
  object_subresource,
};
// As it stands in metrics and logs.
std::string_view operation_name(Operation operation);

struct Target {
  std::string_view method;
  bool has_bucket = false;
  bool has_key = false;
  bool has_copy_source = false;
};
// Errors: NotImplemented for a sub-resource that this server doesn't have (never the operation without it: PUT ?acl
// must not overwrite the object), MethodNotAllowed.
S3Result<Operation> route(const Target& target, const QueryParameters& query);
// What Allow says when route() gave MethodNotAllowed: "PUT, GET". RFC 9110, section 15.5.6.
std::string allowed_methods(const Target& target);

}  // namespace cairn::s3
