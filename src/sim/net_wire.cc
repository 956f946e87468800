#include "sim/net_wire.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cairn::sim {

using srpc::stream::Moved;

namespace {

size_t total(std::span<const iovec> vectors) {
  size_t bytes = 0;
  for (const iovec& vector : vectors) bytes += vector.iov_len;
  return bytes;
}

}  // namespace

NetWire::NetWire(Net& net, uint64_t number, Net::Node a, Net::Node b)
    : net_(net), number_(number), nodes_{a, b}, one_sided_(net.faults_.one_sided) {}

NetWire::~NetWire() { net_.wires_.erase(number_); }

Time NetWire::now() const { return net_.simulator_.now(); }

bool NetWire::passes() const { return !silent_ && !net_.is_cut(nodes_[0], nodes_[1]); }

Time NetWire::arrival(Direction& direction) {
  if (!passes()) return Time::never();
  direction.last_arrival = std::max(direction.last_arrival, now() + random_delay());
  return direction.last_arrival;
}

Duration NetWire::random_delay() {
  const NetFaults& faults = net_.faults_;
  const auto spread = static_cast<uint64_t>((faults.delay_max - faults.delay_min).ns);
  return faults.delay_min + nanoseconds(static_cast<int64_t>(net_.simulator_.rng().below(spread + 1)));
}

size_t NetWire::send(int side, std::span<iovec> vectors) {
  Direction& direction = from(side);
  const NetFaults& faults = net_.faults_;
  if (direction.bytes >= faults.buffer_bytes) {
    direction.sender_waits = true;
    return 0;
  }
  Rng& rng = net_.simulator_.rng();
  const size_t room = std::min(faults.buffer_bytes - direction.bytes, 1 + rng.below(faults.piece_bytes));
  Piece piece{};
  piece.bytes.reserve(std::min(room, total(vectors)));
  for (const iovec& vector : vectors) {
    const auto* bytes = static_cast<const std::byte*>(vector.iov_base);
    const size_t n = std::min(vector.iov_len, room - piece.bytes.size());
    piece.bytes.insert(piece.bytes.end(), bytes, bytes + n);
    if (piece.bytes.size() == room) break;
  }
  const size_t sent = piece.bytes.size();
  ASSERT(sent > 0);
  net_.simulator_.trace().event("net.send", number_, static_cast<uint64_t>(side), sent, Trace::hash_of(piece.bytes));
  direction.bytes += sent;
  piece.arrives = arrival(direction);
  direction.pieces.push_back(std::move(piece));
  if (rng.chance(faults.loss_ppm, 1'000'000)) {
    lose();
  } else if (NetStream* peer = end_of(1 - side)) {
    peer->look();
  } else if (gone_[static_cast<size_t>(1 - side)] && passes()) {
    // Nobody is there any more: the answer is a reset.
    lose();
  }
  return sent;
}

void NetWire::end(int side) {
  Direction& direction = from(side);
  if (std::exchange(direction.ended, true)) return;
  direction.end_arrives = arrival(direction);
  if (NetStream* peer = end_of(1 - side)) peer->look();
}

void NetWire::detach(int side) {
  attach(side, nullptr);
  gone_[static_cast<size_t>(side)] = true;
  end(side);
}

Time NetWire::next_arrival(int side) const {
  if (broken_) return now();
  const Direction& direction = towards(side);
  if (!direction.pieces.empty()) return direction.pieces.front().arrives;
  return direction.ended ? direction.end_arrives : Time::never();
}

Moved NetWire::receive(int side, std::span<iovec> into) {
  Direction& direction = towards(side);
  size_t limit = 1 + net_.simulator_.rng().below(net_.faults_.piece_bytes);
  size_t got = 0;
  for (iovec& vector : into) {
    auto* to = static_cast<std::byte*>(vector.iov_base);
    size_t room = std::min(vector.iov_len, limit - got);
    while (room > 0 && !direction.pieces.empty() && direction.pieces.front().arrives <= now()) {
      Piece& piece = direction.pieces.front();
      const size_t n = std::min(room, piece.bytes.size() - piece.taken);
      to = std::copy_n(piece.bytes.begin() + static_cast<ptrdiff_t>(piece.taken), n, to);
      piece.taken += n;
      room -= n;
      got += n;
      if (piece.taken == piece.bytes.size()) direction.pieces.pop_front();
    }
    if (got == limit) break;
  }
  direction.bytes -= got;
  if (got > 0) {
    if (std::exchange(direction.sender_waits, false)) {
      if (NetStream* sender = end_of(1 - side)) sender->room_again(now() + net_.faults_.delay_min);
    }
    // More may be there: a short receive says nothing about the rest.
    return {Moved::How::some, got, {}, true};
  }
  if (broken_) return {Moved::How::failed, 0, "recv: Connection reset by peer"};
  if (direction.pieces.empty() && direction.ended && direction.end_arrives <= now()) return {Moved::How::end};
  return {Moved::How::would_block};
}

