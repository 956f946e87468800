#include "engine/disk_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/log.h"
#include "engine/block_device.h"

namespace cairn::engine {
namespace {

Error in_use(const std::string& path) {
  return Error(Errc::busy, "device '" + path +
                               "' is in use by another process (a running cairnd, or mounted): stop "
                               "it, or choose another device");
}

// The number in a file of sysfs, or 0.
uint64_t read_sysfs_number(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  char text[32] = {};
  const ssize_t n = ::read(fd.get(), text, sizeof text - 1);
  uint64_t value = 0;
  if (n > 0) (void)std::from_chars(text, text + n, value);
  return value;
}

bool block_device_discards(dev_t device) {
  const std::string base = "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
  // A partition's queue is its disk's.
  return read_sysfs_number(base + "/queue/discard_max_bytes") > 0 ||
         read_sysfs_number(base + "/../queue/discard_max_bytes") > 0;
}

}  // namespace

Result<DiskFile> DiskFile::open(const std::string& path) {
  DiskFile file;
  file.path_ = path;
  const std::string what = "open device '" + path + "'";
  struct stat status{};
  if (::stat(path.c_str(), &status) < 0) return error_from_errno(errno, what);
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return Error(Errc::unsupported, what + ": neither a file nor a block device");
  }
  file.block_device_ = S_ISBLK(status.st_mode);
  const int flags = O_RDWR | O_CLOEXEC | (file.block_device_ ? O_EXCL : 0);
  file.fd_ = Fd(::open(path.c_str(), flags | O_DIRECT));
  if (!file.fd_ && errno == EINVAL) {
    file.direct_ = false;
    file.fd_ = Fd(::open(path.c_str(), flags));
    if (file.fd_) LOG(warn, "device '{}': its file system has no O_DIRECT; going through the page cache", path);
  }
  if (!file.fd_) {
    if (errno == EBUSY) return in_use(path);
    return error_from_errno(errno, what);
  }
  if (!file.block_device_ && ::flock(file.fd_.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno == EWOULDBLOCK) return in_use(path);
    return error_from_errno(errno, "lock device '" + path + "'");
  }
  TRY(file.look());
  return file;
}

Result<DiskFile> DiskFile::create(const std::string& path, uint64_t size) {
  const std::string what = "create device file '" + path + "' of " + std::to_string(size) + " bytes";
  if (size == 0 || size % kBlockBytes != 0) {
    return Error(Errc::invalid_argument, what + ": not a multiple of " + std::to_string(kBlockBytes));
  }
  {
    const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return error_from_errno(errno, what);
    int error = ::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) < 0 ? errno : 0;
    if (error == EOPNOTSUPP) error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size));
    if (error == 0 && ::fsync(fd.get()) < 0) error = errno;
    if (error != 0) {
      // Ours, made a moment ago.
      (void)::unlink(path.c_str());
      return error_from_errno(error, what);
    }
  }
  return open(path);
}

Result<void> DiskFile::look() {
  const std::string what = "device '" + path_ + "'";
  struct stat status{};
  if (::fstat(fd_.get(), &status) < 0) return error_from_errno(errno, what);
  uint64_t bytes = 0;
  uint32_t block = 512;
  if (block_device_) {
    int logical = 0;
    if (::ioctl(fd_.get(), BLKGETSIZE64, &bytes) < 0 || ::ioctl(fd_.get(), BLKSSZGET, &logical) < 0) {
      return error_from_errno(errno, what);
    }
    block = static_cast<uint32_t>(logical);
    discard_ = block_device_discards(status.st_rdev);
  } else {
    bytes = static_cast<uint64_t>(status.st_size);
    discard_ = static_cast<uint64_t>(status.st_blocks) * 512 < bytes;
    struct statx more{};
    if (direct_ && ::statx(fd_.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &more) == 0 &&
        (more.stx_mask & STATX_DIOALIGN) != 0 && more.stx_dio_offset_align > 0) {
      block = more.stx_dio_offset_align;
    }
  }
  if (block > kBlockBytes || kBlockBytes % block != 0) {
    return Error(Errc::unsupported, what + " has blocks of " + std::to_string(block) + " bytes; at most " +
                                        std::to_string(kBlockBytes) + " are supported");
  }
  size_ = bytes / kBlockBytes * kBlockBytes;
  if (size_ == 0) return Error(Errc::invalid_argument, what + " is empty");
  return {};
}

}  // namespace cairn::engine
