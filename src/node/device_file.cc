#include "node/device_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "base/units.h"
#include "node/files.h"
#include "node/resources.h"

namespace cairn::node {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Result<DeviceFile> inspect(const std::string& path, const struct stat& info) {
  if (S_ISREG(info.st_mode)) return DeviceFile{path, static_cast<uint64_t>(info.st_size), false};
  if (!S_ISBLK(info.st_mode)) {
    return Error(Errc::invalid_argument, fmt::format("device.path={} is neither a file nor a block device", path));
  }
  const FileDescriptor device(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!device) return file_error(errno, "open the device", path);
  uint64_t size = 0;
  if (::ioctl(device.get(), BLKGETSIZE64, &size) != 0) return file_error(errno, "get the size of", path);
  return DeviceFile{path, size, false};
}

Result<DeviceFile> create(const std::string& path, const NodeSettings& settings) {
  const std::string folder = folder_of(path);
  if (folder.starts_with("/dev/")) {
    return Error(Errc::not_found, fmt::format("device.path={}: there is no such device", path));
  }
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) return file_error(errno, "look at the folder of device.path,", folder);
  TRY(const uint64_t size, resolve_device_size(settings, uint64_t{space.f_bavail} * space.f_frsize));

  const std::string temporary = path + ".new";
  remove_file(temporary);
  const FileDescriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return file_error(errno, "create the device file", temporary);
  int failed = ::fallocate(file.get(), 0, 0, static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (failed == EOPNOTSUPP) {
    LOG(warn, "{}: this file system can't allocate space ahead; writes fail if something else fills it", path);
    failed = ::ftruncate(file.get(), static_cast<off_t>(size)) == 0 ? 0 : errno;
  }
  if (failed == 0 && ::fsync(file.get()) != 0) failed = errno;
  if (failed == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) failed = errno;
  if (failed != 0) {
    remove_file(temporary);
    return file_error(failed, fmt::format("allocate {} for the device file", format_size(size)), path);
  }
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return file_error(errno, "sync", folder);
  return DeviceFile{path, size, true};
}

}  // namespace

Result<DeviceFile> find_or_create_device(const std::string& path, const NodeSettings& settings) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return inspect(path, info);
  if (errno != ENOENT) return file_error(errno, "look at the device", path);
  return create(path, settings);
}

}  // namespace cairn::node
