#include "reactor/sync.h"

namespace cairn {
namespace detail {

void WaitList::push(Waiter& waiter) {
  waiter.previous_ = tail_;
  waiter.next_ = nullptr;
  (tail_ == nullptr ? head_ : tail_->next_) = &waiter;
  tail_ = &waiter;
  waiter.callback_.arm(waiter.token_, &Waiter::on_cancel, &waiter);
}

void WaitList::unlink(Waiter& waiter) {
  (waiter.previous_ == nullptr ? head_ : waiter.previous_->next_) = waiter.next_;
  (waiter.next_ == nullptr ? tail_ : waiter.next_->previous_) = waiter.previous_;
  waiter.callback_.reset();
}

void WaitList::wake_front(Errc reason) {
  Waiter& waiter = *head_;
  unlink(waiter);
  waiter.reason_ = reason;
  waiter.loop_.post(waiter.handle_);
}

void Waiter::on_cancel(void* self) {
  auto& waiter = *static_cast<Waiter*>(self);
  waiter.list_.unlink(waiter);
  waiter.reason_ = waiter.token_.reason();
  waiter.loop_.post(waiter.handle_);
}

}  // namespace detail

void Event::set() {
  set_ = true;
  while (!waiters_.empty()) waiters_.wake_front(Errc::ok);
}

bool Semaphore::try_take(uint64_t n) {
  if (!waiters_.empty() || available_ < n) return false;
  available_ -= n;
  return true;
}

void Semaphore::give(uint64_t n) {
  available_ += n;
  serve();
}

void Semaphore::fail_waiters(Errc reason) {
  while (!waiters_.empty()) waiters_.wake_front(reason);
}

void Semaphore::serve() {
  while (!waiters_.empty() && waiters_.front().amount() <= available_) {
    available_ -= waiters_.front().amount();
    waiters_.wake_front(Errc::ok);
  }
}

}  // namespace cairn
