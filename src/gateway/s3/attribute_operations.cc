#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gateway/http/date.h"
#include "gateway/s3/get_operations.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/selection.h"
#include "gateway/s3/xml_writer.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kKnown[] = {"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"};

// x-amz-object-attributes: a list of what is wanted, perhaps in several fields.
S3Result<std::vector<std::string_view>> wanted_attributes(const http::Headers& headers) {
  std::vector<std::string_view> wanted;
  for (const auto& field : headers) {
    if (field.name != "x-amz-object-attributes") continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      const size_t comma = list.find(',');
      const std::string_view name = http::trim(list.substr(0, comma));
      if (std::ranges::find(kKnown, name) == std::end(kKnown)) {
        return S3Error(Code::InvalidArgument, "Invalid attribute name specified.");
      }
      wanted.push_back(name);
      list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    }
  }
  if (wanted.empty()) {
    return S3Error(Code::InvalidArgument,
                   "The x-amz-object-attributes header specifying the attributes to be "
                   "retrieved is either missing or empty.");
  }
  return wanted;
}

struct PartsPage {
  uint32_t after = 0;
  uint32_t limit = kMaxListKeys;
};
S3Result<PartsPage> page_of(const http::Headers& headers) {
  const auto number = [&](std::string_view name, uint32_t absent) -> S3Result<uint32_t> {
    const auto text = headers.get(name);
    if (!text) return absent;
    uint32_t value = 0;
    const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (problem != std::errc() || end != text->data() + text->size()) {
      return S3Error(Code::InvalidArgument, fmt::format("The header {} must be a number.", name));
    }
    return value;
  };
  PartsPage page;
  TRY(page.after, number("x-amz-part-number-marker", 0));
  TRY(page.limit, number("x-amz-max-parts", kMaxListKeys));
  page.limit = std::min<uint32_t>(page.limit, kMaxListKeys);
  return page;
}

void write_checksum(XmlWriter& xml, const object::Checksum& checksum) {
  xml.element("Checksum" + checksum.algorithm, checksum.value);
}

void write_parts(XmlWriter& xml, const object::ObjectInfo& info, const PartsPage& page) {
  xml.open("ObjectParts");
  xml.element("PartsCount", static_cast<uint64_t>(info.parts.size()));
  // S3 lists the parts themselves only when they have checksums of their own.
  const bool listed = !info.parts.empty() && info.parts.front().checksum.has_value();
  std::vector<const object::PartInfo*> shown;
  bool truncated = false;
  for (const object::PartInfo& part : info.parts) {
    if (!listed || part.number <= page.after) continue;
    if (shown.size() == page.limit) {
      truncated = true;
      break;
    }
    shown.push_back(&part);
  }
  if (listed) {
    xml.element("PartNumberMarker", uint64_t{page.after});
    if (truncated && !shown.empty()) xml.element("NextPartNumberMarker", uint64_t{shown.back()->number});
    xml.element("MaxParts", uint64_t{page.limit});
    xml.element("IsTruncated", truncated);
  }
  for (const object::PartInfo* part : shown) {
    xml.open("Part");
    xml.element("PartNumber", uint64_t{part->number});
    xml.element("Size", part->size);
    if (part->checksum) write_checksum(xml, *part->checksum);
    xml.close();
  }
  xml.close();
}

}  // namespace

Answer get_attributes(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_version_id(parameter(call.query, "versionId")));
  CO_TRY(const auto wanted, wanted_attributes(call.request.headers()));
  CO_TRY(const auto page, page_of(call.request.headers()));
  const auto info = co_await call.store().head(call.bucket, call.key, call.context());
  if (!info) co_return to_s3_error(info.error());
  const auto wants = [&](std::string_view name) { return std::ranges::find(wanted, name) != wanted.end(); };
  XmlWriter xml("GetObjectAttributesResponse");
  if (wants("ETag")) xml.element("ETag", info->etag);  // without quotes, unlike everywhere else
  if (wants("Checksum") && info->checksum) {
    xml.open("Checksum");
    write_checksum(xml, *info->checksum);
    xml.element("ChecksumType", info->checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
    xml.close();
  }
  if (wants("ObjectParts") && !info->parts.empty()) write_parts(xml, *info, page);
  if (wants("StorageClass")) xml.element("StorageClass", "STANDARD");
  if (wants("ObjectSize")) xml.element("ObjectSize", info->size);
  call.response.set_header("Last-Modified", http::format_http_date(info->modified_unix_ns / 1'000'000'000));
  co_return co_await send_xml(call, std::move(xml).finish());
}

}  // namespace cairn::s3
