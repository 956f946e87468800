// Bytes of metadata that stand in a message's tail when they are few, and in its data when they are many: most keys and
// records are small and then need no memory of their own.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "mem/pool.h"
#include "reactor/task.h"
#include "replica/methods.h"
#include "srpc/message.h"

namespace cairn::replica {

// A chain that holds `bytes`.
inline Task<Result<mem::BufChain>> metadata_chain(mem::Pool* pool, std::string_view bytes, mem::Purpose purpose,
                                                  CancelToken cancel) {
  if (bytes.empty()) co_return mem::BufChain();
  CO_TRY(mem::BufChain chain, co_await pool->alloc_chain(bytes.size(), purpose, cancel));
  for (const mem::Buf& slice : chain.slices()) {
    mem::Buf writable = slice;
    // cairn-allow(memcpy): records and keys, not payload
    std::memcpy(writable.writable(), bytes.data(), slice.size());
    bytes.remove_prefix(slice.size());
  }
  co_return chain;
}

inline std::string metadata_bytes(const mem::BufChain& chain) {
  std::string out(chain.size(), '\0');
  chain.copy_metadata_to(std::as_writable_bytes(std::span(out)));
  return out;
}

template <srpc::Metadata T>
Task<Result<void>> put_small_or_data(srpc::Message<T>* message, mem::Pool* pool, std::string bytes,
                                     mem::Purpose purpose, CancelToken cancel) {
  if (bytes.size() <= methods::kSmallBytes) {
    message->tail = std::move(bytes);
  } else {
    CO_TRY(message->data, co_await metadata_chain(pool, bytes, purpose, cancel));
  }
  co_return Result<void>{};
}

template <srpc::Metadata T>
std::string take_small_or_data(srpc::Message<T>& message) {
  if (message.data.empty()) return std::move(message.tail);
  std::string out = metadata_bytes(message.data);
  message.data.clear();
  return out;
}

}  // namespace cairn::replica
