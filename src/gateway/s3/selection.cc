#include "gateway/s3/selection.h"

#include <fmt/format.h>

#include <array>

#include "gateway/http/date.h"
#include "gateway/s3/attributes.h"
#include "gateway/s3/checksum.h"
#include "gateway/s3/conditions.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/range.h"

namespace cairn::s3 {
namespace {

// response-content-type=... of the query replaces the stored header.
struct Override {
  std::string_view parameter;
  std::string_view header;
};
constexpr std::array<Override, 6> kOverrides = {
    Override{"response-cache-control", "cache-control"},
    Override{"response-content-disposition", "content-disposition"},
    Override{"response-content-encoding", "content-encoding"},
    Override{"response-content-language", "content-language"},
    Override{"response-content-type", "content-type"},
    Override{"response-expires", "expires"},
};

void set_attributes(http::ResponseWriter& response, const object::Attributes& attributes,
                    const QueryParameters& query) {
  const auto overriding = [&](std::string_view header) -> std::string_view {
    for (const Override& entry : kOverrides) {
      if (http::equals_ignoring_case(entry.header, header)) return parameter(query, entry.parameter);
    }
    return {};
  };
  for (const auto& [name, value] : attribute_headers(attributes)) {
    if (overriding(name).empty()) response.set_header(name, value);
  }
  for (const Override& entry : kOverrides) {
    const std::string_view value = parameter(query, entry.parameter);
    if (!value.empty()) response.set_header(entry.header, value);
  }
}

}  // namespace

Result<object::ByteRange> Selection::choose(const object::ObjectInfo& info) {
  object_size_ = info.size;
  etag_ = info.etag;
  modified_unix_ns_ = info.modified_unix_ns;
  switch (ReadConditions::of_request(headers_).judge(info.etag, info.modified_unix_ns)) {
    case Verdict::not_modified:
      not_modified_ = true;
      return Error(Errc::condition_failed, "refused by the gateway");
    case Verdict::precondition_failed:
      refusal_.emplace(Code::PreconditionFailed);
      return Error(Errc::condition_failed, "refused by the gateway");
    case Verdict::proceed:
      break;
  }
  if (auto selected = select(info); !selected) {
    refusal_ = selected.error();
    return Error(Errc::condition_failed, "refused by the gateway");
  }
  return range_;
}

S3Result<void> Selection::select(const object::ObjectInfo& info) {
  range_ = {0, info.size};
  const auto header = headers_.get("range");
  if (part_) {
    if (header) return S3Error(Code::InvalidRequest, "Cannot specify both Range header and partNumber query parameter");
    return select_part(info);
  }
  if (!header || !range_applies(headers_, info.etag, info.modified_unix_ns)) return {};
  TRY(const auto range, parse_range(*header, info.size));
  if (!range) return {};
  range_ = *range;
  partial_ = true;
  return {};
}

S3Result<void> Selection::select_part(const object::ObjectInfo& info) {
  partial_ = true;
  // An object that came in one piece is its own first part.
  if (info.parts.empty() && *part_ == 1) {
    partial_ = info.size > 0;
    return {};
  }
  uint64_t offset = 0;
  for (const object::PartInfo& part : info.parts) {
    if (part.number == *part_) {
      range_ = {offset, part.size};
      partial_ = part.size > 0;
      return {};
    }
    offset += part.size;
  }
  return S3Error(Code::InvalidRange, "The requested partnumber is not satisfiable");
}

void Selection::identify(http::ResponseWriter& response, const object::ObjectInfo& info) {
  response.set_header("ETag", "\"" + info.etag + "\"");
  response.set_header("Last-Modified", http::format_http_date(info.modified_unix_ns / 1'000'000'000));
}

void Selection::describe(http::ResponseWriter& response, const object::ObjectInfo& info,
                         const QueryParameters& query) const {
  response.set_status(partial_ ? 206 : 200);
  identify(response, info);
  response.set_header("Accept-Ranges", "bytes");
  set_attributes(response, info.attributes, query);
  if (partial_) {
    response.set_header("Content-Range",
                        fmt::format("bytes {}-{}/{}", range_.offset, range_.offset + range_.length - 1, info.size));
  }
  if (part_ && !info.parts.empty()) response.set_header("x-amz-mp-parts-count", std::to_string(info.parts.size()));
  // The checksum is of the whole object: beside a part of its bytes, clients would hold it against those.
  if (!partial_ && info.checksum && http::equals_ignoring_case(headers_.value("x-amz-checksum-mode"), "ENABLED")) {
    if (const auto kind = checksum_by_name(info.checksum->algorithm)) {
      response.set_header(checksum_info(*kind).header, info.checksum->value);
      response.set_header("x-amz-checksum-type", info.checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
    }
  }
}

}  // namespace cairn::s3
