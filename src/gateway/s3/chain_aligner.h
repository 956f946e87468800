// ChainAligner: makes of any sequence of chains one that object::Writer takes: all but the last a multiple of 4 KiB, in
// 4 KiB-aligned slices. Whole aligned pages pass by reference; bytes are copied (and counted) only behind an odd edge,
// as when a copy begins in the midst of a page. When there is no memory for that for long, it gives up (Errc::busy):
// what it holds itself may be what others like it wait for.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/status.h"
#include "mem/buf_chain.h"
#include "mem/pool.h"
#include "reactor/cancel.h"
#include "reactor/task.h"

namespace cairn::s3 {

class ChainAligner {
 public:
  explicit ChainAligner(mem::Pool& pool) : pool_(pool) {}

  // The aligned bytes that `chain` completes; may be empty when they still wait for more.
  Task<Result<mem::BufChain>> push(mem::BufChain chain, CancelToken cancel);
  // What is left at the end: less than a block.
  mem::BufChain finish() { return mem::BufChain(std::exchange(tail_, {})); }

 private:
  Task<Result<mem::Buf>> take_block(CancelToken cancel);
  // Invariant between calls: tail_ is empty or starts a block of its own that isn't full yet.
  Task<Result<void>> copy_in(std::span<const std::byte> bytes, mem::BufChain& out, CancelToken cancel);

  mem::Pool& pool_;
  mem::Buf tail_;
};

}  // namespace cairn::s3
