// The two ends of a ring of bytes in shared memory. Each belongs to one thread of one process, and trusts nothing that
// the other end can write.
//
// Waiting without a lost wake-up: whoever finds nothing sets its flag, then looks once more; whoever gives sets its
// position first, then looks at the flag. A full fence lies between the two on both sides, so at least one of them sees
// the other, and he who takes the flag rings.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "srpc/shm/segment.h"

namespace cairn::srpc::shm {

class RingProducer {
 public:
  // `head`: as far as this side has written.
  RingProducer(RingControl& control, std::span<std::byte> bytes, uint64_t head = 0)
      : control_(&control), bytes_(bytes), head_(head) {}

  // nullopt: the consumer's position makes no sense.
  std::optional<size_t> room() const;
  // As much as there is room for; returns how much that was.
  size_t write(std::span<const iovec> vectors, size_t room);
  // The consumer waits and must be woken. Asked after write() or end().
  bool must_ring() const;
  // The consumer is to ring when it takes something. False: there is room already.
  bool wait_for_room();
  void end();
  uint64_t head() const { return head_; }

 private:
  RingControl* control_;
  std::span<std::byte> bytes_;
  uint64_t head_;
};

class RingConsumer {
 public:
  RingConsumer(RingControl& control, std::span<std::byte> bytes, uint64_t tail = 0)
      : control_(&control), bytes_(bytes), tail_(tail) {}

  // nullopt: the producer's position makes no sense.
  std::optional<size_t> available() const;
  // `available` or fewer bytes into the vectors; returns how many.
  size_t read(std::span<const iovec> vectors, size_t available);
  // The producer waits and must be woken. Asked after read().
  bool must_ring() const;
  // The producer is to ring when it writes something. False: there is something already, or the end.
  bool wait_for_bytes();
  // It need not ring.
  void stop_waiting();
  // Nothing follows what is available.
  bool ended() const;
  uint64_t tail() const { return tail_; }

 private:
  RingControl* control_;
  std::span<std::byte> bytes_;
  uint64_t tail_;
};

}  // namespace cairn::srpc::shm
