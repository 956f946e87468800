#include "srpc/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/fd.h"

namespace cairn::srpc {
namespace {

// More than the most keys need, with comments.
constexpr size_t kMaxFileBytes = 4096;

Error error_about(std::string_view name, std::string_view what) {
  return {Errc::invalid_argument,
          fmt::format("{} {}: a key is a line of 64 hexadecimal digits, such as 'openssl rand -hex 32' prints", name,
                      what)};
}

std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Result<std::vector<SharedKey>> parse_keys(std::string_view text, std::string_view name) {
  std::vector<SharedKey> keys;
  for (size_t at = 0, number = 1; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line.front() == '#') continue;
    const auto key = SharedKey::parse(line);
    if (!key) return error_about(name, fmt::format("has no key in line {}", number));
    if (keys.size() == KeyRing::kMaxKeys) {
      return Error(Errc::invalid_argument, fmt::format("{} has more than {} keys", name, KeyRing::kMaxKeys));
    }
    keys.push_back(*key);
  }
  if (keys.empty()) return error_about(name, "has no key");
  return keys;
}

Result<std::vector<SharedKey>> read_key_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return error_from_errno(errno, path);
  // In one place that can be wiped: a stream or a growing string would leave copies behind.
  std::array<std::byte, kMaxFileBytes + 1> buffer{};
  size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t n = ::read(file.get(), buffer.data() + size, buffer.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_from_errno(errno, path);
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  auto keys = size > kMaxFileBytes ? Result<std::vector<SharedKey>>(error_about(path, "is no file with keys"))
                                   : parse_keys({reinterpret_cast<const char*>(buffer.data()), size}, path);
  wipe(buffer);
  return keys;
}

}  // namespace cairn::srpc
