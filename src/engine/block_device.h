// BlockDevice: the seam to a disk. UringDevice drives block devices and files with io_uring and O_DIRECT, MemoryDevice
// is plain memory, sim::SimDisk fails in every way a disk can.
//
//   CO_TRY(co_await read(device, offset, bufs));     // bufs: a BufChain whose blocks are filled
//   CO_TRY(co_await write(device, offset, chain));
//   CO_TRY(co_await flush(device));
#pragma once

#include <sys/uio.h>

#include <boost/container/small_vector.hpp>
#include <coroutine>
#include <cstdint>

#include "base/status.h"
#include "mem/buf_chain.h"
#include "reactor/loop.h"
#include "reactor/task.h"

namespace cairn::engine {

// Offsets, lengths and memory addresses are multiples of this.
inline constexpr uint32_t kBlockBytes = 4096;

// One operation. The owner keeps it, its iovecs and their memory in place until `complete` is called, which happens in
// every case and never inside submit().
struct IoRequest {
  enum class Op : uint8_t { read, write, flush, discard };

  Op op = Op::read;
  uint64_t offset = 0;
  uint64_t length = 0;
  iovec* iovecs = nullptr;  // the device may modify them
  uint32_t iovec_count = 0;

  Errc result = Errc::ok;  // ok, io_error, no_space (a sparse file's file system is full)
  void (*complete)(IoRequest&) = nullptr;

  // For the device's use while it has the request.
  uint64_t done = 0;
  uint64_t scratch[2] = {};
};

class BlockDevice {
 public:
  virtual ~BlockDevice() = default;
  // Never blocks. Requests run in no particular order: who needs an order waits for completion. A completed write is on
  // stable storage only when a flush submitted after its completion has completed. When a flush fails, what it covers
  // may be lost, and the system says so once, to whoever asked: so all flushes that end later fail, too, for all users
  // of the device, until it is opened anew.
  virtual void submit(IoRequest& request) = 0;
  virtual uint64_t size_bytes() const = 0;
  // Discarded ranges read as anything until written again; a device without discard completes it with ok.
  virtual bool supports_discard() const = 0;
  virtual Loop& loop() = 0;
};

// For devices: asserts that the request is in bounds and aligned, which is its submitter's part.
void check_request(const BlockDevice& device, const IoRequest& request);

// Owns the memory until the device is done, whatever happens to the caller's buffers.
class IoAwaiter : private IoRequest {
 public:
  IoAwaiter(BlockDevice& device, Op operation, uint64_t at, uint64_t size, mem::BufChain memory)
      : device_(device), memory_(std::move(memory)) {
    op = operation;
    offset = at;
    length = size;
    vectors_.resize(memory_.slices().size());
    memory_.to_iovecs({vectors_.data(), vectors_.size()});
    iovecs = vectors_.data();
    iovec_count = static_cast<uint32_t>(vectors_.size());
    complete = [](IoRequest& request) {
      auto& self = static_cast<IoAwaiter&>(request);
      self.device_.loop().post(self.handle_);
    };
  }
  IoAwaiter(const IoAwaiter&) = delete;
  IoAwaiter& operator=(const IoAwaiter&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    device_.submit(*this);
  }
  Result<void> await_resume() const {
    if (result != Errc::ok) return Error(result);
    return {};
  }

 private:
  BlockDevice& device_;
  mem::BufChain memory_;
  boost::container::small_vector<iovec, mem::BufChain::kInline> vectors_;
  std::coroutine_handle<> handle_;
};

inline IoAwaiter read(BlockDevice& device, uint64_t offset, mem::BufChain into) {
  const uint64_t size = into.size();
  return {device, IoRequest::Op::read, offset, size, std::move(into)};
}
inline IoAwaiter write(BlockDevice& device, uint64_t offset, mem::BufChain from) {
  const uint64_t size = from.size();
  return {device, IoRequest::Op::write, offset, size, std::move(from)};
}
inline IoAwaiter flush(BlockDevice& device) { return {device, IoRequest::Op::flush, 0, 0, {}}; }
inline IoAwaiter discard(BlockDevice& device, uint64_t offset, uint64_t size) {
  return {device, IoRequest::Op::discard, offset, size, {}};
}

// A read whose failure has consequences that a later success would not undo (a page is given up, a shard is taken for
// damaged): tries several times over some milliseconds, because disks fail for a moment, too.
Task<Result<void>> read_patiently(BlockDevice& device, uint64_t offset, mem::BufChain into);

}  // namespace cairn::engine
