#include "gateway/s3/chain_aligner.h"

#include <algorithm>
#include <cstdint>

#include "mem/copy.h"
#include "reactor/deadline.h"

namespace cairn::s3 {
namespace {

// Blocks for what must be copied: large enough to be written at once, small enough to find a place.
constexpr size_t kBlock = 256 * 1024;

constexpr Duration kPatience = seconds(10);

bool page_aligned(const std::byte* data) { return reinterpret_cast<uintptr_t>(data) % mem::kPage == 0; }

}  // namespace

Task<Result<mem::Buf>> ChainAligner::take_block(CancelToken cancel) {
  if (auto now = pool_.try_alloc(kBlock, mem::Purpose::client)) co_return now;
  Deadline patience(pool_.loop(), pool_.loop().now() + kPatience, cancel);
  auto block = co_await pool_.alloc(kBlock, mem::Purpose::client, patience.token());
  if (block.code() == Errc::timed_out) co_return Error(Errc::busy, "memory for copies is short: try again");
  co_return block;
}

Task<Result<void>> ChainAligner::copy_in(std::span<const std::byte> bytes, mem::BufChain& out, CancelToken cancel) {
  while (!bytes.empty()) {
    if (!tail_) {
      CO_TRY(tail_, co_await take_block(cancel));
      tail_.truncate(0);
    }
    const size_t n = std::min(bytes.size(), tail_.tailroom());
    const size_t before = tail_.size();
    tail_.extend(n);
    mem::copy_payload(pool_.copied(), tail_.writable_bytes().subspan(before), bytes.first(n));
    bytes = bytes.subspan(n);
    if (tail_.tailroom() == 0) out.append(std::exchange(tail_, {}));
  }
  co_return Result<void>();
}

Task<Result<mem::BufChain>> ChainAligner::push(mem::BufChain chain, CancelToken cancel) {
  mem::BufChain out;
  for (const mem::Buf& buf : chain.slices()) {
    size_t at = 0;
    // A block that ends on a page boundary needn't be filled: what follows can pass by reference again.
    if (tail_ && tail_.size() % mem::kPage == 0 && page_aligned(buf.data())) out.append(std::exchange(tail_, {}));
    if (!tail_ && page_aligned(buf.data())) {
      at = buf.size() / mem::kPage * mem::kPage;
      out.append(buf.slice(0, at));
    }
    CO_TRY(co_await copy_in(buf.bytes().subspan(at), out, cancel));
  }
  co_return out;
}

}  // namespace cairn::s3
