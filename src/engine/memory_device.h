// MemoryDevice: a BlockDevice that is plain memory, for tests and for measuring what is not the disk. Never fails;
// everything is "stable" at once. sim::SimDisk is the one that loses and corrupts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/block_device.h"
#include "reactor/loop.h"

namespace cairn::engine {

class MemoryDevice final : public BlockDevice {
 public:
  // All zeroes. `size_bytes` is a multiple of kBlockBytes.
  MemoryDevice(Loop& loop, uint64_t size_bytes);
  // Nothing is under way.
  ~MemoryDevice() override;

  void submit(IoRequest& request) override;
  uint64_t size_bytes() const override { return size_; }
  bool supports_discard() const override { return true; }
  Loop& loop() override { return loop_; }

  // For tests that look behind the device's back.
  std::span<std::byte> contents() { return {memory_.get(), size_}; }
  uint64_t requests() const { return requests_; }

 private:
  static void run(void* request);
  void transfer(IoRequest& request);

  Loop& loop_;
  uint64_t size_;
  std::unique_ptr<std::byte[]> memory_;
  uint64_t requests_ = 0;
  uint64_t under_way_ = 0;
};

}  // namespace cairn::engine
