#include "sim/net_moves.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "sim/net_wire.h"

namespace cairn::sim {

using srpc::stream::RemotePiece;
using srpc::stream::Role;
using srpc::stream::Transfer;

struct NetMoves::Pull {
  Pull(NetMoves& moves, std::unique_ptr<Transfer> pulled)
      : owner(&moves), transfer(std::move(pulled)), timer(&on_pulled, this) {}
  NetMoves* owner;
  std::unique_ptr<Transfer> transfer;
  Timer timer;
};

NetMoves::NetMoves(NetWire& wire, int side, SimLoop& loop, mem::Pool& pool)
    : wire_(wire), side_(side), loop_(loop), pool_(pool) {
  wire.show_memory(side, pool.memory());
}

NetMoves::~NetMoves() {
  for (auto& pull : pulls_) {
    loop_.disarm(pull->timer);
    pull->transfer->done(false);
  }
}

Role NetMoves::role() const { return side_ == 0 ? Role::client : Role::server; }

bool NetMoves::name(const mem::BufChain& memory, size_t most, std::vector<RemotePiece>& pieces) {
  if (memory.slices().size() > most) return false;
  for (const mem::Buf& buf : memory.slices()) {
    pieces.push_back({.address = static_cast<uint64_t>(buf.data() - pool_.memory().data()),
                      .bytes = static_cast<uint32_t>(buf.size()),
                      .key = 0});
  }
  return true;
}

void NetMoves::begin(std::unique_ptr<Transfer> transfer) {
  // A push is there before whatever is sent after it, so it may be there at once.
  if (transfer->direction == Transfer::Direction::push) return transfer->done(move(*transfer));
  pulls_.push_back(std::make_unique<Pull>(*this, std::move(transfer)));
  loop_.arm_in(pulls_.back()->timer, wire_.random_delay() + wire_.random_delay());
}

void NetMoves::on_pulled(void* self) {
  auto& pull = *static_cast<Pull*>(self);
  NetMoves& moves = *pull.owner;
  if (!moves.wire_.passes() && !moves.wire_.broken()) {
    moves.loop_.arm_in(pull.timer, milliseconds(1));
    return;
  }
  const auto at = std::ranges::find_if(moves.pulls_, [&](const auto& each) { return each.get() == &pull; });
  const std::unique_ptr<Pull> done = std::move(*at);
  moves.pulls_.erase(at);
  // Telling may end the connection, and this.
  done->transfer->done(moves.move(*done->transfer));
}

bool NetMoves::move(Transfer& transfer) {
  const std::span<std::byte> memory = wire_.shown_memory(1 - side_);
  if (wire_.broken() || memory.empty()) {
    wire_.lose();
    return false;
  }
  const bool pull = transfer.direction == Transfer::Direction::pull;
  wire_.count_move(pull);
  for (const RemotePiece& piece : transfer.remote) {
    ASSERT(piece.address + piece.bytes <= memory.size());
  }
  srpc::stream::for_each_run(transfer.local, transfer.remote, [&](auto local, const RemotePiece& piece, size_t offset) {
    std::byte* remote = memory.data() + piece.address + offset;
    auto* mine = const_cast<std::byte*>(local.data());
    // cairn-allow(memcpy): the simulated network card
    std::memcpy(pull ? mine : remote, pull ? remote : mine, local.size());
  });
  return true;
}

}  // namespace cairn::sim
