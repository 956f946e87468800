// Integers with a meaning: a term can't be passed as an index.
//
//   using Term = Strong<uint64_t, struct TermTag>;
#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace cairn {

template <typename Int, typename Tag>
struct Strong {
  Int value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Int v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
  constexpr Strong& operator++() {
    ++value;
    return *this;
  }
  // The distance keeps the plain type; moving by a distance keeps the meaning.
  friend constexpr Int operator-(Strong a, Strong b) { return a.value - b.value; }
  friend constexpr Strong operator+(Strong a, Int n) { return Strong(static_cast<Int>(a.value + n)); }
  friend constexpr Strong operator-(Strong a, Int n) { return Strong(static_cast<Int>(a.value - n)); }
};

}  // namespace cairn

template <typename Int, typename Tag>
struct std::hash<cairn::Strong<Int, Tag>> {
  size_t operator()(const cairn::Strong<Int, Tag>& v) const noexcept { return std::hash<Int>()(v.value); }
};
