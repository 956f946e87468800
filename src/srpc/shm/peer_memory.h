// PeerMemory: a client's arena as its server sees it: mapped, to be read and written directly.
//
// The client may write there at any time, so whatever comes from there is copied before it is looked at. It can't take
// the memory away: the file is sealed against shrinking and lies in memory (a hole in a file of huge pages, of which
// there may be none left, would kill its reader).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "srpc/stream/one_sided.h"

namespace cairn::srpc::shm {

class PeerMemory {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 40;

  // Errors: protocol_error (not a sealed memfd, an impossible size), those of mmap.
  static Result<std::shared_ptr<PeerMemory>> adopt(const Fd& memfd);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  ~PeerMemory();

  bool contains(const stream::RemotePiece& piece) const {
    return piece.address <= memory_.size() && piece.bytes <= memory_.size() - piece.address;
  }
  // Only if contains().
  std::byte* at(const stream::RemotePiece& piece) const { return memory_.data() + piece.address; }

 private:
  explicit PeerMemory(std::span<std::byte> memory) : memory_(memory) {}

  std::span<std::byte> memory_;
};

// The arenas of all clients of one listener. Connections of one client share one mapping.
class PeerMemories {
 public:
  Result<std::shared_ptr<PeerMemory>> adopt(const Fd& memfd);

 private:
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<PeerMemory>> known_;  // by device and inode
};

}  // namespace cairn::srpc::shm
