// HotList: what a polling reactor tries again each round because it expects it to succeed within microseconds, such as
// a receive on a busy connection: while polling, a plain non-blocking call is faster than any notification. What
// doesn't succeed for a while cools down: it arms a notification and costs nothing per round any more.
#pragma once

#include <cstddef>

#include "base/assert.h"
#include "base/time.h"

namespace cairn {

class HotList;

class HotSource {
 public:
  HotSource() = default;
  HotSource(const HotSource&) = delete;
  HotSource& operator=(const HotSource&) = delete;

  bool hot() const { return list_ != nullptr; }

 protected:
  ~HotSource() { ASSERT(list_ == nullptr); }
  // Tries once. True: done, off the list.
  virtual bool try_hot() = 0;
  // Off the list: arm a notification.
  virtual void cool_down() = 0;

 private:
  friend class HotList;
  HotList* list_ = nullptr;
  HotSource* previous_ = nullptr;
  HotSource* next_ = nullptr;
  Time since_;
};

class HotList {
 public:
  // Each try is a system call, so the list is short.
  static constexpr size_t kMost = 8;
  // How long a source is tried before it cools down. Whoever decides that something is hot should use the same time:
  // what goes up and down all the time pays for both.
  static constexpr Duration kPatience = microseconds(200);

  HotList() = default;
  HotList(const HotList&) = delete;
  HotList& operator=(const HotList&) = delete;
  ~HotList() { ASSERT(size_ == 0); }

  size_t size() const { return size_; }
  bool full() const { return size_ >= kMost; }
  void add(HotSource& source, Time now);
  void remove(HotSource& source);
  // Tries each once; returns how many succeeded.
  size_t poll(Time now);
  void cool_all();

 private:
  HotSource* head_ = nullptr;
  HotSource* tail_ = nullptr;
  HotSource* cursor_ = nullptr;  // the next to try, kept right when try_hot() removes others
  size_t size_ = 0;
};

}  // namespace cairn
