// Hexadecimal text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

// Two lower-case digits per byte.
std::string to_hex(std::span<const std::byte> bytes);
// False, with `out` undefined, unless `text` is exactly 2 * out.size() digits of either case.
bool from_hex(std::string_view text, std::span<std::byte> out);

}  // namespace cairn
