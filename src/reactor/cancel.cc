#include "reactor/cancel.h"

namespace cairn {

void CancelSource::cancel(Errc reason) {
  ASSERT(reason != Errc::ok);
  if (cancelled()) return;
  reason_ = reason;
  // A callback may destroy other callbacks, so each is unlinked before it runs and the head is read anew.
  while (head_ != nullptr) {
    CancelCallback& callback = *head_;
    callback.reset();
    callback.function_(callback.argument_);
  }
}

void CancelCallback::arm(CancelToken token, Function function, void* argument) {
  ASSERT(source_ == nullptr);
  if (token.source_ == nullptr || token.cancelled()) return;
  source_ = token.source_;
  function_ = function;
  argument_ = argument;
  previous_ = source_->tail_;
  next_ = nullptr;
  (previous_ == nullptr ? source_->head_ : previous_->next_) = this;
  source_->tail_ = this;
}

void CancelCallback::reset() {
  if (source_ == nullptr) return;
  (previous_ == nullptr ? source_->head_ : previous_->next_) = next_;
  (next_ == nullptr ? source_->tail_ : next_->previous_) = previous_;
  source_ = nullptr;
}

}  // namespace cairn
