#include "srpc/shm/peer_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

namespace cairn::srpc::shm {

Result<std::shared_ptr<PeerMemory>> PeerMemory::adopt(const Fd& memfd) {
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  struct statfs system{};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstatfs(memfd.get(), &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return Error(Errc::protocol_error, "shared memory: the client's memory isn't a sealed memfd");
  }
  struct stat about{};
  if (fstat(memfd.get(), &about) != 0) return error_from_errno(errno, "shared memory: fstat");
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size == 0 || size > kMaxBytes) return Error(Errc::protocol_error, "shared memory: an impossible size");
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd.get(), 0);
  if (at == MAP_FAILED) return error_from_errno(errno, "shared memory: mmap of the client's memory");
  (void)madvise(at, size, MADV_DONTDUMP);
  return std::shared_ptr<PeerMemory>(new PeerMemory({static_cast<std::byte*>(at), size}));
}

PeerMemory::~PeerMemory() { munmap(memory_.data(), memory_.size()); }

Result<std::shared_ptr<PeerMemory>> PeerMemories::adopt(const Fd& memfd) {
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  struct stat about{};
  if (fstat(memfd.get(), &about) != 0) return error_from_errno(errno, "shared memory: fstat");
  auto& known = known_[{about.st_dev, about.st_ino}];
  if (auto memory = known.lock()) return memory;
  TRY(auto memory, PeerMemory::adopt(memfd));
  known = memory;
  return memory;
}

}  // namespace cairn::srpc::shm
