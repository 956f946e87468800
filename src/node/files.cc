#include "node/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace cairn::node {
namespace {

Errc kind_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      return Errc::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::permission_denied;
    case ENOSPC:
    case EDQUOT:
      return Errc::no_space;
    case EEXIST:
      return Errc::already_exists;
    default:
      return Errc::io_error;
  }
}

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(errno, "write", path);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Error file_error(int errno_value, std::string_view doing, std::string_view path) {
  return Error(kind_of(errno_value), fmt::format("can't {} {}: {}", doing, path, std::strerror(errno_value)));
}

bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

Result<std::string> read_small_file(const std::string& path) {
  constexpr size_t kLimit = size_t{1} << 20;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return file_error(errno, "open", path);
  std::string content;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(errno, "read", path);
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > kLimit) return Error(Errc::too_large, fmt::format("{} is larger than 1 MiB", path));
  }
}

Result<void> write_file_durably(const std::string& path, std::string_view content, mode_t mode) {
  const std::string temporary = path + ".new";
  {
    // Created with its final mode: a secret is never readable, not even for a moment.
    remove_file(temporary);
    const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file) return file_error(errno, "create", temporary);
    if (::fchmod(file.get(), mode) != 0) return file_error(errno, "set the mode of", temporary);
    TRY(write_all(file.get(), content, temporary));
    if (::fsync(file.get()) != 0) return file_error(errno, "sync", temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return file_error(errno, "rename to", path);
  return sync_directory(parent_of(path));
}

Result<void> sync_directory(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return file_error(errno, "sync", path);
  return {};
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void remove_file(const std::string& path) { ::unlink(path.c_str()); }

}  // namespace cairn::node
