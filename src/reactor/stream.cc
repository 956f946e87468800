#include "reactor/stream.h"

namespace cairn {

Task<Result<void>> Stream::send_all(std::span<const std::byte> from, CancelToken token) {
  iovec vector{const_cast<std::byte*>(from.data()), from.size()};
  co_return co_await send_all(std::span(&vector, 1), token);
}

Task<Result<void>> Stream::recv_all(std::span<std::byte> into, CancelToken token) {
  while (!into.empty()) {
    CO_TRY(const size_t n, co_await recv(into, token));
    if (n == 0) co_return Error(Errc::closed, "the peer ended the connection in the middle");
    into = into.subspan(n);
  }
  co_return Result<void>();
}

Task<Result<size_t>> SocketStream::recv(std::span<std::byte> into, CancelToken token) {
  co_return co_await socket_.recv(into, token);
}
Task<Result<size_t>> SocketStream::peek(std::span<std::byte> into, CancelToken token) {
  co_return co_await socket_.peek(into, token);
}
Task<Result<size_t>> SocketStream::recv_vectors(std::span<iovec> into, CancelToken token) {
  co_return co_await socket_.recv_vectors(into, token);
}
Task<Result<void>> SocketStream::send_all(std::span<iovec> from, CancelToken token) {
  co_return co_await socket_.send_all(from, token);
}

}  // namespace cairn
