#include "gateway/s3/xml_request.h"

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>

#include "gateway/s3/utf8.h"

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

// "amp;", "#38;", "#x26;": what may stand behind "&" without a document type; npos or its length.
size_t reference_size(std::string_view text) {
  constexpr size_t kLongest = 12;  // leading zeros included
  const size_t end = text.substr(0, kLongest + 1).find(';');
  if (end == std::string_view::npos) return std::string_view::npos;
  const std::string_view name = text.substr(0, end);
  for (const std::string_view known : {"amp", "lt", "gt", "quot", "apos"}) {
    if (name == known) return end + 1;
  }
  if (!name.starts_with('#')) return std::string_view::npos;
  const bool hexadecimal = name.starts_with("#x");
  const std::string_view digits = name.substr(hexadecimal ? 2 : 1);
  uint32_t code = 0;
  const auto [stop, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hexadecimal ? 16 : 10);
  if (problem != std::errc() || stop != digits.data() + digits.size()) return std::string_view::npos;
  return is_xml_character(code) ? end + 1 : std::string_view::npos;
}

// Where the markup at the front of `text` ends, if references have no meaning within: comments, CDATA, instructions.
size_t literal_size(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kLiterals[] = {
      {"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}};
  for (const auto& [begin, end] : kLiterals) {
    if (text.starts_with(begin)) return std::min(text.find(end, begin.size()), text.size());
  }
  return 1;
}

// What the parser is lenient about: it ends a text at a NUL, even at "&#0;", and keeps references that it doesn't know,
// so that "<Key>a&#0;b</Key>" would delete "a".
S3Result<void> check_characters(std::string_view body) {
  for (std::string_view rest = body; !rest.empty();) {
    const Utf8Character character = utf8_front(rest);
    if (character.size == 0) return malformed("not UTF-8");
    if (!is_xml_character(character.code)) return malformed("a character that XML doesn't have");
    rest.remove_prefix(character.size);
  }
  for (size_t at = body.find_first_of("&<"); at != std::string_view::npos; at = body.find_first_of("&<", at)) {
    if (body[at] == '<') {
      at += literal_size(body.substr(at));
      continue;
    }
    const size_t size = reference_size(body.substr(at + 1));
    if (size == std::string_view::npos) return malformed("\"&\" without one of XML's own references");
    at += 1 + size;
  }
  return {};
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

S3Result<void> load(std::string_view body, std::string_view root, pugi::xml_document& document) {
  if (body.size() > kMaxXmlBody) return Code::MaxMessageLengthExceeded;
  if (body.find("<!DOCTYPE") != std::string_view::npos || body.find("<!ENTITY") != std::string_view::npos) {
    return malformed("document types are not accepted");
  }
  TRY(check_characters(body));
  // Blanks are content here: keys may consist of them.
  const auto result =
      document.load_buffer(body.data(), body.size(), pugi::parse_default | pugi::parse_ws_pcdata | pugi::parse_fragment,
                           pugi::encoding_utf8);
  if (!result) return malformed(result.description());
  const pugi::xml_node element = document.document_element();
  if (!element || local_name(element) != root) return malformed("expected <" + std::string(root) + ">");
  // As a fragment the parser keeps what stands beside the root, for which XML has no place.
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() == pugi::node_element && node != element) return malformed("more than one root element");
    if (node.type() != pugi::node_element && !is_blank(node.value())) return malformed("text beside the root element");
  }
  return {};
}

// The text of an element that holds nothing else. CDATA sections and comments split it into several nodes.
S3Result<std::string> text_of(const pugi::xml_node& node) {
  std::string text;
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() == pugi::node_element)
      return malformed("unexpected element inside <" + std::string(node.name()) + ">");
    text += child.value();
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
    } else if (name == "LastModifiedTime" || name == "Size") {
      // Conditions: deleting without looking at them would delete what the client wants to keep.
      return S3Error(Code::NotImplemented,
                     "Deleting under conditions on size or time is not implemented by this server.");
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
