// Header fields of a request, in the order they came.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace cairn::http {

// ASCII case-insensitive, as field names and most tokens of HTTP are compared.
bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;
// Without leading and trailing spaces and tabs.
std::string_view trim(std::string_view text) noexcept;
// Whether the comma-separated list `value` holds `token`, in any case.
bool list_has_token(std::string_view value, std::string_view token) noexcept;

// A view: names and values point into the request's head, which lives as long as the Request.
class Headers {
 public:
  struct Field {
    std::string_view name;   // in lower case, whatever was sent
    std::string_view value;  // trimmed
  };

  void add(std::string_view name, std::string_view value) { fields_.push_back({name, value}); }
  void clear() { fields_.clear(); }

  // The first field of that name, in any case.
  std::optional<std::string_view> get(std::string_view name) const noexcept;
  // Its value or "".
  std::string_view value(std::string_view name) const noexcept { return get(name).value_or(std::string_view()); }
  bool has(std::string_view name) const noexcept { return get(name).has_value(); }
  size_t count(std::string_view name) const noexcept;

  size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

}  // namespace cairn::http
