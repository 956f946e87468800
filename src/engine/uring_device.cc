#include "engine/uring_device.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "base/log.h"
#include "reactor/ring.h"

namespace cairn::engine {

// One request in the ring.
class UringDevice::Slot final : public RingOp {
 public:
  Slot() : RingOp(&on_complete) {}

  void submit();

  UringDevice* device = nullptr;
  IoRequest* request = nullptr;
  Slot* next_free = nullptr;
  Time started;

 private:
  static void on_complete(RingOp& op, int32_t result, uint32_t flags);
  // `n` bytes have been moved: what is left.
  void advance(uint64_t n);
};

UringDevice::UringDevice(Reactor& reactor, const DiskFile& file, Registry& registry)
    : reactor_(reactor),
      file_(file),
      fixed_file_(reactor.ring().register_file(file.fd())),
      slots_(new Slot[kQueueDepth]),
      reads_(registry.counter("engine_device_reads_total", "Reads from the device")),
      writes_(registry.counter("engine_device_writes_total", "Writes to the device")),
      flushes_(registry.counter("engine_device_flushes_total", "Flushes of the device's cache")),
      discards_(registry.counter("engine_device_discards_total", "Ranges given back to the device")),
      read_bytes_(registry.counter("engine_device_read_bytes_total", "Bytes read from the device")),
      written_bytes_(registry.counter("engine_device_written_bytes_total", "Bytes written to the device")),
      errors_(registry.counter("engine_device_errors_total", "Requests that the device failed")),
      in_flight_(registry.gauge("engine_device_requests_in_flight", "Requests in the device or waiting for it")),
      read_time_(registry.histogram("engine_device_read_seconds", "Time of a read, waiting included")),
      write_time_(registry.histogram("engine_device_write_seconds", "Time of a write, waiting included")),
      flush_time_(registry.histogram("engine_device_flush_seconds", "Time of a flush")) {
  for (uint32_t i = kQueueDepth; i > 0; --i) {
    Slot& slot = slots_[i - 1];
    slot.device = this;
    slot.next_free = std::exchange(free_slots_, &slot);
  }
}

UringDevice::~UringDevice() {
  ASSERT(under_way_ == 0);
  ASSERT(waiting_head_ == nullptr);
  if (fixed_file_ >= 0) reactor_.ring().unregister_file(fixed_file_);
}

void UringDevice::submit(IoRequest& request) {
  check_request(*this, request);
  request.done = 0;
  in_flight_.add(1);
  request.scratch[0] = 0;
  request.scratch[1] = static_cast<uint64_t>(reactor_.now().ns);
  if (free_slots_ != nullptr) {
    start(request);
    return;
  }
  if (waiting_tail_ == nullptr) {
    waiting_head_ = &request;
  } else {
    waiting_tail_->scratch[0] = reinterpret_cast<uintptr_t>(&request);
  }
  waiting_tail_ = &request;
}

void UringDevice::start(IoRequest& request) {
  Slot& slot = *free_slots_;
  free_slots_ = slot.next_free;
  ++under_way_;
  slot.request = &request;
  slot.started = Time{static_cast<int64_t>(request.scratch[1])};
  slot.submit();
}

void UringDevice::Slot::submit() {
  IoRequest& io = *request;
  const int fd = device->fixed_file_ >= 0 ? device->fixed_file_ : device->file_.fd();
  const unsigned count = std::min<uint32_t>(io.iovec_count, IOV_MAX);
  device->reactor_.ring().submit(this, [&](io_uring_sqe& sqe) {
    switch (io.op) {
      case IoRequest::Op::read:
        if (count == 1) {
          io_uring_prep_read(&sqe, fd, io.iovecs[0].iov_base, static_cast<unsigned>(io.iovecs[0].iov_len),
                             io.offset + io.done);
        } else {
          io_uring_prep_readv(&sqe, fd, io.iovecs, count, io.offset + io.done);
        }
        break;
      case IoRequest::Op::write:
        if (count == 1) {
          io_uring_prep_write(&sqe, fd, io.iovecs[0].iov_base, static_cast<unsigned>(io.iovecs[0].iov_len),
                              io.offset + io.done);
        } else {
          io_uring_prep_writev(&sqe, fd, io.iovecs, count, io.offset + io.done);
        }
        break;
      case IoRequest::Op::flush:
        io_uring_prep_fsync(&sqe, fd, IORING_FSYNC_DATASYNC);
        break;
      case IoRequest::Op::discard:
        io_uring_prep_fallocate(&sqe, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(io.offset),
                                static_cast<off_t>(io.length));
        break;
    }
    if (device->fixed_file_ >= 0) io_uring_sqe_set_flags(&sqe, IOSQE_FIXED_FILE);
  });
}

void UringDevice::Slot::on_complete(RingOp& op, int32_t result, uint32_t) {
  auto& slot = static_cast<Slot&>(op);
  IoRequest& io = *slot.request;
  if (result == -EINTR || result == -EAGAIN) {
    slot.submit();
    return;
  }
  if (result < 0) {
    slot.device->finish(slot, slot.device->map_error(io, -result));
    return;
  }
  if (io.op == IoRequest::Op::read || io.op == IoRequest::Op::write) {
    if (result == 0) {  // the file is shorter than it was when it was opened
      slot.device->finish(slot, slot.device->map_error(io, EIO));
      return;
    }
    slot.advance(static_cast<uint64_t>(result));
    if (io.done < io.length) {
      slot.submit();
      return;
    }
  }
  slot.device->finish(slot, Errc::ok);
}

void UringDevice::Slot::advance(uint64_t n) {
  IoRequest& io = *request;
  ASSERT(n <= io.length - io.done);
  io.done += n;
  while (n > 0) {
    iovec& first = io.iovecs[0];
    const size_t part = std::min<uint64_t>(n, first.iov_len);
    first.iov_base = static_cast<std::byte*>(first.iov_base) + part;
    first.iov_len -= part;
    n -= part;
    if (first.iov_len == 0) {
      ++io.iovecs;
      --io.iovec_count;
    }
  }
}

Errc UringDevice::map_error(const IoRequest& request, int error) {
  // A device that can't discard after all keeps the data, which is as good.
  if (request.op == IoRequest::Op::discard && error == EOPNOTSUPP) return Errc::ok;
  static constexpr const char* kNames[] = {"read", "write", "flush", "discard"};
  LOG(error, "device '{}': {} of {} bytes at {} failed: {}", file_.path(), kNames[static_cast<size_t>(request.op)],
      request.length, request.offset, strerrordesc_np(error));
  errors_.add();
  return error == ENOSPC || error == EDQUOT ? Errc::no_space : Errc::io_error;
}

void UringDevice::finish(Slot& slot, Errc result) {
  IoRequest& request = *slot.request;
  const auto us = static_cast<uint64_t>((reactor_.now() - slot.started).us());
  switch (request.op) {
    case IoRequest::Op::read:
      reads_.add();
      read_bytes_.add(request.done);
      read_time_.record_us(us);
      break;
    case IoRequest::Op::write:
      writes_.add();
      written_bytes_.add(request.done);
      write_time_.record_us(us);
      break;
    case IoRequest::Op::flush:
      if (result != Errc::ok) file_.set_flush_failed();
      if (file_.flush_failed()) result = Errc::io_error;
      flushes_.add();
      flush_time_.record_us(us);
      break;
    case IoRequest::Op::discard:
      discards_.add();
      break;
  }
  in_flight_.add(-1);
  --under_way_;
  slot.request = nullptr;
  slot.next_free = std::exchange(free_slots_, &slot);
  // Next in line first: `complete` may submit more, which must not overtake it.
  if (waiting_head_ != nullptr) {
    IoRequest& next = *waiting_head_;
    waiting_head_ = reinterpret_cast<IoRequest*>(next.scratch[0]);
    if (waiting_head_ == nullptr) waiting_tail_ = nullptr;
    start(next);
  }
  request.result = result;
  request.complete(request);
}

}  // namespace cairn::engine
