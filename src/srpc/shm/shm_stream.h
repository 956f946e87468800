// ShmStream: two rings in shared memory as a ByteStream. While both sides poll, no system call is made; who waits sets
// a flag in the ring, and the other rings the bell: a byte on the socket on which they met.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/metrics.h"
#include "srpc/posted.h"
#include "srpc/shm/byte_ring.h"
#include "srpc/shm/segment.h"
#include "srpc/stream/socket_poll.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::shm {

class ShmPollGroup;

enum class Side : uint8_t { client, server };

// A connection that no reactor drives at the moment.
struct Link {
  Fd socket;
  Segment segment;
  Side side = Side::client;
  std::string peer;
  uint64_t written = 0;  // positions in the rings
  uint64_t taken = 0;
};

class ShmStream final : public stream::GroupedStream, private stream::SocketPoll::Events {
 public:
  ShmStream(ShmPollGroup& group, Link link);
  ~ShmStream() override;

  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void shutdown_send() override;
  const std::string& peer() const override { return link_.peer; }
  std::string_view transport() const override { return "shm"; }
  std::unique_ptr<DetachedEndpoint> detach() override;

 private:
  void open() override;
  void watch() override;
  void unwatch() override { consumer_.stop_waiting(); }
  void try_now() override;
  void on_poll_in(bool hung_up) override;
  void on_poll_out() override {}
  static void on_look_again(void* self);
  stream::Moved fail();
  void hear_bell();
  void ring_bell();
  // False: this is gone.
  bool go_on_sending();
  void leave();

  Counter& bells_;
  Link link_;
  RingProducer producer_;
  RingConsumer consumer_;
  stream::SocketPoll* poll_ = nullptr;
  bool hung_up_ = false;
  bool broken_ = false;  // the peer has written nonsense
  bool blocked_ = false;
  bool* gone_ = nullptr;  // set in the destructor
  Posted look_again_;
};

}  // namespace cairn::srpc::shm
