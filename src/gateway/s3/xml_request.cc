#include "gateway/s3/xml_request.h"

#include <charconv>
#include <pugixml.hpp>

namespace cairn::s3 {
namespace {

// Namespace prefixes are the client's choice.
std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

S3Error malformed(std::string_view what) {
  return S3Error(Code::MalformedXML,
                 std::string(code_info(Code::MalformedXML).message) + " (" + std::string(what) + ")");
}

S3Result<void> load(std::string_view body, std::string_view root, pugi::xml_document& document) {
  if (body.size() > kMaxXmlBody) return Code::MaxMessageLengthExceeded;
  if (body.find("<!DOCTYPE") != std::string_view::npos || body.find("<!ENTITY") != std::string_view::npos) {
    return malformed("document types are not accepted");
  }
  // Blanks are content here: keys may consist of them.
  const auto result = document.load_buffer(body.data(), body.size(), pugi::parse_default | pugi::parse_ws_pcdata_single,
                                           pugi::encoding_utf8);
  if (!result) return malformed(result.description());
  const pugi::xml_node element = document.document_element();
  if (!element || local_name(element) != root) return malformed("expected <" + std::string(root) + ">");
  // The parser accepts several roots; XML doesn't.
  for (pugi::xml_node next = element.next_sibling(); next; next = next.next_sibling()) {
    if (next.type() == pugi::node_element) return malformed("more than one root element");
  }
  return {};
}

// The text of an element that holds nothing else. The parser takes references to characters that XML forbids; we don't,
// since they would name something that no response could name back.
S3Result<std::string> text_of(const pugi::xml_node& node) {
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() == pugi::node_element)
      return malformed("unexpected element inside <" + std::string(node.name()) + ">");
  }
  std::string text = node.text().get();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') return malformed("a control character");
  }
  return text;
}

std::string without_quotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

S3Result<DeleteBody::Item> parse_item(const pugi::xml_node& object) {
  DeleteBody::Item item;
  bool has_key = false;
  for (const pugi::xml_node& child : object.children()) {
    if (child.type() != pugi::node_element) continue;
    const std::string_view name = local_name(child);
    TRY(auto text, text_of(child));
    if (name == "Key") {
      if (has_key || text.empty()) return malformed("each <Object> needs one <Key>");
      has_key = true;
      item.key = std::move(text);
    } else if (name == "VersionId") {
      item.version_id = std::move(text);
    } else if (name == "ETag") {
      item.etag = without_quotes(text);
    }
  }
  if (!has_key) return malformed("each <Object> needs one <Key>");
  return item;
}

S3Result<CompletedPart> parse_part(const pugi::xml_node& node) {
  CompletedPart part;
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() != pugi::node_element) continue;
    const std::string_view name = local_name(child);
    TRY(auto text, text_of(child));
    if (name == "PartNumber") {
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), part.number);
      if (problem != std::errc() || end != text.data() + text.size()) return malformed("<PartNumber> is not a number");
      if (part.number < 1 || part.number > kMaxPartNumber) {
        return S3Error(Code::InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive");
      }
    } else if (name == "ETag") {
      part.etag = without_quotes(text);
    } else if (name.starts_with("Checksum")) {
      if (const auto kind = checksum_by_name(name.substr(8))) part.checksum.emplace(*kind, std::move(text));
    }
  }
  if (part.number == 0 || part.etag.empty()) return malformed("each <Part> needs <PartNumber> and <ETag>");
  return part;
}

}  // namespace

S3Result<DeleteBody> parse_delete(std::string_view body) {
  pugi::xml_document document;
  TRY(load(body, "Delete", document));
  DeleteBody out;
  for (const pugi::xml_node& child : document.document_element().children()) {
    if (child.type() != pugi::node_element) continue;
    if (local_name(child) == "Quiet") {
      TRY(auto text, text_of(child));
      out.quiet = text == "true" || text == "1";
    } else if (local_name(child) == "Object") {
      if (out.items.size() == kMaxDeleteKeys) return malformed("more than 1,000 keys");
      TRY(auto item, parse_item(child));
      out.items.push_back(std::move(item));
    } else {
      return malformed("unexpected element");
    }
  }
  if (out.items.empty()) return malformed("no keys");
  return out;
}

S3Result<std::vector<CompletedPart>> parse_complete_upload(std::string_view body) {
  pugi::xml_document document;
  TRY(load(body, "CompleteMultipartUpload", document));
  std::vector<CompletedPart> parts;
  for (const pugi::xml_node& child : document.document_element().children()) {
    if (child.type() != pugi::node_element) continue;
    if (local_name(child) != "Part") return malformed("unexpected element");
    if (parts.size() == kMaxPartNumber) return malformed("more than 10,000 parts");
    TRY(auto part, parse_part(child));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return malformed("no parts");
  return parts;
}

S3Result<std::string> parse_create_bucket(std::string_view body) {
  if (body.empty()) return std::string();
  pugi::xml_document document;
  TRY(load(body, "CreateBucketConfiguration", document));
  for (const pugi::xml_node& child : document.document_element().children()) {
    if (local_name(child) == "LocationConstraint") return text_of(child);
  }
  return std::string();
}

}  // namespace cairn::s3
