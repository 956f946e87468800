#include "gateway/s3/range.h"

#include <algorithm>
#include <charconv>

namespace cairn::s3 {
namespace {

constexpr std::string_view kBytes = "bytes=";

struct Spec {
  std::optional<uint64_t> first;
  std::optional<uint64_t> last;
};

// None unless the text is all digits. Numbers beyond 64 bits are as good as the largest.
std::optional<uint64_t> number(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() ? value : UINT64_MAX;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "5-9", "5-" or "-5"; none for anything else, "-" and "9-5" included.
std::optional<Spec> parse_spec(std::string_view text) {
  text = trim(text);
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view left = text.substr(0, dash);
  const std::string_view right = text.substr(dash + 1);
  Spec spec{number(left), number(right)};
  if ((!left.empty() && !spec.first) || (!right.empty() && !spec.last)) return std::nullopt;
  if (!spec.first && !spec.last) return std::nullopt;
  if (spec.first && spec.last && *spec.first > *spec.last) return std::nullopt;
  return spec;
}

}  // namespace

S3Result<std::optional<object::ByteRange>> parse_range(std::string_view header, uint64_t size) {
  const std::optional<object::ByteRange> whole;
  if (!header.starts_with(kBytes)) return whole;
  const auto spec = parse_spec(header.substr(kBytes.size()));
  if (!spec) return whole;
  if (!spec->first) {
    const uint64_t n = std::min(*spec->last, size);
    if (n == 0) return Code::InvalidRange;
    return std::optional(object::ByteRange{size - n, n});
  }
  if (*spec->first >= size) return Code::InvalidRange;
  const uint64_t last = std::min(spec->last.value_or(size - 1), size - 1);
  return std::optional(object::ByteRange{*spec->first, last - *spec->first + 1});
}

S3Result<object::ByteRange> parse_copy_range(std::string_view header, uint64_t size) {
  const auto spec = header.starts_with(kBytes) ? parse_spec(header.substr(kBytes.size())) : std::nullopt;
  if (!spec || !spec->first || !spec->last) {
    return S3Error(
        Code::InvalidArgument,
        "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the "
        "zero-based offsets of the first and last bytes to copy");
  }
  if (*spec->last >= size) {
    return S3Error(Code::InvalidArgument,
                   "Range specified is not valid for source object of size: " + std::to_string(size));
  }
  return object::ByteRange{*spec->first, *spec->last - *spec->first + 1};
}

}  // namespace cairn::s3
