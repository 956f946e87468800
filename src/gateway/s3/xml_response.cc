#include "gateway/s3/xml_response.h"

#include <fmt/format.h>

#include "gateway/http/date.h"
#include "gateway/s3/uri.h"
#include "gateway/s3/xml_writer.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

std::string quoted(std::string_view etag) { return fmt::format("\"{}\"", etag); }

// Keys and what is derived from them, in the encoding that the client asked for.
class NameEncoder {
 public:
  explicit NameEncoder(bool url) : url_(url) {}
  std::string operator()(std::string_view name) const { return url_ ? uri_encode(name, true) : std::string(name); }

 private:
  bool url_;
};

void write_owner(XmlWriter& xml, std::string_view tag, std::string_view owner) {
  xml.open(tag);
  xml.element("ID", owner);
  xml.element("DisplayName", owner);
  xml.close();
}

void write_checksum(XmlWriter& xml, const std::optional<object::Checksum>& checksum) {
  if (!checksum) return;
  xml.element("Checksum" + checksum->algorithm, checksum->value);
  xml.element("ChecksumType", checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
}

void write_object(XmlWriter& xml, const ListView& view, const object::ObjectInfo& info, const NameEncoder& name,
                  bool as_version) {
  xml.open(as_version ? "Version" : "Contents");
  xml.element("Key", name(info.key));
  if (as_version) {
    xml.element("VersionId", "null");
    xml.element("IsLatest", true);
  }
  xml.element("LastModified", http::format_iso8601_ms(info.modified_unix_ns));
  xml.element("ETag", quoted(info.etag));
  if (info.checksum) {
    xml.element("ChecksumAlgorithm", info.checksum->algorithm);
    xml.element("ChecksumType", info.checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
  }
  xml.element("Size", info.size);
  if (view.fetch_owner) write_owner(xml, "Owner", view.owner);
  xml.element("StorageClass", "STANDARD");
  xml.close();
}

void write_prefixes(XmlWriter& xml, const std::vector<std::string>& prefixes, const NameEncoder& name) {
  for (const std::string& prefix : prefixes) {
    xml.open("CommonPrefixes");
    xml.element("Prefix", name(prefix));
    xml.close();
  }
}

void write_position_v1(XmlWriter& xml, const ListView& view, const object::ListResult& result,
                       const NameEncoder& name) {
  xml.element("Marker", name(view.marker));
  // Clients without a delimiter go on from the last key; with one, the last entry may be a prefix.
  if (result.truncated) xml.element("NextMarker", name(result.next));
}

void write_position_v2(XmlWriter& xml, const ListView& view, const object::ListResult& result,
                       const NameEncoder& name) {
  xml.element("KeyCount", static_cast<uint64_t>(result.objects.size() + result.common_prefixes.size()));
  if (!view.continuation_token.empty()) xml.element("ContinuationToken", view.continuation_token);
  if (!view.start_after.empty()) xml.element("StartAfter", name(view.start_after));
  if (result.truncated) xml.element("NextContinuationToken", view.next_token);
}

}  // namespace

std::string render_error(const S3Error& error, std::string_view resource, std::string_view request_id,
                         std::string_view host_id) {
  // Errors have no namespace.
  std::string out(kDeclaration);
  const auto add = [&](std::string_view name, std::string_view text) {
    out.append("<").append(name).append(">");
    append_xml_text(out, text);
    out.append("</").append(name).append(">");
  };
  out.append("<Error>");
  add("Code", error.name());
  add("Message", error.message());
  add("Resource", resource);
  add("RequestId", request_id);
  add("HostId", host_id);
  out.append("</Error>");
  return out;
}

std::string render_buckets(const BucketsView& view) {
  XmlWriter xml("ListAllMyBucketsResult");
  write_owner(xml, "Owner", view.owner);
  if (!view.prefix.empty()) xml.element("Prefix", view.prefix);
  if (!view.next_token.empty()) xml.element("ContinuationToken", view.next_token);
  xml.open("Buckets");
  for (const auto& bucket : view.buckets) {
    xml.open("Bucket");
    xml.element("Name", bucket.name);
    xml.element("CreationDate", http::format_iso8601_ms(bucket.created_unix_ns));
    xml.close();
  }
  return std::move(xml).finish();
}

std::string render_location(std::string_view region) {
  // us-east-1 is told as an empty constraint, which is what clients of that region expect.
  std::string out(kDeclaration);
  out.append("<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  if (region != "us-east-1") append_xml_text(out, region);
  out.append("</LocationConstraint>");
  return out;
}

std::string render_list(const ListView& view, const object::ListResult& result) {
  const NameEncoder name(view.url_encoding);
  XmlWriter xml("ListBucketResult");
  xml.element("Name", view.bucket);
  xml.element("Prefix", name(view.query.prefix));
  if (view.version == 1) {
    write_position_v1(xml, view, result, name);
  } else {
    write_position_v2(xml, view, result, name);
  }
  xml.element("MaxKeys", static_cast<uint64_t>(view.query.max_keys));
  if (!view.query.delimiter.empty()) xml.element("Delimiter", name(view.query.delimiter));
  xml.element("IsTruncated", result.truncated);
  for (const auto& info : result.objects) write_object(xml, view, info, name, false);
  write_prefixes(xml, result.common_prefixes, name);
  if (view.url_encoding) xml.element("EncodingType", "url");
  return std::move(xml).finish();
}

std::string render_versions(const ListView& view, const object::ListResult& result) {
  const NameEncoder name(view.url_encoding);
  XmlWriter xml("ListVersionsResult");
  xml.element("Name", view.bucket);
  xml.element("Prefix", name(view.query.prefix));
  xml.element("KeyMarker", name(view.marker));
  xml.element("VersionIdMarker", "");
  if (result.truncated) {
    xml.element("NextKeyMarker", name(result.next));
    xml.element("NextVersionIdMarker", "null");
  }
  xml.element("MaxKeys", static_cast<uint64_t>(view.query.max_keys));
  if (!view.query.delimiter.empty()) xml.element("Delimiter", name(view.query.delimiter));
  xml.element("IsTruncated", result.truncated);
  for (const auto& info : result.objects) write_object(xml, view, info, name, true);
  write_prefixes(xml, result.common_prefixes, name);
  if (view.url_encoding) xml.element("EncodingType", "url");
  return std::move(xml).finish();
}

std::string render_initiate_upload(std::string_view bucket, std::string_view key, std::string_view upload_id) {
  XmlWriter xml("InitiateMultipartUploadResult");
  xml.element("Bucket", bucket);
  xml.element("Key", key);
  xml.element("UploadId", upload_id);
  return std::move(xml).finish();
}

std::string render_complete_upload(std::string_view location, std::string_view bucket, std::string_view key,
                                   std::string_view etag, const std::optional<object::Checksum>& checksum,
                                   bool declaration) {
  XmlWriter xml("CompleteMultipartUploadResult");
  xml.element("Location", location);
  xml.element("Bucket", bucket);
  xml.element("Key", key);
  xml.element("ETag", quoted(etag));
  write_checksum(xml, checksum);
  std::string out = std::move(xml).finish();
  return declaration ? out : out.substr(kDeclaration.size());
}

std::string render_copy(std::string_view root, std::string_view etag, int64_t modified_unix_ns,
                        const std::optional<object::Checksum>& checksum) {
  XmlWriter xml(root);
  xml.element("LastModified", http::format_iso8601_ms(modified_unix_ns));
  xml.element("ETag", quoted(etag));
  write_checksum(xml, checksum);
  return std::move(xml).finish();
}

std::string render_parts(const PartsView& view, const object::ObjectStore::PartList& parts) {
  const NameEncoder name(view.url_encoding);
  XmlWriter xml("ListPartsResult");
  xml.element("Bucket", view.bucket);
  xml.element("Key", name(view.key));
  xml.element("UploadId", view.upload_id);
  write_owner(xml, "Initiator", view.owner);
  write_owner(xml, "Owner", view.owner);
  xml.element("StorageClass", "STANDARD");
  xml.element("PartNumberMarker", uint64_t{view.after});
  if (parts.more) xml.element("NextPartNumberMarker", uint64_t{parts.parts.back().number});
  xml.element("MaxParts", view.max_parts);
  xml.element("IsTruncated", parts.more);
  if (!view.checksum_algorithm.empty()) xml.element("ChecksumAlgorithm", view.checksum_algorithm);
  if (!view.checksum_type.empty()) xml.element("ChecksumType", view.checksum_type);
  if (view.url_encoding) xml.element("EncodingType", "url");
  for (const auto& part : parts.parts) {
    xml.open("Part");
    xml.element("PartNumber", uint64_t{part.number});
    xml.element("LastModified", http::format_iso8601_ms(part.modified_unix_ns));
    xml.element("ETag", quoted(part.etag));
    xml.element("Size", part.size);
    if (part.checksum) xml.element("Checksum" + part.checksum->algorithm, part.checksum->value);
    xml.close();
  }
  return std::move(xml).finish();
}

std::string render_uploads(const UploadsView& view, const object::ObjectStore::UploadList& uploads) {
  const NameEncoder name(view.url_encoding);
  XmlWriter xml("ListMultipartUploadsResult");
  xml.element("Bucket", view.bucket);
  xml.element("KeyMarker", name(view.query.key_marker));
  xml.element("UploadIdMarker", view.query.upload_id_marker);
  if (uploads.truncated) {
    xml.element("NextKeyMarker", name(uploads.next_key_marker));
    xml.element("NextUploadIdMarker", uploads.next_upload_id_marker);
  }
  xml.element("Prefix", name(view.query.prefix));
  if (!view.query.delimiter.empty()) xml.element("Delimiter", name(view.query.delimiter));
  xml.element("MaxUploads", static_cast<uint64_t>(view.query.max_uploads));
  xml.element("IsTruncated", uploads.truncated);
  if (view.url_encoding) xml.element("EncodingType", "url");
  for (const auto& upload : uploads.uploads) {
    xml.open("Upload");
    xml.element("Key", name(upload.key));
    xml.element("UploadId", upload.upload_id);
    write_owner(xml, "Initiator", view.owner);
    write_owner(xml, "Owner", view.owner);
    xml.element("StorageClass", "STANDARD");
    xml.element("Initiated", http::format_iso8601_ms(upload.initiated_unix_ns));
    xml.close();
  }
  write_prefixes(xml, uploads.common_prefixes, name);
  return std::move(xml).finish();
}

std::string render_delete(const std::vector<DeleteOutcome>& outcomes, bool quiet) {
  XmlWriter xml("DeleteResult");
  for (const auto& outcome : outcomes) {
    if (outcome.error) {
      xml.open("Error");
      xml.element("Key", outcome.key);
      xml.element("Code", outcome.error->name());
      xml.element("Message", outcome.error->message());
      xml.close();
    } else if (!quiet) {
      xml.open("Deleted");
      xml.element("Key", outcome.key);
      xml.close();
    }
  }
  return std::move(xml).finish();
}

std::string render_acl(std::string_view owner) {
  XmlWriter xml("AccessControlPolicy");
  write_owner(xml, "Owner", owner);
  xml.open("AccessControlList");
  xml.open("Grant");
  xml.raw("<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">");
  xml.element("ID", owner);
  xml.element("DisplayName", owner);
  xml.raw("</Grantee>");
  xml.element("Permission", "FULL_CONTROL");
  return std::move(xml).finish();
}

}  // namespace cairn::s3
