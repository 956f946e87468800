#include "reactor/remote.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/assert.h"

namespace cairn {

Result<Fd> RemoteQueue::make_event_fd() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return error_from_errno(errno, "eventfd");
  return Fd(fd);
}

void RemoteQueue::push(RemoteWork& work) noexcept {
  RemoteWork* head = head_.load(std::memory_order_relaxed);
  do {
    work.next = head;
  } while (!head_.compare_exchange_weak(head, &work));
  // Whoever clears the flag wakes; the others rely on it.
  if (sleeping_.load() && sleeping_.exchange(false)) wake();
}

void RemoteQueue::wake() noexcept {
  const uint64_t one = 1;
  // Nobody reads the counter: the reactor's poll is edge-triggered, and it would take 584,000 years of a wake-up each
  // microsecond to fill it.
  const ssize_t n = ::write(event_.get(), &one, sizeof one);
  ASSERT(n == sizeof one);
}

void RemoteQueue::fetch() noexcept {
  if (head_.load(std::memory_order_relaxed) == nullptr) return;
  RemoteWork* newest_first = head_.exchange(nullptr);
  RemoteWork* oldest_first = nullptr;
  while (newest_first != nullptr) {
    RemoteWork* next = newest_first->next;
    newest_first->next = oldest_first;
    oldest_first = newest_first;
    newest_first = next;
  }
  RemoteWork** end = &fetched_;
  while (*end != nullptr) end = &(*end)->next;
  *end = oldest_first;
}

RemoteWork* RemoteQueue::pop() noexcept {
  RemoteWork* first = fetched_;
  if (first != nullptr) fetched_ = first->next;
  return first;
}

void RemoteQueue::forget(RemoteWork& work) noexcept {
  fetch();
  for (RemoteWork** link = &fetched_; *link != nullptr; link = &(*link)->next) {
    if (*link == &work) {
      *link = work.next;
      return;
    }
  }
}

}  // namespace cairn
