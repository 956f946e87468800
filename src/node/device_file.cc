#include "node/device_file.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdio>

#include "base/units.h"
#include "node/files.h"
#include "node/patience.h"
#include "node/resources.h"

namespace cairn::node {
namespace {

Result<void> create(const std::string& path, const NodeSettings& settings) {
  const std::string folder = parent_of(path);
  if (folder == "/dev" || folder.starts_with("/dev/")) {
    return Error(Errc::not_found, fmt::format("device.path={}: there is no such device", path));
  }
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) return file_error(errno, "look at the folder of device.path,", folder);
  TRY(const uint64_t size, resolve_device_size(settings, uint64_t{space.f_bavail} * space.f_frsize));

  const std::string temporary = path + ".new";
  remove_file(temporary);
  if (auto made = engine::DiskFile::create(temporary, size); !made) {
    return std::move(made.error()).with_context(fmt::format("allocating {} for {}", format_size(size), path));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int failed = errno;
    remove_file(temporary);
    return file_error(failed, "rename the new device file to", path);
  }
  return sync_directory(folder);
}

}  // namespace

Result<engine::DiskFile> find_or_create_device(const std::string& path, const NodeSettings& settings) {
  if (!exists(path)) TRY(create(path, settings));
  return while_busy(seconds(5), [&] { return engine::DiskFile::open(path); });
}

}  // namespace cairn::node
