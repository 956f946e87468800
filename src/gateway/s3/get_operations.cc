#include "gateway/s3/get_operations.h"

#include <fmt/format.h>

#include "base/log.h"
#include "gateway/http/date.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/part_number.h"
#include "gateway/s3/selection.h"
#include "gateway/s3/writer_pump.h"

namespace cairn::s3 {
namespace {

// 304, 412 or 416, with what RFC 9110 wants beside them.
Answer answer_refusal(Call& call, const Selection& selection) {
  if (selection.not_modified()) {
    call.response.set_status(304);
    call.response.set_header("ETag", "\"" + selection.etag() + "\"");
    call.response.set_header("Last-Modified", http::format_http_date(selection.modified_unix_ns() / 1'000'000'000));
    (void)co_await call.response.send_no_body();
    co_return S3Result<void>();
  }
  if (selection.refusal()->code() == Code::InvalidRange) {
    call.response.set_header("Content-Range", fmt::format("bytes */{}", selection.object_size()));
  }
  co_return *selection.refusal();
}

}  // namespace

Answer get_object(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_version_id(parameter(call.query, "versionId")));
  CO_TRY(const auto part, part_number_of(call.query));
  Selection selection(call.request.headers(), part);
  auto opened = co_await call.store().open(call.bucket, call.key, &selection, stream_context(call));
  if (!opened) {
    if (selection.refused()) co_return co_await answer_refusal(call, selection);
    co_return to_s3_error(opened.error());
  }
  object::Reader& reader = **opened;
  // The first piece is there before anything is promised: what can't be read is told by a status.
  mem::BufChain piece;
  if (selection.length() > 0) {
    auto first = co_await reader.next();
    if (!first) co_return to_s3_error(first.error());
    piece = *std::move(first);
  }
  selection.describe(call.response, reader.info(), call.query);
  if (piece.size() == selection.length()) {
    (void)co_await call.response.send(std::move(piece));
    co_return S3Result<void>();
  }
  (void)co_await call.response.begin(selection.length());
  while (!piece.empty()) {
    if (!co_await call.response.write(std::move(piece))) co_return S3Result<void>();
    auto next = co_await reader.next();
    if (!next) {
      LOG(error, "s3: {} GET {} is cut short: {}", call.request_id, call.resource(), next.error().to_string());
      call.response.abort();
      co_return S3Result<void>();
    }
    piece = *std::move(next);
  }
  (void)co_await call.response.finish();
  co_return S3Result<void>();
}

Answer head_object(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_version_id(parameter(call.query, "versionId")));
  CO_TRY(const auto part, part_number_of(call.query));
  const auto info = co_await call.store().head(call.bucket, call.key, call.context());
  if (!info) co_return to_s3_error(info.error());
  Selection selection(call.request.headers(), part);
  if (!selection.judge(*info)) co_return co_await answer_refusal(call, selection);
  selection.describe(call.response, *info, call.query);
  (void)co_await call.response.send_head_only(selection.length());
  co_return S3Result<void>();
}

}  // namespace cairn::s3
