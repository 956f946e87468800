#include "engine/block_device.h"

#include "base/assert.h"

namespace cairn::engine {
namespace {

constexpr int kPatientTries = 4;
constexpr Duration kPatientPause = milliseconds(5);

}  // namespace

Task<Result<void>> read_patiently(BlockDevice& device, uint64_t offset, mem::BufChain into) {
  for (int tries = 1;; ++tries) {
    Result<void> done = co_await read(device, offset, into);
    if (done || tries == kPatientTries) co_return done;
    CO_TRY(co_await device.loop().sleep(kPatientPause));
  }
}

void check_request(const BlockDevice& device, const IoRequest& request) {
  ASSERT(request.complete != nullptr);
  if (request.op == IoRequest::Op::flush) return;
  ASSERT(request.length > 0);
  ASSERT(request.offset % kBlockBytes == 0);
  ASSERT(request.length % kBlockBytes == 0);
  ASSERT(request.offset <= device.size_bytes());
  ASSERT(request.length <= device.size_bytes() - request.offset);
  if (request.op == IoRequest::Op::discard) return;
  uint64_t total = 0;
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    ASSERT(reinterpret_cast<uintptr_t>(request.iovecs[i].iov_base) % kBlockBytes == 0);
    ASSERT(request.iovecs[i].iov_len % kBlockBytes == 0);
    total += request.iovecs[i].iov_len;
  }
  ASSERT(total == request.length);
}

}  // namespace cairn::engine
