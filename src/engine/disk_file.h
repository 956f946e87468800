// DiskFile: a block device or a file that serves as one, opened for this process alone. Opened once, used by one
// UringDevice per reactor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace cairn::engine {

class DiskFile {
 public:
  // With O_DIRECT where the file system has it, and locked: O_EXCL on a block device (which also refuses one that is
  // mounted), flock on a file. Errors: busy (in use by another process), not_found, permission_denied, unsupported
  // (neither a file nor a block device; blocks larger than ours), invalid_argument (too small).
  static Result<DiskFile> open(const std::string& path);
  // Makes a file of `size` bytes with its space allocated, so that writes can't run out of it later. Fails with
  // already_exists rather than touch what is there.
  static Result<DiskFile> create(const std::string& path, uint64_t size);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  // Whole blocks.
  uint64_t size_bytes() const { return size_; }
  bool is_block_device() const { return block_device_; }
  // A block device that says so, or a sparse file. A file whose space was allocated keeps it: giving it up would let
  // later writes fail for lack of it.
  bool supports_discard() const { return discard_; }
  // False on a file system without O_DIRECT: slower, and as durable, because a flush reaches the disk all the same.
  bool direct() const { return direct_; }

  // A flush has failed, on whichever reactor: no other one may vouch for anything now (block_device.h).
  bool flush_failed() const { return flush_failed_->load(std::memory_order_acquire); }
  void set_flush_failed() const { flush_failed_->store(true, std::memory_order_release); }

 private:
  Result<void> look();

  std::string path_;
  Fd fd_;
  uint64_t size_ = 0;
  bool block_device_ = false;
  bool discard_ = false;
  bool direct_ = true;
  // The one word that its reactors share: looked at once per flush, written once in the file's life. A message between
  // reactors would come too late for a flush that ends at the same moment.
  // cairn-allow(lock): as above
  std::unique_ptr<std::atomic<bool>> flush_failed_ = std::make_unique<std::atomic<bool>>(false);
};

}  // namespace cairn::engine
