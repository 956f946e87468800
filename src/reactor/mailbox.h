// Mailbox: messages from one thread (often another reactor's) to one reactor, in order, in a ring of fixed capacity.
// For control work only: a request stays on its thread, and each message counts as a hop
// (reactor_cross_thread_hops_total).
//
//   Mailbox<Fd> mailbox(receiver, 64, [&server](Fd fd) { server.adopt(std::move(fd)); });
//   if (!mailbox.try_send(fd)) ...                 // on the sender's thread; false: full, `fd` is untouched
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "reactor/reactor.h"
#include "reactor/remote.h"

namespace cairn {

template <typename Message>
class Mailbox {
 public:
  // `deliver` runs on the receiver's thread. Destroyed when the sender is done with it, on the receiver's thread or
  // while that doesn't run, before the receiver is; what wasn't delivered is destroyed with it.
  Mailbox(Reactor& receiver, size_t capacity, std::move_only_function<void(Message)> deliver)
      : receiver_(receiver), deliver_(std::move(deliver)), slots_(std::bit_ceil(capacity)), doorbell_(*this) {
    ASSERT(capacity > 0);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() { receiver_.forget(doorbell_); }

  // The sender's thread. False when the receiver is that far behind.
  bool try_send(Message& message) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == slots_.size()) return false;
    slots_[tail & (slots_.size() - 1)].emplace(std::move(message));
    tail_.store(tail + 1, std::memory_order_release);
    // The doorbell is in the receiver's queue at most once. Whoever finds it rung relies on the receiver to look at
    // the ring after it has silenced it.
    if (!doorbell_.rung.exchange(true)) receiver_.enqueue(doorbell_);
    return true;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-rvalue-reference-param-not-moved): moved from when there is room, above
  bool try_send(Message&& message) { return try_send(message); }

 private:
  struct Doorbell final : RemoteWork {
    explicit Doorbell(Mailbox& m) : RemoteWork(&answer), mailbox(m) {}
    static void answer(RemoteWork& work) {
      auto& self = static_cast<Doorbell&>(work);
      self.rung.exchange(false);
      self.mailbox.drain();
    }
    Mailbox& mailbox;
    std::atomic<bool> rung{false};
  };

  void drain() {
    size_t head = head_.load(std::memory_order_relaxed);
    const size_t tail = tail_.load(std::memory_order_acquire);
    receiver_.hops().add(tail - head);
    for (; head != tail; ++head) {
      auto& slot = slots_[head & (slots_.size() - 1)];
      Message message = std::move(*slot);
      slot.reset();
      head_.store(head + 1, std::memory_order_release);
      deliver_(std::move(message));
    }
  }

  Reactor& receiver_;
  std::move_only_function<void(Message)> deliver_;
  std::vector<std::optional<Message>> slots_;
  alignas(64) std::atomic<size_t> tail_{0};  // written by the sender
  alignas(64) std::atomic<size_t> head_{0};  // written by the receiver
  alignas(64) Doorbell doorbell_;
};

}  // namespace cairn
