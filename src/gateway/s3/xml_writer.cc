#include "gateway/s3/xml_writer.h"

#include "base/assert.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The length of the UTF-8 sequence at the front of `text` if it is valid and a character of XML 1.0 (section 2.2), else
// 0.
size_t xml_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || first > 0xf4 || text.size() < size) return 0;
  uint32_t code = first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  return code == 0xfffe || code == 0xffff ? 0 : size;
}

}  // namespace

void append_xml_text(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t size = xml_character(text);
    if (size != 1) {
      out.append(size == 0 ? kReplacement : text.substr(0, size));
    } else {
      switch (text.front()) {
        case '&':
          out.append("&amp;");
          break;
        case '<':
          out.append("&lt;");
          break;
        case '>':
          out.append("&gt;");
          break;
        case '"':
          out.append("&quot;");
          break;
        case '\r':
          out.append("&#13;");
          break;  // a bare one would be read as a line feed
        default:
          out.push_back(text.front());
      }
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
}

XmlWriter::XmlWriter(std::string_view root) : out_("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n") {
  out_.append("<").append(root).append(" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  open_.emplace_back(root);
}

void XmlWriter::open(std::string_view name) {
  out_.append("<").append(name).append(">");
  open_.emplace_back(name);
}

void XmlWriter::close() {
  ASSERT(!open_.empty());
  out_.append("</").append(open_.back()).append(">");
  open_.pop_back();
}

void XmlWriter::element(std::string_view name, std::string_view text) {
  out_.append("<").append(name).append(">");
  append_xml_text(out_, text);
  out_.append("</").append(name).append(">");
}

std::string XmlWriter::finish() && {
  while (!open_.empty()) close();
  return std::move(out_);
}

}  // namespace cairn::s3
