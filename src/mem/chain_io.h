// BufChains over sockets and streams, without copying.
//
//   CO_TRY(co_await send_chain(socket, std::move(chain), token));
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>
#include <utility>

#include "base/status.h"
#include "mem/buf_chain.h"
#include "reactor/cancel.h"
#include "reactor/socket.h"
#include "reactor/stream.h"
#include "reactor/task.h"

namespace cairn::mem {

namespace detail {

// What an awaiter's base class refers to, and so must be there before it.
struct SendMemory {
  explicit SendMemory(BufChain c) : chain(std::move(c)), vectors(chain.slices().size()) {
    chain.to_iovecs({vectors.data(), vectors.size()});
  }
  BufChain chain;
  boost::container::small_vector<iovec, BufChain::kInline> vectors;
};

class [[nodiscard]] SendChainAwaiter : private SendMemory, public cairn::detail::CompletionAwaiter {
 public:
  SendChainAwaiter(Socket& socket, BufChain chain, CancelToken token)
      : SendMemory(std::move(chain)),
        CompletionAwaiter(socket.core(), Kind::send_all, std::span(vectors.data(), vectors.size()), token) {}
};

}  // namespace detail

// Holds the memory until all of it is in the kernel.
inline detail::SendChainAwaiter send_chain(Socket& socket, BufChain chain, CancelToken token = {}) {
  return {socket, std::move(chain), token};
}
Task<Result<void>> send_chain(Stream& stream, BufChain chain, CancelToken token = {});

}  // namespace cairn::mem
