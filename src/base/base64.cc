#include "base/base64.h"

#include <array>
#include <cstdint>

namespace cairn {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return values;
}();

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = std::to_integer<uint32_t>(bytes[i]) << 16;
    if (i + 1 < bytes.size()) group |= std::to_integer<uint32_t>(bytes[i + 1]) << 8;
    if (i + 2 < bytes.size()) group |= std::to_integer<uint32_t>(bytes[i + 2]);
    text.push_back(kAlphabet[group >> 18]);
    text.push_back(kAlphabet[group >> 12 & 63]);
    text.push_back(i + 1 < bytes.size() ? kAlphabet[group >> 6 & 63] : '=');
    text.push_back(i + 2 < bytes.size() ? kAlphabet[group & 63] : '=');
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const size_t padding = !last ? 0 : text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const int value = j >= 4 - padding ? 0 : kValues[static_cast<unsigned char>(text[i + j])];
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    // Bits that no byte takes must be zero, or two texts would mean the same bytes.
    if ((padding == 1 && (group & 0xff) != 0) || (padding == 2 && (group & 0xffff) != 0)) return std::nullopt;
    bytes.push_back(static_cast<char>(group >> 16 & 0xff));
    if (padding < 2) bytes.push_back(static_cast<char>(group >> 8 & 0xff));
    if (padding < 1) bytes.push_back(static_cast<char>(group & 0xff));
  }
  return bytes;
}

}  // namespace cairn
