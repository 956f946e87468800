// SetupReactor: a reactor with a little memory, for what must be read and written before a node's own reactors can be
// made: their number depends on the device, and what they need to know stands in the store.
#pragma once

#include <memory>

#include "base/metrics.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/disk_file.h"
#include "engine/uring_device.h"
#include "mem/arena.h"
#include "mem/pool.h"
#include "reactor/worker.h"

namespace cairn::node {

class SetupReactor {
 public:
  // `disk` and `rng` outlive it.
  static Result<std::unique_ptr<SetupReactor>> create(const engine::DiskFile& disk, Rng& rng);
  SetupReactor(const SetupReactor&) = delete;
  SetupReactor& operator=(const SetupReactor&) = delete;
  // Whoever waits for a call has got its answer.
  ~SetupReactor() { worker_.stop(); }

  Worker& worker() { return worker_; }
  // For use on the worker's thread.
  mem::Pool& pool() { return pool_; }
  engine::BlockDevice& device() { return device_; }
  Registry& registry() { return *registry_; }

 private:
  SetupReactor(const engine::DiskFile& disk, mem::Arena arena, std::unique_ptr<Registry> registry,
               std::unique_ptr<Reactor> reactor);

  mem::Arena arena_;
  std::unique_ptr<Registry> registry_;
  Worker worker_;
  mem::Pool pool_;
  engine::UringDevice device_;
};

}  // namespace cairn::node
