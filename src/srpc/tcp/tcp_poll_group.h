// TcpPollGroup: SRPC over TCP on one reactor. Make one before the reactor runs, and pass it to the listener and the
// connectors of that reactor.
//
// A connection that is busy is hot: its socket is tried each round with a plain non-blocking receive, which while
// polling is faster than any notification. One that stays quiet, or is one too many, costs nothing per round: the ring
// tells when something comes. What was queued in a round goes out at the start of the next one, in one send for each
// connection; answers made while receiving go out at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "mem/pool.h"
#include "reactor/reactor.h"
#include "reactor/scope.h"
#include "srpc/transport.h"

namespace cairn::srpc::tcp {

class TcpStream;

class TcpPollGroup final : public PollGroup, private Poller {
 public:
  // `requests`: what memory received requests may use (replies: the reserve, too). Reactor and pool outlive it.
  TcpPollGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests = mem::Purpose::request);
  TcpPollGroup(const TcpPollGroup&) = delete;
  TcpPollGroup& operator=(const TcpPollGroup&) = delete;
  // Its endpoints are gone, and the waits of the last ones have ended: see close().
  ~TcpPollGroup() override;
  // After the last endpoint was destroyed.
  Task<void> close() { return scope_.close(); }

  // Takes over a connected socket.
  std::unique_ptr<Endpoint> make_endpoint(Fd fd, std::string peer);

  size_t poll(size_t budget) override;
  bool arm() override;
  void disarm() override {}

  Reactor& reactor() { return reactor_; }

 private:
  friend class TcpStream;
  static constexpr size_t kMostHot = 8;
  // Tries in vain, shared by the hot connections, before one cools down.
  static constexpr uint32_t kMisses = 256;

  size_t poll() override { return poll(SIZE_MAX); }
  void add_dirty(TcpStream& stream) { dirty_.push_back(&stream); }
  void add_hot(TcpStream& stream);
  bool may_be_hot() const { return reactor_.spinning() && hot_count_ < kMostHot; }
  // From whatever list it is in.
  void forget_dirty(TcpStream& stream);
  void forget_hot(TcpStream& stream);
  size_t flush_dirty();

  Reactor& reactor_;
  mem::Pool& pool_;
  mem::Purpose requests_;
  Scope scope_;
  std::vector<TcpStream*> dirty_;     // null: gone meanwhile
  std::vector<TcpStream*> flushing_;  // the same, while they are flushed
  std::vector<TcpStream*> hot_;       // null: gone meanwhile, removed at the end of the round
  size_t hot_count_ = 0;
};

}  // namespace cairn::srpc::tcp
