// UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::s3 {

struct Utf8Character {
  size_t size = 0;  // bytes; 0: not valid
  uint32_t code = 0;
};
// The first character of `text`, which isn't empty. Overlong forms and surrogates are not valid.
Utf8Character utf8_front(std::string_view text);
// Whether XML 1.0 (section 2.2) has the character.
bool is_xml_character(uint32_t code);
bool is_utf8(std::string_view text);

}  // namespace cairn::s3
