#include "gateway/s3/put_operations.h"

#include "base/hex.h"
#include "gateway/s3/attributes.h"
#include "gateway/s3/conditions.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/part_number.h"
#include "gateway/s3/payload.h"
#include "gateway/s3/writer_pump.h"

namespace cairn::s3 {
namespace {

std::string hex_of(std::string_view raw) { return to_hex(std::as_bytes(std::span(raw))); }

void set_result_headers(Call& call, const object::ObjectInfo& info) {
  call.response.set_header("ETag", "\"" + info.etag + "\"");
  if (!info.checksum) return;
  const auto kind = checksum_by_name(info.checksum->algorithm);
  if (!kind) return;
  call.response.set_header(checksum_info(*kind).header, info.checksum->value);
  call.response.set_header("x-amz-checksum-type", info.checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
}

// A condition that fails already needn't cost the client its upload. The commit checks it again, atomically.
Task<S3Result<void>> check_early(Call& call, const object::WriteConditions& conditions) {
  if (!conditions.if_none_match_any && !conditions.if_match) co_return S3Result<void>();
  const auto info = co_await call.store().head(call.bucket, call.key, call.context());
  if (!info) {
    if (info.code() == Errc::not_found && !conditions.if_match) co_return S3Result<void>();
    co_return to_s3_error(info.error());
  }
  if (conditions.if_none_match_any) co_return Code::PreconditionFailed;
  if (*conditions.if_match != "*" && *conditions.if_match != info->etag) co_return Code::PreconditionFailed;
  co_return S3Result<void>();
}

// Body into writer, then commit.
Answer store_payload(Call& call, Payload& payload, object::Writer& writer, object::Writer::Commit commit) {
  auto pumped = co_await pump_payload(payload, writer);
  if (!pumped) {
    co_await writer.abort();
    co_return pumped;
  }
  commit.etag = hex_of(payload.md5());
  commit.checksum = payload.checksum();
  const auto info = co_await writer.commit(std::move(commit));
  if (!info) co_return to_s3_error(info.error());
  set_result_headers(call, *info);
  co_return co_await send_nothing(call, 200);
}

}  // namespace

Answer put_object(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  object::Writer::Commit commit;
  CO_TRY(commit.attributes, attributes_of(call.request.headers()));
  CO_TRY(commit.conditions, write_conditions(call.request.headers()));
  CO_TRY(auto payload, Payload::of_call(call, {.max_bytes = kMaxPutBytes}));
  CO_TRY(co_await check_early(call, commit.conditions));
  auto writer = co_await call.store().put(call.bucket, call.key, stream_context(call));
  if (!writer) co_return to_s3_error(writer.error());
  co_return co_await store_payload(call, *payload, **writer, std::move(commit));
}

Answer upload_part(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  CO_TRY(const auto number, part_number_of(call.query));
  if (!number) co_return S3Error(Code::InvalidArgument, "UploadPart needs a partNumber.");
  const std::string upload_id(parameter(call.query, "uploadId"));
  const auto options = co_await call.store().head_upload(call.bucket, call.key, upload_id, call.context());
  if (!options) co_return to_s3_error(options.error());
  // An upload that asked for a checksum gets it for every part, sent by the client or not: it needs them all.
  CO_TRY(auto payload, Payload::of_call(call, {.checksum = checksum_by_name(options->checksum_algorithm),
                                               .max_bytes = kMaxPutBytes}));
  auto writer = co_await call.store().put_part(call.bucket, call.key, upload_id, *number, stream_context(call));
  if (!writer) co_return to_s3_error(writer.error());
  co_return co_await store_payload(call, *payload, **writer, {});
}

}  // namespace cairn::s3
