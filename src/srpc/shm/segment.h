// Segment: the memory that two processes share for one connection, a memfd: a page of control words, then one ring of
// bytes for each direction.
//
//   0     magic, version, ring bytes
//   256   control of ring 0 (client to server), 512: of ring 1
//   4096  bytes of ring 0, then those of ring 1
//
// Nothing in it is trusted: the other process may write anything at any time. Each side keeps its own position to
// itself, checks the other's against it, and copies bytes out before it looks at them. The memfd is sealed, so that it
// can't be cut off under the one who reads it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"
#include "base/status.h"

namespace cairn::srpc::shm {

inline constexpr uint32_t kMinRingBytes = 4096;
inline constexpr uint32_t kMaxRingBytes = uint32_t{16} << 20;

// One direction, in the shared memory. A word has one writer, and a cache line of its own unless the two are written
// together. (Free of locks and addresses, so it means the same in both processes.)
struct RingControl {
  // cairn-allow(lock): two processes share it; see above
  alignas(64) std::atomic<uint64_t> head;  // bytes written since the start, by the producer
  // cairn-allow(lock): the same
  std::atomic<uint32_t> ended;  // the producer will write no more
  // cairn-allow(lock): the same
  alignas(64) std::atomic<uint64_t> tail;  // bytes taken since the start, by the consumer
  // Set by whoever waits, taken by the other, who then rings.
  // cairn-allow(lock): the same
  alignas(64) std::atomic<uint32_t> consumer_waits;
  // cairn-allow(lock): the same
  std::atomic<uint32_t> producer_waits;
};
static_assert(sizeof(RingControl) == 192);
// cairn-allow(lock): a property of the machine
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class Segment {
 public:
  // A new one, with its memfd. `ring_bytes` is a power of two between the limits. Errors: those of the system.
  struct Created;
  static Result<Created> create(uint32_t ring_bytes);
  // The peer's. Errors: protocol_error (not a segment of ours, or one that could shrink).
  static Result<Segment> adopt(const Fd& memfd);

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  explicit operator bool() const { return !memory_.empty(); }
  uint32_t ring_bytes() const { return ring_bytes_; }
  RingControl& control(size_t ring) const;
  std::span<std::byte> bytes(size_t ring) const;

 private:
  Segment(std::span<std::byte> memory, uint32_t ring_bytes) : memory_(memory), ring_bytes_(ring_bytes) {}

  std::span<std::byte> memory_;
  uint32_t ring_bytes_ = 0;
};

struct Segment::Created {
  Segment segment;
  Fd memfd;
};

}  // namespace cairn::srpc::shm
