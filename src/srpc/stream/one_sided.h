// OneSided: what some streams can do beside carrying bytes: the server of a connection reaches memory that its client
// has named (RDMA: READ and WRITE; shared memory: direct access). Only servers do that, so no memory of a server is
// ever open to a client, and the server decides when it has buffers for a payload.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/endian.h"
#include "mem/buf_chain.h"

namespace cairn::srpc::stream {

// A piece of the client's memory as it stands on the wire. What address and key mean is the transport's. A server
// trusts none of it.
struct RemotePiece {
  Le64 address;  // rdma: virtual address; shm: offset in the memory that the client has shared
  Le32 bytes;
  Le32 key;  // rdma: rkey; shm: 0
};
static_assert(sizeof(RemotePiece) == 16 && alignof(RemotePiece) == 1);

// One access, from its begin to its completion. It owns the memory of this end meanwhile, whatever becomes of the
// connection: a device may still use it. Both sides hold the same number of bytes.
class Transfer {
 public:
  enum class Direction : uint8_t { pull, push };  // from the client, to the client

  Transfer(Direction direction, mem::BufChain&& local, std::vector<RemotePiece>&& remote)
      : direction(direction), local(std::move(local)), remote(std::move(remote)) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  virtual ~Transfer() = default;

  // Called once, by the stream's thread, perhaps inside begin(); then it is destroyed. With false the connection is
  // about to end: the stream fails by itself.
  virtual void done(bool ok) = 0;

  const Direction direction;
  mem::BufChain local;
  const std::vector<RemotePiece> remote;
};

// Which end of a connection: the one that names its memory, or the one that moves payload.
enum class Role : uint8_t { client, server };

class OneSided {
 public:
  virtual Role role() const = 0;
  // At a client. Appends the pieces that `memory` consists of. False when some of it isn't known to the transport, or
  // is in more than `most` pieces: it can't be named.
  virtual bool name(const mem::BufChain& memory, size_t most, std::vector<RemotePiece>& pieces) = 0;
  // At a client, when the connection ends: memory that was named and not answered. It is kept until the server can't
  // reach it any more, which may be after the stream is gone.
  virtual void keep(std::vector<mem::BufChain>&& memory) = 0;
  // At a server. Transfers begin in the order of these calls. What is sent on the stream after a push was begun arrives
  // after it. Pieces that reach beyond what the client has shared end the connection.
  virtual void begin(std::unique_ptr<Transfer> transfer) = 0;
  // Payload that is moved this way has checksums.
  virtual bool checked() const = 0;

 protected:
  ~OneSided() = default;
};

// Calls `run(local, piece, offset in piece)` for the longest runs that are contiguous at both ends.
template <typename Run>
void for_each_run(const mem::BufChain& local, std::span<const RemotePiece> remote, Run run) {
  size_t piece = 0;
  size_t offset = 0;  // in it
  for (const mem::Buf& buf : local.slices()) {
    for (size_t at = 0; at < buf.size();) {
      while (offset == remote[piece].bytes) {
        ++piece;
        offset = 0;
        ASSERT(piece < remote.size());
      }
      const size_t n = std::min<size_t>(buf.size() - at, remote[piece].bytes - offset);
      run(buf.bytes().subspan(at, n), remote[piece], offset);
      at += n;
      offset += n;
    }
  }
}

}  // namespace cairn::srpc::stream
