#include "srpc/shm/byte_ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace cairn::srpc::shm {
namespace {

// cairn-allow(lock): the order of memory between two processes
constexpr auto kAcquire = std::memory_order_acquire;
// cairn-allow(lock): the same
constexpr auto kRelease = std::memory_order_release;
// cairn-allow(lock): the same
constexpr auto kRelaxed = std::memory_order_relaxed;

// cairn-allow(lock): the same
void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Takes the flag; who doesn't see it set needs no write to a line that the other side reads.
// cairn-allow(lock): the same
bool take(std::atomic<uint32_t>& flag) {
  full_fence();
  return flag.load(kRelaxed) != 0 && flag.exchange(0, kRelaxed) != 0;
}

}  // namespace

std::optional<size_t> RingProducer::room() const {
  const uint64_t used = head_ - control_->tail.load(kAcquire);
  if (used > bytes_.size()) return std::nullopt;
  return bytes_.size() - used;
}

size_t RingProducer::write(std::span<const iovec> vectors, size_t room) {
  size_t written = 0;
  for (const iovec& vector : vectors) {
    const auto* from = static_cast<const std::byte*>(vector.iov_base);
    size_t left = std::min(vector.iov_len, room - written);
    while (left > 0) {
      const size_t at = (head_ + written) & (bytes_.size() - 1);
      const size_t n = std::min(left, bytes_.size() - at);
      // cairn-allow(memcpy): the ring is the wire
      std::memcpy(bytes_.data() + at, from, n);
      from += n;
      written += n;
      left -= n;
    }
    if (written == room) break;
  }
  head_ += written;
  control_->head.store(head_, kRelease);
  return written;
}

bool RingProducer::must_ring() const { return take(control_->consumer_waits); }

bool RingProducer::wait_for_room() {
  control_->producer_waits.store(1, kRelaxed);
  full_fence();
  return control_->tail.load(kAcquire) == head_ - bytes_.size();
}

void RingProducer::end() { control_->ended.store(1, kRelease); }

std::optional<size_t> RingConsumer::available() const {
  const uint64_t there = control_->head.load(kAcquire) - tail_;
  if (there > bytes_.size()) return std::nullopt;
  return there;
}

size_t RingConsumer::read(std::span<const iovec> vectors, size_t available) {
  size_t taken = 0;
  for (const iovec& vector : vectors) {
    auto* to = static_cast<std::byte*>(vector.iov_base);
    size_t left = std::min(vector.iov_len, available - taken);
    while (left > 0) {
      const size_t at = (tail_ + taken) & (bytes_.size() - 1);
      const size_t n = std::min(left, bytes_.size() - at);
      // cairn-allow(memcpy): the ring is the wire
      std::memcpy(to, bytes_.data() + at, n);
      to += n;
      taken += n;
      left -= n;
    }
    if (taken == available) break;
  }
  tail_ += taken;
  control_->tail.store(tail_, kRelease);
  return taken;
}

bool RingConsumer::must_ring() const { return take(control_->producer_waits); }

bool RingConsumer::wait_for_bytes() {
  control_->consumer_waits.store(1, kRelaxed);
  full_fence();
  return control_->head.load(kAcquire) == tail_ && control_->ended.load(kAcquire) == 0;
}

void RingConsumer::stop_waiting() { control_->consumer_waits.store(0, kRelaxed); }

bool RingConsumer::ended() const { return control_->ended.load(kAcquire) != 0; }

}  // namespace cairn::srpc::shm
