// Buckets.
#include <fmt/format.h>

#include "admin/api_routes.h"
#include "gateway/s3/names.h"

namespace cairn::admin {
namespace {

using nlohmann::json;

json to_json(const object::BucketInfo& bucket) {
  return {{"name", bucket.name}, {"owner", bucket.owner}, {"created_unix_ns", bucket.created_unix_ns}};
}

Error no_bucket(std::string_view name) { return Error(Errc::not_found, fmt::format("no bucket '{}'", name)); }

}  // namespace

Task<Response> Api::list_buckets(const Call&) {
  const auto buckets = co_await context_.objects.list_buckets(call_context());
  if (!buckets) co_return error_response(buckets.error());
  json list = json::array();
  for (const auto& bucket : *buckets) list.push_back(to_json(bucket));
  co_return json_response({{"buckets", std::move(list)}});
}

Task<Response> Api::create_bucket(const Call& call) {
  const auto body = parse_body(call.request, {"name"});
  if (!body) co_return error_response(body.error());
  const auto name = text_member(*body, "name", 255);
  if (!name) co_return error_response(name.error());
  if (const auto valid = s3::check_bucket_name(*name); !valid) {
    co_return error_response(Error(Errc::invalid_argument, std::string(valid.error().message())));
  }
  const auto created = co_await context_.objects.create_bucket(*name, "", call_context());
  if (created.code() == Errc::already_exists) {
    co_return error_response(Error(Errc::already_exists, fmt::format("bucket '{}' exists already", *name)));
  }
  if (!created) co_return error_response(created.error());
  co_return json_response(to_json(*created), 201);
}

Task<Response> Api::show_bucket(const Call& call) {
  const auto count = flag_parameter(call.request, "count");
  if (!count) co_return error_response(count.error());
  const std::string name(call.argument);
  const auto bucket = co_await context_.objects.head_bucket(name, call_context());
  if (bucket.code() == Errc::not_found) co_return error_response(no_bucket(name));
  if (!bucket) co_return error_response(bucket.error());
  json answer = to_json(*bucket);
  if (*count) {
    uint64_t objects = 0;
    uint64_t bytes = 0;
    object::ListQuery query;
    for (;;) {
      const auto page = co_await context_.objects.list(name, query, call_context());
      if (page.code() == Errc::not_found) co_return error_response(no_bucket(name));
      if (!page) co_return error_response(page.error());
      for (const auto& info : page->objects) bytes += info.size;
      objects += page->objects.size();
      if (!page->truncated) break;
      query.start_after = page->next;
    }
    answer["objects"] = objects;
    answer["bytes"] = bytes;
  }
  co_return json_response(answer);
}

Task<Response> Api::delete_bucket(const Call& call) {
  const std::string name(call.argument);
  const auto removed = co_await context_.objects.remove_bucket(name, call_context());
  if (removed.code() == Errc::not_found) co_return error_response(no_bucket(name));
  if (removed.code() == Errc::condition_failed) {
    co_return error_response(
        Error(Errc::condition_failed, fmt::format("bucket '{}' is not empty; delete its objects first", name)));
  }
  if (!removed) co_return error_response(removed.error());
  co_return json_response({{"deleted", name}});
}

}  // namespace cairn::admin
