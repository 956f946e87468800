#include "mem/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace cairn::mem {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPart = size_t{1} << 20;

// Gives every page its memory now.
bool populate(std::span<std::byte> memory) {
  if (madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;  // out of memory; better here than by a signal later
  for (size_t at = 0; at < memory.size(); at += 4096) static_cast<volatile std::byte&>(memory[at]) = std::byte{0};
  return true;
}

}  // namespace

Result<Arena> Arena::create(size_t bytes, Sharing sharing) {
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (bytes == 0) return Error(Errc::invalid_argument, "memory arena: size is 0");
  if (sharing == Sharing::machine) return create_shared(bytes);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  bool huge = true;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) {
    huge = false;
    // One huge page more, so that the part used can start on a huge page's boundary.
    at = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) return error_from_errno(errno, "memory arena: mmap (lower memory.arena)");
    const auto start = reinterpret_cast<uintptr_t>(at);
    const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
    if (aligned > start) munmap(at, aligned - start);
    const uintptr_t end = start + bytes + kHugePage;
    if (end > aligned + bytes) munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
    at = reinterpret_cast<void*>(aligned);
    (void)madvise(at, bytes, MADV_HUGEPAGE);
  }
  // A core dump of a gigabyte of other people's data helps nobody.
  (void)madvise(at, bytes, MADV_DONTDUMP);
  const std::span<std::byte> memory(static_cast<std::byte*>(at), bytes);
  Arena arena(memory, huge);
  if (!populate(memory)) return error_from_errno(errno, "memory arena: not enough memory (lower memory.arena)");
  return arena;
}

Result<Arena> Arena::create_shared(size_t bytes) {
  Fd memfd(memfd_create("cairn-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) return error_from_errno(errno, "memory arena: memfd_create");
  if (ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return error_from_errno(errno, "memory arena: memfd");
  }
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (at == MAP_FAILED) return error_from_errno(errno, "memory arena: mmap (lower memory.arena)");
  (void)madvise(at, bytes, MADV_HUGEPAGE);
  (void)madvise(at, bytes, MADV_DONTDUMP);
  const std::span<std::byte> memory(static_cast<std::byte*>(at), bytes);
  Arena arena(memory, false, std::move(memfd));
  if (!populate(memory)) return error_from_errno(errno, "memory arena: not enough memory (lower memory.arena)");
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : memory_(std::exchange(other.memory_, {})), huge_(other.huge_), memfd_(std::move(other.memfd_)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(huge_, other.huge_);
  std::swap(memfd_, other.memfd_);
  return *this;
}

Arena::~Arena() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

std::span<std::byte> Arena::part(size_t index, size_t count) const {
  ASSERT(index < count);
  const size_t size = memory_.size() / count / kPart * kPart;
  return memory_.subspan(index * size, size);
}

}  // namespace cairn::mem
