#include "gateway/s3/bucket_operations.h"

#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/payload.h"
#include "gateway/s3/put_operations.h"
#include "gateway/s3/xml_request.h"
#include "gateway/s3/xml_response.h"

namespace cairn::s3 {
namespace {

constexpr size_t kMaxConfigurationBody = 64 * 1024;

}  // namespace

Answer list_buckets(Call& call) {
  BucketsView view{.owner = call.owner(), .prefix = std::string(parameter(call.query, "prefix"))};
  const std::string_view after = parameter(call.query, "continuation-token");
  CO_TRY(const size_t limit, parse_count(call.query, "max-buckets", SIZE_MAX));
  auto all = co_await call.store().list_buckets(call.context());
  if (!all) co_return to_s3_error(all.error());
  for (object::BucketInfo& bucket : *all) {
    if (bucket.name <= after || !bucket.name.starts_with(view.prefix)) continue;
    if (view.buckets.size() == limit) {
      if (limit > 0) view.next_token = view.buckets.back().name;
      break;
    }
    view.buckets.push_back(std::move(bucket));
  }
  co_return co_await send_xml(call, render_buckets(view));
}

Answer create_bucket(Call& call) {
  CO_TRY(check_bucket_name(call.bucket));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  CO_TRY(auto body, co_await read_document(call, kMaxConfigurationBody, {.etag = false}));
  // Any region's name is taken: there is one place here, and clients insist on sending the one they are configured for.
  CO_TRY(parse_create_bucket(body));
  if (call.request.headers().value("x-amz-bucket-object-lock-enabled") == "true") {
    co_return S3Error(Code::NotImplemented, "Object lock is not implemented by this server.");
  }
  auto created = co_await call.store().create_bucket(call.bucket, call.owner(), call.context());
  if (!created) {
    if (created.code() != Errc::already_exists) co_return to_s3_error(created.error());
    auto existing = co_await call.store().head_bucket(call.bucket, call.context());
    const bool own = existing.has_value() && existing->owner == call.owner();
    co_return own ? Code::BucketAlreadyOwnedByYou : Code::BucketAlreadyExists;
  }
  call.response.set_header("Location", "/" + call.bucket);
  co_return co_await send_nothing(call, 200);
}

Answer head_bucket(Call& call) {
  auto bucket = co_await call.store().head_bucket(call.bucket, call.context());
  if (!bucket) co_return to_s3_error(bucket.error());
  call.response.set_header("x-amz-bucket-region", call.environment.settings.region);
  co_return co_await send_nothing(call, 200);
}

Answer delete_bucket(Call& call) {
  auto removed = co_await call.store().remove_bucket(call.bucket, call.context());
  if (!removed) {
    if (removed.code() == Errc::condition_failed) co_return Code::BucketNotEmpty;
    co_return to_s3_error(removed.error());
  }
  co_return co_await send_nothing(call);
}

Answer list_objects(Call& call) {
  CO_TRY(auto view, parse_list(call.query, call.bucket, call.owner()));
  auto result = co_await call.store().list(call.bucket, view.query, call.context());
  if (!result) co_return to_s3_error(result.error());
  if (result->truncated) view.next_token = make_token(*result);
  co_return co_await send_xml(call, render_list(view, *result));
}

Answer list_versions(Call& call) {
  // key-marker has the meaning of V1's marker.
  QueryParameters query = call.query;
  query.emplace_back("marker", parameter(call.query, "key-marker"));
  CO_TRY(auto view, parse_list(query, call.bucket, call.owner()));
  auto result = co_await call.store().list(call.bucket, view.query, call.context());
  if (!result) co_return to_s3_error(result.error());
  co_return co_await send_xml(call, render_versions(view, *result));
}

Answer list_uploads(Call& call) {
  CO_TRY(auto view, parse_uploads(call.query, call.bucket, call.owner()));
  auto uploads = co_await call.store().list_uploads(call.bucket, view.query, call.context());
  if (!uploads) co_return to_s3_error(uploads.error());
  co_return co_await send_xml(call, render_uploads(view, *uploads));
}

}  // namespace cairn::s3
