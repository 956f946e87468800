#include "srpc/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::shm {
namespace {

constexpr uint32_t kMagic = 0x4d524853;  // "SHRM" in the order of the bytes
constexpr uint32_t kVersion = 1;
constexpr size_t kControlBytes = 4096;
constexpr size_t kControlOffset[] = {256, 512};
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct SegmentHeader {
  uint32_t magic;
  uint32_t version;
  uint32_t ring_bytes;
};

size_t size_of(uint32_t ring_bytes) { return kControlBytes + 2 * size_t{ring_bytes}; }

bool is_ring_size(uint32_t bytes) {
  return bytes >= kMinRingBytes && bytes <= kMaxRingBytes && std::has_single_bit(bytes);
}

Result<std::span<std::byte>> map(int fd, size_t size) {
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return error_from_errno(errno, "shared memory: mmap");
  (void)madvise(at, size, MADV_DONTDUMP);
  return std::span(static_cast<std::byte*>(at), size);
}

}  // namespace

Result<Segment::Created> Segment::create(uint32_t ring_bytes) {
  ASSERT(is_ring_size(ring_bytes));
  Fd memfd(memfd_create("srpc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) return error_from_errno(errno, "shared memory: memfd_create");
  const size_t size = size_of(ring_bytes);
  if (ftruncate(memfd.get(), static_cast<off_t>(size)) != 0) return error_from_errno(errno, "shared memory: ftruncate");
  if (fcntl(memfd.get(), F_ADD_SEALS, kSeals) != 0) return error_from_errno(errno, "shared memory: seals");
  TRY(const auto memory, map(memfd.get(), size));
  new (memory.data()) SegmentHeader{kMagic, kVersion, ring_bytes};
  for (const size_t offset : kControlOffset) new (memory.data() + offset) RingControl{};
  return Created{Segment(memory, ring_bytes), std::move(memfd)};
}

Result<Segment> Segment::adopt(const Fd& memfd) {
  // A file that could be cut off would kill us with a signal at the next access.
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Error(Errc::protocol_error, "shared memory: not a sealed memfd");
  }
  struct stat about{};
  if (fstat(memfd.get(), &about) != 0) return error_from_errno(errno, "shared memory: fstat");
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size < size_of(kMinRingBytes) || size > size_of(kMaxRingBytes)) {
    return Error(Errc::protocol_error, "shared memory: a segment of a wrong size");
  }
  // The size, which can't change, says what the header must say.
  const auto ring_bytes = static_cast<uint32_t>((size - kControlBytes) / 2);
  if (!is_ring_size(ring_bytes) || size_of(ring_bytes) != size) {
    return Error(Errc::protocol_error, "shared memory: a segment of a wrong size");
  }
  TRY(const auto memory, map(memfd.get(), size));
  Segment segment(memory, ring_bytes);
  const auto& header = *std::launder(reinterpret_cast<const SegmentHeader*>(memory.data()));
  if (header.magic != kMagic || header.version != kVersion || header.ring_bytes != ring_bytes) {
    return Error(Errc::protocol_error, "shared memory: a segment of another version");
  }
  return segment;
}

Segment::Segment(Segment&& other) noexcept
    : memory_(std::exchange(other.memory_, {})), ring_bytes_(std::exchange(other.ring_bytes_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(ring_bytes_, other.ring_bytes_);
  return *this;
}

Segment::~Segment() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

RingControl& Segment::control(size_t ring) const {
  return *std::launder(reinterpret_cast<RingControl*>(memory_.data() + kControlOffset[ring]));
}

std::span<std::byte> Segment::bytes(size_t ring) const {
  return memory_.subspan(kControlBytes + ring * ring_bytes_, ring_bytes_);
}

}  // namespace cairn::srpc::shm
