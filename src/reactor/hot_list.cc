#include "reactor/hot_list.h"

namespace cairn {

void HotList::add(HotSource& source, Time now) {
  ASSERT(source.list_ == nullptr);
  source.list_ = this;
  source.since_ = now;
  source.previous_ = tail_;
  source.next_ = nullptr;
  (tail_ == nullptr ? head_ : tail_->next_) = &source;
  tail_ = &source;
  ++size_;
}

void HotList::remove(HotSource& source) {
  if (source.list_ == nullptr) return;
  ASSERT(source.list_ == this);
  if (cursor_ == &source) cursor_ = source.next_;
  (source.previous_ == nullptr ? head_ : source.previous_->next_) = source.next_;
  (source.next_ == nullptr ? tail_ : source.next_->previous_) = source.previous_;
  source.list_ = nullptr;
  --size_;
}

size_t HotList::poll(Time now) {
  size_t succeeded = 0;
  for (HotSource* source = head_; source != nullptr; source = cursor_) {
    cursor_ = source->next_;
    if (source->try_hot()) {
      remove(*source);
      ++succeeded;
    } else if (now - source->since_ > kPatience) {
      remove(*source);
      source->cool_down();
    }
  }
  cursor_ = nullptr;
  return succeeded;
}

void HotList::cool_all() {
  while (head_ != nullptr) {
    HotSource& source = *head_;
    remove(source);
    source.cool_down();
  }
}

}  // namespace cairn
