// Base64 (RFC 4648 section 4), padded, without line breaks: the form that HTTP headers use.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

std::string to_base64(std::span<const std::byte> bytes);
// None unless the text is canonical: right alphabet, padded to a multiple of four, no bits set behind the last byte.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace cairn
