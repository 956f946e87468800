#include "mem/chain_io.h"

namespace cairn::mem {

Task<Result<void>> send_chain(Stream& stream, BufChain chain, CancelToken token) {
  detail::SendMemory memory(std::move(chain));
  co_return co_await stream.send_all(std::span(memory.vectors.data(), memory.vectors.size()), token);
}

}  // namespace cairn::mem
