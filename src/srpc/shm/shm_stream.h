// ShmStream: two rings in shared memory as a ByteStream. While both sides poll, no system call is made; who waits sets
// a flag in the ring, and the other rings the bell: a byte on the socket on which they met.
//
// Where the client shares its arena the server moves payload by one copy between that and its own memory, while it
// holds both: what a network card would do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/metrics.h"
#include "srpc/posted.h"
#include "srpc/shm/byte_ring.h"
#include "srpc/shm/peer_memory.h"
#include "srpc/shm/segment.h"
#include "srpc/stream/socket_poll.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::shm {

class ShmPollGroup;

// A connection that no reactor drives at the moment.
struct Link {
  Fd socket;
  Segment segment;
  stream::Role side = stream::Role::client;
  std::string peer;
  bool shares_memory = false;                    // at the client: the server can reach its arena
  std::shared_ptr<PeerMemory> peer_memory = {};  // at the server: the client's arena, if it can be reached
  uint64_t written = 0;                          // positions in the rings
  uint64_t taken = 0;
};

class ShmStream final : public stream::GroupedStream, private stream::OneSided, private stream::SocketPoll::Events {
 public:
  ShmStream(ShmPollGroup& group, Link link);
  ~ShmStream() override;

  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void shutdown_send() override;
  const std::string& peer() const override { return link_.peer; }
  std::string_view transport() const override { return "shm"; }
  std::unique_ptr<DetachedEndpoint> detach() override;
  OneSided* one_sided() override;

 private:
  stream::Role role() const override { return link_.side; }
  bool name(const mem::BufChain& memory, size_t most, std::vector<stream::RemotePiece>& pieces) override;
  void keep(std::vector<mem::BufChain>&& memory) override;
  void begin(std::unique_ptr<stream::Transfer> transfer) override;
  // There is no wire on which a bit could flip.
  bool checked() const override { return false; }

  void open() override;
  void watch() override;
  void unwatch() override { consumer_.stop_waiting(); }
  void try_now() override;
  void on_poll_in(bool hung_up) override;
  void on_poll_out() override {}
  static void on_look_again(void* self);
  stream::Moved fail(const char* why);
  void hear_bell();
  void ring_bell();
  // False: this is gone.
  bool go_on_sending();
  void leave();

  ShmPollGroup& shm_group_;
  Link link_;
  std::vector<mem::BufChain> kept_;
  RingProducer producer_;
  RingConsumer consumer_;
  stream::SocketPoll* poll_ = nullptr;
  bool hung_up_ = false;
  const char* broken_ = nullptr;  // what nonsense the peer has written
  bool blocked_ = false;
  bool* gone_ = nullptr;  // set in the destructor
  Posted look_again_;
};

}  // namespace cairn::srpc::shm
