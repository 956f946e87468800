#include "reactor/worker.h"

#include <pthread.h>

namespace cairn {

void Worker::start(const std::string& name) {
  thread_ = std::thread([this] { reactor_->run(); });
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  reactor_->stop();
  thread_.join();
}

}  // namespace cairn
