// RemoteStack: things of one kind that any thread gives to a reactor, linked through a pointer of their own, so that
// giving can't fail and allocates nothing. Many at a time cost one visit.
//
//   RemoteStack<Block, &Block::next> mail(reactor, [](void* pool, Block* block) { ... }, &pool);
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "reactor/reactor.h"
#include "reactor/remote.h"

namespace cairn {

template <typename T, T* T::* next>
class RemoteStack {
 public:
  using Deliver = void (*)(void* argument, T* item);

  // `deliver` runs on the reactor's thread, last given first.
  RemoteStack(Reactor& reactor, Deliver deliver, void* argument)
      : reactor_(reactor), deliver_(deliver), argument_(argument), visit_(*this) {}
  RemoteStack(const RemoteStack&) = delete;
  RemoteStack& operator=(const RemoteStack&) = delete;
  // Nobody gives any more. On the reactor's thread or while it doesn't run. Delivers what is left.
  ~RemoteStack() {
    reactor_.forget(visit_);
    (void)deliver_all();
  }

  // Any thread.
  void push(T* item) noexcept {
    T* head = head_.load(std::memory_order_relaxed);
    do {
      item->*next = head;
    } while (!head_.compare_exchange_weak(head, item, std::memory_order_acq_rel, std::memory_order_relaxed));
    // The first one calls for a visit. The visit leaves the queue before it empties the stack, so it is never in there
    // twice. (Hence acquire as well as release on both sides: what the visit did to itself happened before it is used
    // again.)
    if (head == nullptr) reactor_.enqueue(visit_);
  }

 private:
  struct Visit final : RemoteWork {
    explicit Visit(RemoteStack& s) : RemoteWork(&run_visit), stack(s) {}
    static void run_visit(RemoteWork& work) {
      RemoteStack& stack = static_cast<Visit&>(work).stack;
      stack.reactor_.hops().add(stack.deliver_all());
    }
    RemoteStack& stack;
  };

  size_t deliver_all() {
    size_t count = 0;
    T* item = head_.exchange(nullptr, std::memory_order_acq_rel);
    while (item != nullptr) {
      T* following = item->*next;
      ++count;
      deliver_(argument_, item);
      item = following;
    }
    return count;
  }

  Reactor& reactor_;
  Deliver deliver_;
  void* argument_;
  std::atomic<T*> head_{nullptr};
  Visit visit_;
};

}  // namespace cairn
