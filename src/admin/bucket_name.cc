#include "admin/bucket_name.h"

#include <fmt/format.h>

namespace cairn::admin {
namespace {

bool letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool looks_like_ipv4(std::string_view name) {
  int dots = 0;
  for (const char c : name) {
    if (c == '.') {
      ++dots;
    } else if (c < '0' || c > '9') {
      return false;
    }
  }
  return dots == 3;
}

}  // namespace

Result<void> check_bucket_name(std::string_view name) {
  const auto bad = [&](std::string_view why) {
    return Error(Errc::invalid_argument, fmt::format("bucket name '{}': {}", name, why));
  };
  if (name.size() < 3 || name.size() > 63) return bad("it must have 3 to 63 characters");
  for (const char c : name) {
    if (!letter_or_digit(c) && c != '-' && c != '.') return bad("only a-z, 0-9, '-' and '.' are allowed");
  }
  if (!letter_or_digit(name.front()) || !letter_or_digit(name.back())) {
    return bad("it must begin and end with a letter or digit");
  }
  if (name.find("..") != std::string_view::npos) return bad("two dots may not follow each other");
  if (looks_like_ipv4(name)) return bad("it may not look like an IP address");
  return {};
}

}  // namespace cairn::admin
