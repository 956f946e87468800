// Which thread runs, for checks of ownership.
#pragma once

#include <pthread.h>

namespace cairn {

class ThreadId {
 public:
  static ThreadId current() { return ThreadId(pthread_self()); }
  bool is_current() const { return pthread_equal(id_, pthread_self()) != 0; }

 private:
  explicit ThreadId(pthread_t id) : id_(id) {}
  pthread_t id_;
};

}  // namespace cairn
