#include "gateway/s3/utf8.h"

namespace cairn::s3 {

Utf8Character utf8_front(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || first > 0xf4 || text.size() < size) return {};
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {size, code};
}

bool is_xml_character(uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  return code < 0xd800 || (code > 0xdfff && code < 0xfffe) || (code > 0xffff && code <= 0x10ffff);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = utf8_front(text);
    if (character.size == 0) return false;
    text.remove_prefix(character.size);
  }
  return true;
}

}  // namespace cairn::s3
