// NetWire: one simulated connection: two directions of bytes under way, and the two ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reactor/timer.h"
#include "sim/net.h"
#include "sim/net_moves.h"
#include "srpc/posted.h"
#include "srpc/stream/byte_stream.h"

namespace cairn::sim {

class NetStream;

class NetWire {
 public:
  NetWire(Net& net, uint64_t number, Net::Node a, Net::Node b);
  ~NetWire();

  // `side` sends: bytes taken. 0: no room.
  size_t send(int side, std::span<iovec> from);
  void end(int side);
  // `side` receives.
  srpc::stream::Moved receive(int side, std::span<iovec> into);
  // When `side` has something to receive; never() when nothing is under way.
  Time next_arrival(int side) const;

  // Both ends hear of it, each after a while; what is under way arrives in part.
  void lose();
  void go_silent() { silent_ = true; }
  // A cut between the ends began or ended.
  void cut_changed();
  // The server moves payload.
  bool one_sided() const { return one_sided_; }
  bool broken() const { return broken_; }
  bool passes() const;
  Duration random_delay();
  void count_move(bool pull) { ++(pull ? net_.pulls_ : net_.pushes_); }
  // What of a side the other may reach; none once it is gone.
  void show_memory(int side, std::span<std::byte> memory) { memory_[static_cast<size_t>(side)] = memory; }
  std::span<std::byte> shown_memory(int side) const {
    return gone_[static_cast<size_t>(side)] ? std::span<std::byte>() : memory_[static_cast<size_t>(side)];
  }
  bool between(Net::Node a, Net::Node b) const {
    return (a == nodes_[0] && b == nodes_[1]) || (b == nodes_[0] && a == nodes_[1]);
  }
  bool touches(Net::Node node) const { return nodes_[0] == node || nodes_[1] == node; }
  Net::Node node(int side) const { return nodes_[static_cast<size_t>(side)]; }
  Net& net() { return net_; }

  void attach(int side, NetStream* stream) { ends_[static_cast<size_t>(side)] = stream; }
  // The stream is closed: the other side hears of it behind what was sent before.
  void detach(int side);

 private:
  struct Piece {
    Time arrives;
    std::vector<std::byte> bytes;
    size_t taken = 0;
  };
  struct Direction {
    std::deque<Piece> pieces;
    size_t bytes = 0;  // in them
    Time last_arrival;
    bool ended = false;
    Time end_arrives = Time::never();
    bool sender_waits = false;
  };
  // What `side` sends.
  Direction& from(int side) { return directions_[static_cast<size_t>(side)]; }
  const Direction& towards(int side) const { return directions_[static_cast<size_t>(1 - side)]; }
  Direction& towards(int side) { return directions_[static_cast<size_t>(1 - side)]; }
  NetStream* end_of(int side) { return ends_[static_cast<size_t>(side)]; }
  Time now() const;
  // When what is sent now arrives, behind everything before it.
  Time arrival(Direction& direction);

  Net& net_;
  uint64_t number_;
  std::array<Net::Node, 2> nodes_;
  std::array<NetStream*, 2> ends_{};  // null: not there yet, or gone
  std::array<bool, 2> gone_{};
  std::array<std::span<std::byte>, 2> memory_{};
  std::array<Direction, 2> directions_;
  const bool one_sided_;
  bool broken_ = false;
  bool silent_ = false;
};

class NetStream final : public srpc::stream::ByteStream {
 public:
  // `pool`: of this end, if the server moves payload.
  NetStream(std::shared_ptr<NetWire> wire, int side, SimLoop& loop, mem::Pool* pool);
  ~NetStream() override;

  void start(srpc::stream::StreamEvents& events) override;
  srpc::stream::Moved receive(std::span<iovec> vectors) override { return wire_->receive(side_, vectors); }
  srpc::stream::Moved send(std::span<iovec> vectors) override;
  void set_receiving(bool wanted) override;
  void want_flush() override { flush_.post(); }
  void shutdown_send() override { wire_->end(side_); }
  const std::string& peer() const override { return peer_; }
  srpc::stream::OneSided* one_sided() override { return moves_ ? &*moves_ : nullptr; }

  // Something is under way to this end, or has changed.
  void look();
  void room_again(Time at) { loop_.arm(sendable_, at); }

 private:
  static void on_arrival(void* self);
  static void on_room(void* self);
  static void on_flush(void* self);

  std::shared_ptr<NetWire> wire_;
  int side_;
  SimLoop& loop_;
  std::string peer_;
  srpc::stream::StreamEvents* events_ = nullptr;
  bool receiving_ = true;
  Timer arrival_;
  Timer sendable_;
  srpc::Posted flush_;
  std::optional<NetMoves> moves_;
};

}  // namespace cairn::sim
