#include "base/trace.h"

#include <algorithm>
#include <string>

namespace cairn {

std::optional<Trace> Trace::from_traceparent(std::string_view text) {
  constexpr size_t kBytes = 55;
  // Later versions may append; 255 is none.
  if (text.size() < kBytes || text.starts_with("ff")) return std::nullopt;
  if (text.size() > kBytes && (text.starts_with("00") || text[kBytes] != '-')) return std::nullopt;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (size_t i = 0; i < kBytes; ++i) {
    const bool dash = i == 2 || i == 35 || i == 52;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return std::nullopt;
  }
  const auto id = Id128::parse(text.substr(3, 32));
  const auto span = Id128::parse(std::string(16, '0').append(text.substr(36, 16)));
  if (!id || id->is_zero() || !span || span->is_zero()) return std::nullopt;
  Trace trace{*id, {}};
  std::copy(span->bytes.begin() + 8, span->bytes.end(), trace.span.begin());
  return trace;
}

}  // namespace cairn
