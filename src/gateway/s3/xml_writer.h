// Writes XML without a tree: elements in order, text escaped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::s3 {

class XmlWriter {
 public:
  // Starts the document with its root element in S3's namespace.
  explicit XmlWriter(std::string_view root);

  void open(std::string_view name);
  void close();
  // <name>text</name>. Characters that XML 1.0 can't carry, and bytes that aren't UTF-8, become U+FFFD: a reader must
  // be able to parse the rest. Clients that have such keys ask for encoding-type=url.
  void element(std::string_view name, std::string_view text);
  void element(std::string_view name, const std::string& text) { element(name, std::string_view(text)); }
  void element(std::string_view name, const char* text) { element(name, std::string_view(text)); }
  void element(std::string_view name, bool value) { element(name, value ? "true" : "false"); }
  void element(std::string_view name, uint64_t value) { element(name, std::to_string(value)); }
  // Markup as it is.
  void raw(std::string_view markup) { out_.append(markup); }

  // Closes what is open and returns the document.
  std::string finish() &&;

 private:
  std::string out_;
  std::vector<std::string> open_;
};

// Appends `text` with &, <, >, quotes and carriage returns escaped, and with what XML can't carry replaced.
void append_xml_text(std::string& out, std::string_view text);

}  // namespace cairn::s3
