#include "gateway/http/headers.h"

namespace cairn::http {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool list_has_token(std::string_view value, std::string_view token) noexcept {
  while (!value.empty()) {
    const size_t comma = value.find(',');
    if (equals_ignoring_case(trim(value.substr(0, comma)), token)) return true;
    value = comma == std::string_view::npos ? std::string_view() : value.substr(comma + 1);
  }
  return false;
}

std::optional<std::string_view> Headers::get(std::string_view name) const noexcept {
  for (const Field& field : fields_) {
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

size_t Headers::count(std::string_view name) const noexcept {
  size_t n = 0;
  for (const Field& field : fields_) n += equals_ignoring_case(field.name, name) ? 1 : 0;
  return n;
}

}  // namespace cairn::http
