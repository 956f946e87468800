// UringDevice: a DiskFile on one reactor's ring. Requests of a round reach the kernel in one system call, at its end.
//
// Short transfers go on where they ended. Requests beyond the queue depth wait here, in order: more in the kernel would
// only make it use threads of its own. Flushes run on the kernel's threads in any case (fdatasync sleeps).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/block_device.h"
#include "engine/disk_file.h"
#include "reactor/reactor.h"

namespace cairn::engine {

class UringDevice final : public BlockDevice {
 public:
  static constexpr uint32_t kQueueDepth = 256;

  // Before the reactor runs, or on its thread; destroyed likewise, with nothing under way. `file` outlives it.
  UringDevice(Reactor& reactor, const DiskFile& file, Registry& registry);
  ~UringDevice() override;

  void submit(IoRequest& request) override;
  uint64_t size_bytes() const override { return file_.size_bytes(); }
  bool supports_discard() const override { return file_.supports_discard(); }
  Loop& loop() override { return reactor_; }

 private:
  class Slot;

  void start(IoRequest& request);
  void finish(Slot& slot, Errc result);
  Errc map_error(const IoRequest& request, int error);

  Reactor& reactor_;
  const DiskFile& file_;
  int fixed_file_;  // index in the ring's table, or -1

  std::unique_ptr<Slot[]> slots_;
  Slot* free_slots_ = nullptr;
  uint32_t under_way_ = 0;
  // Requests that wait for a slot, linked by scratch[0].
  IoRequest* waiting_head_ = nullptr;
  IoRequest* waiting_tail_ = nullptr;

  Counter& reads_;
  Counter& writes_;
  Counter& flushes_;
  Counter& discards_;
  Counter& read_bytes_;
  Counter& written_bytes_;
  Counter& errors_;
  Gauge& in_flight_;
  Histogram& read_time_;
  Histogram& write_time_;
  Histogram& flush_time_;
};

}  // namespace cairn::engine
