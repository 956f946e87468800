// Stream: a connection that carries bytes in both directions, whatever carries it: a socket, TLS, or memory in tests.
// For protocols whose cost per call doesn't show (HTTP); SRPC uses Socket itself.
//
// One operation per direction at a time. Memory stays in place until the operation has ended.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/socket.h"
#include "reactor/task.h"

namespace cairn {

class Stream {
 public:
  virtual ~Stream() = default;

  // Whatever is there, at least one byte; 0: the peer has finished sending. Errors: closed, cancelled, timed_out, ...
  virtual Task<Result<size_t>> recv(std::span<std::byte> into, CancelToken token) = 0;
  // As recv, but the bytes stay.
  virtual Task<Result<size_t>> peek(std::span<std::byte> into, CancelToken token) = 0;
  virtual Task<Result<size_t>> recv_vectors(std::span<iovec> into, CancelToken token) = 0;
  // Everything. The entries are changed on the way.
  virtual Task<Result<void>> send_all(std::span<iovec> from, CancelToken token) = 0;
  // The peer's receives end with 0 after what was sent.
  virtual void shutdown_send() = 0;
  // Operations under way end with Errc::closed.
  virtual void close() = 0;
  // For logs: where the peer is.
  virtual std::string peer() const = 0;

  // A convenience over the above.
  Task<Result<void>> send_all(std::span<const std::byte> from, CancelToken token);
  // Exactly into.size() bytes. Errc::closed when the peer ends before.
  Task<Result<void>> recv_all(std::span<std::byte> into, CancelToken token);
};

// A stream over a socket.
class SocketStream final : public Stream {
 public:
  explicit SocketStream(Socket socket) : socket_(std::move(socket)) {}

  using Stream::send_all;
  Task<Result<size_t>> recv(std::span<std::byte> into, CancelToken token) override;
  Task<Result<size_t>> peek(std::span<std::byte> into, CancelToken token) override;
  Task<Result<size_t>> recv_vectors(std::span<iovec> into, CancelToken token) override;
  Task<Result<void>> send_all(std::span<iovec> from, CancelToken token) override;
  void shutdown_send() override { socket_.shutdown_send(); }
  void close() override { socket_.close(); }
  std::string peer() const override { return socket_.peer().to_string(); }
  Socket& socket() { return socket_; }

 private:
  Socket socket_;
};

// Two connected ends in memory, on one loop. Each direction holds up to `capacity` bytes; a sender waits for room.
std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> make_pipe(Loop& loop, size_t capacity = 65536);

}  // namespace cairn
