#include "gateway/s3/xml_writer.h"

#include "base/assert.h"
#include "gateway/s3/utf8.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The bytes of the first character if XML 1.0 (section 2.2) has it, else 0.
size_t xml_character(std::string_view text) {
  const Utf8Character character = utf8_front(text);
  return is_xml_character(character.code) ? character.size : 0;
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