void NetWire::lose() {
  if (std::exchange(broken_, true)) return;
  net_.simulator_.trace().event("net.lost", number_);
  Rng& rng = net_.simulator_.rng();
  for (Direction& direction : directions_) {
    // A part of what was under way arrives before the end.
    size_t keep = direction.pieces.empty() ? 0 : rng.below(direction.pieces.size() + 1);
    direction.pieces.resize(keep);
    for (Piece& piece : direction.pieces) piece.arrives = std::min(piece.arrives, now());
  }
  for (NetStream* stream : ends_) {
    if (stream != nullptr) stream->look();
    if (stream != nullptr) stream->room_again(now());
  }
}

void NetWire::cut_changed() {
  if (!passes()) {
    // What is under way is sent again until it gets through.
    for (Direction& direction : directions_) {
      for (Piece& piece : direction.pieces) {
        if (piece.arrives > now()) piece.arrives = Time::never();
      }
      if (direction.ended && direction.end_arrives > now()) direction.end_arrives = Time::never();
    }
  } else {
    for (Direction& direction : directions_) {
      for (Piece& piece : direction.pieces) {
        if (piece.arrives == Time::never()) piece.arrives = arrival(direction);
      }
      if (direction.ended && direction.end_arrives == Time::never()) direction.end_arrives = arrival(direction);
    }
  }
  for (NetStream* stream : ends_) {
    if (stream != nullptr) stream->look();
  }
}

NetStream::NetStream(std::shared_ptr<NetWire> wire, int side, SimLoop& loop, mem::Pool* pool)
    : wire_(std::move(wire)),
      side_(side),
      loop_(loop),
      peer_("sim:" + std::to_string(wire_->node(1 - side))),
      arrival_(&on_arrival, this),
      sendable_(&on_room, this),
      flush_(loop, &on_flush, this) {
  wire_->attach(side_, this);
  if (pool != nullptr) moves_.emplace(*wire_, side_, loop_, *pool);
}

NetStream::~NetStream() {
  loop_.disarm(arrival_);
  loop_.disarm(sendable_);
  moves_.reset();
  wire_->detach(side_);
}

void NetStream::start(srpc::stream::StreamEvents& events) {
  events_ = &events;
  look();
}

void NetStream::look() {
  if (events_ == nullptr || !receiving_) return;
  const Time next = wire_->next_arrival(side_);
  if (next == Time::never()) {
    loop_.disarm(arrival_);
  } else {
    loop_.arm(arrival_, std::max(next, loop_.now()));
  }
}

void NetStream::set_receiving(bool wanted) {
  receiving_ = wanted;
  if (wanted) {
    look();
  } else {
    loop_.disarm(arrival_);
  }
}

Moved NetStream::send(std::span<iovec> vectors) {
  if (wire_->broken()) return {Moved::How::failed, 0, "send: Connection reset by peer"};
  const size_t sent = wire_->send(side_, vectors);
  if (sent == 0) return {Moved::How::would_block};
  return {Moved::How::some, sent};
}

void NetStream::on_arrival(void* self) {
  auto& stream = *static_cast<NetStream*>(self);
  // The event may end the stream: what must be done afterwards is done before. A moment later there may be more.
  const Time next = stream.wire_->next_arrival(stream.side_);
  if (next == Time::never()) return;
  stream.loop_.arm(stream.arrival_, std::max(next, stream.loop_.now()) + microseconds(1));
  stream.events_->on_receivable();
}

void NetStream::on_room(void* self) {
  auto& stream = *static_cast<NetStream*>(self);
  if (stream.events_ != nullptr) stream.events_->on_sendable();
}

void NetStream::on_flush(void* self) { static_cast<NetStream*>(self)->events_->on_flush(); }

}  // namespace cairn::sim
