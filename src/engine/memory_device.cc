#include "engine/memory_device.h"

#include <cstring>

#include "base/assert.h"

namespace cairn::engine {

MemoryDevice::MemoryDevice(Loop& loop, uint64_t size_bytes)
    : loop_(loop), size_(size_bytes), memory_(new std::byte[size_bytes]()) {
  ASSERT(size_bytes > 0);
  ASSERT(size_bytes % kBlockBytes == 0);
}

MemoryDevice::~MemoryDevice() { ASSERT(under_way_ == 0); }

void MemoryDevice::submit(IoRequest& request) {
  check_request(*this, request);
  ++requests_;
  ++under_way_;
  request.scratch[0] = reinterpret_cast<uintptr_t>(this);
  loop_.post(&run, &request);
}

void MemoryDevice::run(void* argument) {
  auto& request = *static_cast<IoRequest*>(argument);
  auto& device = *reinterpret_cast<MemoryDevice*>(request.scratch[0]);
  device.transfer(request);
  --device.under_way_;
  request.complete(request);
}

void MemoryDevice::transfer(IoRequest& request) {
  request.result = Errc::ok;
  std::byte* at = memory_.get() + request.offset;
  if (request.op == IoRequest::Op::discard) {
    // "Anything" may be read from a discarded range: something that no test takes for its data.
    std::memset(at, 0xdd, request.length);
    return;
  }
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    const iovec& part = request.iovecs[i];
    // cairn-allow(memcpy): plays the disk's own transfer, which no path of ours pays for
    std::memcpy(request.op == IoRequest::Op::read ? part.iov_base : at,
                request.op == IoRequest::Op::read ? at : part.iov_base, part.iov_len);
    at += part.iov_len;
  }
  request.done = request.length;
}

}  // namespace cairn::engine
