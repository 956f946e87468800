#include "gateway/s3/subresources.h"

#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/xml_response.h"
#include "gateway/s3/xml_writer.h"

namespace cairn::s3 {
namespace {

struct NotConfigured {
  std::string_view name;
  Code code;
};
constexpr NotConfigured kNotConfigured[] = {
    {"cors", Code::NoSuchCORSConfiguration},
    {"encryption", Code::ServerSideEncryptionConfigurationNotFoundError},
    {"lifecycle", Code::NoSuchLifecycleConfiguration},
    {"object-lock", Code::ObjectLockConfigurationNotFoundError},
    {"ownershipControls", Code::OwnershipControlsNotFoundError},
    {"policy", Code::NoSuchBucketPolicy},
    {"policyStatus", Code::NoSuchBucketPolicy},
    {"publicAccessBlock", Code::NoSuchPublicAccessBlockConfiguration},
    {"replication", Code::ReplicationConfigurationNotFoundError},
    {"tagging", Code::NoSuchTagSet},
    {"website", Code::NoSuchWebsiteConfiguration},
};

// Configurations whose absence is an empty document.
struct Empty {
  std::string_view name;
  std::string_view root;
};
constexpr Empty kEmpty[] = {
    {"accelerate", "AccelerateConfiguration"},
    {"logging", "BucketLoggingStatus"},
    {"notification", "NotificationConfiguration"},
    {"versioning", "VersioningConfiguration"},
};

std::string render_request_payment() {
  XmlWriter xml("RequestPaymentConfiguration");
  xml.element("Payer", "BucketOwner");
  return std::move(xml).finish();
}

std::string render_no_tags() {
  XmlWriter xml("Tagging");
  xml.element("TagSet", "");
  return std::move(xml).finish();
}

}  // namespace

Answer bucket_subresource(Call& call) {
  auto bucket = co_await call.store().head_bucket(call.bucket, call.context());
  if (!bucket) co_return to_s3_error(bucket.error());
  for (const auto& [name, code] : kNotConfigured) {
    if (has_parameter(call.query, name)) co_return code;
  }
  for (const auto& [name, root] : kEmpty) {
    if (has_parameter(call.query, name)) co_return co_await send_xml(call, XmlWriter(root).finish());
  }
  if (has_parameter(call.query, "location")) {
    co_return co_await send_xml(call, render_location(call.environment.settings.region));
  }
  if (has_parameter(call.query, "acl")) co_return co_await send_xml(call, render_acl(bucket->owner));
  if (has_parameter(call.query, "requestPayment")) co_return co_await send_xml(call, render_request_payment());
  co_return Code::NotImplemented;
}

Answer object_subresource(Call& call) {
  CO_TRY(check_key(call.key));
  auto info = co_await call.store().head(call.bucket, call.key, call.context());
  if (!info) co_return to_s3_error(info.error());
  if (has_parameter(call.query, "acl")) co_return co_await send_xml(call, render_acl(call.owner()));
  if (has_parameter(call.query, "tagging")) co_return co_await send_xml(call, render_no_tags());
  co_return Code::NotImplemented;
}

}  // namespace cairn::s3
