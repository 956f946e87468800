// StreamGroup: the streams of one transport on one reactor, and when each of them is tried.
//
// A connection that is busy is hot: it is tried each round, which while polling is faster than any notification. One
// that stays quiet, or is one too many, costs nothing per round: it is watched, and its transport tells when something
// comes. What was queued in a round goes out at the start of the next one, together for each connection; answers made
// while receiving go out at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mem/pool.h"
#include "reactor/reactor.h"
#include "reactor/scope.h"
#include "srpc/stream/byte_stream.h"
#include "srpc/transport.h"

namespace cairn::srpc::stream {

class GroupedStream;

class StreamGroup : public PollGroup, private Poller {
 public:
  // Streams that are tried each round.
  struct Hot {
    size_t most = 8;
    uint32_t misses = 256;  // tries in vain, shared by the hot ones, before one cools down
  };
  // `requests`: what memory received requests may use (replies: the reserve, too). Reactor and pool outlive it.
  StreamGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests, Hot hot);
  StreamGroup(const StreamGroup&) = delete;
  StreamGroup& operator=(const StreamGroup&) = delete;
  // Its endpoints are gone, and the waits of the last ones have ended: see close().
  ~StreamGroup() override;
  // After the last endpoint was destroyed.
  Task<void> close() { return scope_.close(); }

  size_t poll(size_t budget) override;
  bool arm() override;
  void disarm() override {}

  Reactor& reactor() { return reactor_; }

 protected:
  std::unique_ptr<Endpoint> make_endpoint(std::unique_ptr<ByteStream> stream);
  // Of the group; closed by close().
  Scope& scope() { return scope_; }

 private:
  friend class GroupedStream;

  size_t poll() override { return poll(SIZE_MAX); }
  bool may_be_hot() const { return reactor_.spinning() && hot_count_ < hot_limits_.most; }
  void add_hot(GroupedStream& stream);
  // From whatever list it is in.
  void forget_dirty(GroupedStream& stream);
  void forget_hot(GroupedStream& stream);
  size_t flush_dirty();

  Reactor& reactor_;
  mem::Pool& pool_;
  mem::Purpose requests_;
  Hot hot_limits_;
  Scope scope_;
  std::vector<GroupedStream*> dirty_;     // null: gone meanwhile
  std::vector<GroupedStream*> flushing_;  // the same, while they are flushed
  std::vector<GroupedStream*> hot_;       // null: gone meanwhile, removed at the end of the round
  size_t hot_count_ = 0;
};

// A stream of a group. Whoever implements it calls received() for each receive that found something, let_go() before
// it gives up what watch() needs, and expect_more(true) when a notification came.
class GroupedStream : public ByteStream {
 public:
  ~GroupedStream() override { let_go(); }

  void start(StreamEvents& events) override;
  void set_receiving(bool wanted) override;
  void want_flush() override;

 protected:
  explicit GroupedStream(StreamGroup& group) : group_(group) {}

  // Before the first of the calls below.
  virtual void open() {}
  // From now on on_receivable() comes when there is something, what is there already included.
  virtual void watch() = 0;
  // It need not come.
  virtual void unwatch() = 0;
  // While hot, each round.
  virtual void try_now() { events_->on_receivable(); }

  // Hot if that is possible and `hot_wanted`, else watched.
  void expect_more(bool hot_wanted);
  void received() { received_ = true; }
  void let_go();
  StreamGroup& group() { return group_; }
  StreamEvents& events() { return *events_; }
  bool receiving() const { return receiving_; }
  bool hot() const { return hot_; }

 private:
  friend class StreamGroup;

  StreamGroup& group_;
  StreamEvents* events_ = nullptr;
  bool receiving_ = true;
  bool received_ = false;  // since the group last looked
  bool dirty_ = false;
  bool hot_ = false;
  uint32_t misses_ = 0;
};

}  // namespace cairn::srpc::stream
