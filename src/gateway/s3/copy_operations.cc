#include <optional>

#include "gateway/s3/attributes.h"
#include "gateway/s3/conditions.h"
#include "gateway/s3/late_answer.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/part_number.h"
#include "gateway/s3/put_operations.h"
#include "gateway/s3/range.h"
#include "gateway/s3/writer_pump.h"
#include "gateway/s3/xml_response.h"

namespace cairn::s3 {
namespace {

// Judges the source when it is opened: conditions, range, size.
class SourceChooser final : public object::RangeChooser {
 public:
  SourceChooser(const http::Headers& headers, bool with_range) : headers_(headers), with_range_(with_range) {}

  Result<object::ByteRange> choose(const object::ObjectInfo& info) override {
    auto range = judge(info);
    if (range) return *range;
    refusal_ = range.error();
    return Error(Errc::condition_failed, "refused by the gateway");
  }
  const std::optional<S3Error>& refusal() const { return refusal_; }

 private:
  S3Result<object::ByteRange> judge(const object::ObjectInfo& info) const {
    const auto conditions = ReadConditions::of_copy_source(headers_);
    if (conditions.judge(info.etag, info.modified_unix_ns) != Verdict::proceed) return Code::PreconditionFailed;
    object::ByteRange range{0, info.size};
    if (const auto header = headers_.get("x-amz-copy-source-range"); header && with_range_) {
      TRY(range, parse_copy_range(*header, info.size));
    }
    if (range.length > kMaxPutBytes) {
      return S3Error(
          Code::InvalidRequest,
          "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120");
    }
    return range;
  }

  const http::Headers& headers_;
  bool with_range_;
  std::optional<S3Error> refusal_;
};

struct Opened {
  CopySource source;
  std::unique_ptr<object::Reader> reader;
};

Task<S3Result<Opened>> open_source(Call& call, bool with_range) {
  CO_TRY(auto source, parse_copy_source(call.request.headers().value("x-amz-copy-source")));
  CO_TRY(co_await check_bucket_owner(call, source.bucket, "x-amz-source-expected-bucket-owner"));
  SourceChooser chooser(call.request.headers(), with_range);
  auto reader = co_await call.store().open(source.bucket, source.key, &chooser, stream_context(call));
  if (reader) co_return Opened{std::move(source), *std::move(reader)};
  if (chooser.refusal()) co_return *chooser.refusal();
  co_return to_s3_error(reader.error());
}

S3Result<std::optional<ChecksumKind>> requested_checksum(const Call& call, const object::ObjectInfo& source) {
  std::optional<ChecksumKind> kind;
  if (const auto named = call.request.headers().get("x-amz-checksum-algorithm")) {
    kind = checksum_by_name(*named);
    if (!kind) return S3Error(Code::InvalidRequest, "Checksum algorithm provided is unsupported.");
  } else if (source.checksum) {
    // The copy keeps the source's kind; its value is computed anew, over the whole.
    kind = checksum_by_name(source.checksum->algorithm);
  }
  return kind;
}

// COPY, the default, or REPLACE.
S3Result<bool> replaces_metadata(const Call& call) {
  const std::string_view directive = call.request.headers().value("x-amz-metadata-directive");
  if (directive.empty() || directive == "COPY") return false;
  if (directive == "REPLACE") return true;
  return S3Error(Code::InvalidArgument, "Unknown metadata directive.");
}

// What else than metadata makes a copy of an object onto itself worth while.
bool changes_something_else(const http::Headers& headers) {
  return headers.has("x-amz-storage-class") || headers.has("x-amz-checksum-algorithm") ||
         headers.has("x-amz-website-redirect-location");
}

// A copy under way, and what it will answer.
struct Copying {
  Call& call;
  Opened& from;
  object::Writer& writer;
  std::optional<ChecksumKind> checksum;
  object::Writer::Commit commit;
  std::string_view root;  // of the answer
};

Task<S3Result<std::string>> run_copy(Copying* work) {
  auto copied = co_await pump_object(work->call, *work->from.reader, work->writer, work->checksum);
  if (!copied) {
    co_await work->writer.abort();
    co_return std::move(copied).error();
  }
  work->commit.etag = copied->etag;
  work->commit.checksum = copied->checksum;
  const auto info = co_await work->writer.commit(std::move(work->commit));
  if (!info) co_return to_s3_error(info.error());
  co_return render_copy(work->root, info->etag, info->modified_unix_ns, info->checksum);
}

}  // namespace

Answer copy_object(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  CO_TRY(const bool replace, replaces_metadata(call));
  object::Writer::Commit commit;
  CO_TRY(commit.conditions, write_conditions(call.request.headers()));
  if (replace) {
    CO_TRY(commit.attributes, attributes_of(call.request.headers()));
  }
  CO_TRY(auto from, co_await open_source(call, false));
  if (!replace && !changes_something_else(call.request.headers()) && from.source.bucket == call.bucket &&
      from.source.key == call.key) {
    co_return S3Error(Code::InvalidRequest,
                      "This copy request is illegal because it is trying to copy an object to itself without changing "
                      "the object's metadata, storage class, website redirect location or encryption attributes.");
  }
  if (!replace) commit.attributes = from.reader->info().attributes;
  CO_TRY(const auto kind, requested_checksum(call, from.reader->info()));
  auto writer = co_await call.store().put(call.bucket, call.key, stream_context(call));
  if (!writer) co_return to_s3_error(writer.error());
  Copying work{call, from, **writer, kind, std::move(commit), "CopyObjectResult"};
  co_return co_await answer_late(call, &run_copy, &work);
}

Answer upload_part_copy(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  CO_TRY(const auto number, part_number_of(call.query));
  if (!number) co_return S3Error(Code::InvalidArgument, "UploadPartCopy needs a partNumber.");
  const std::string upload_id(parameter(call.query, "uploadId"));
  const auto options = co_await call.store().head_upload(call.bucket, call.key, upload_id, call.context());
  if (!options) co_return to_s3_error(options.error());
  CO_TRY(auto from, co_await open_source(call, true));
  auto writer = co_await call.store().put_part(call.bucket, call.key, upload_id, *number, stream_context(call));
  if (!writer) co_return to_s3_error(writer.error());
  Copying work{call, from, **writer, checksum_by_name(options->checksum_algorithm), {}, "CopyPartResult"};
  co_return co_await answer_late(call, &run_copy, &work);
}

}  // namespace cairn::s3
