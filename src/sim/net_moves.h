// NetMoves: what a simulated network card does for one end of a connection: the server's end moves payload between its
// own memory and what the client has named (srpc/stream/one_sided.h).
//
// Faults, and why the system must survive them:
//   late       a pull takes a random time, so that pulls end in any order, and in a cut they don't end
//   never      the connection breaks, or its client's end goes, before a pull is complete
// What is pulled is read at the end of its time: memory that its client has given away meanwhile shows as a wrong
// payload, because nothing else would.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "mem/pool.h"
#include "reactor/timer.h"
#include "sim/simulator.h"
#include "srpc/stream/one_sided.h"

namespace cairn::sim {

class NetWire;

class NetMoves final : public srpc::stream::OneSided {
 public:
  // `pool`: of this end. The wire outlives it.
  NetMoves(NetWire& wire, int side, SimLoop& loop, mem::Pool& pool);
  NetMoves(const NetMoves&) = delete;
  NetMoves& operator=(const NetMoves&) = delete;
  ~NetMoves();

  srpc::stream::Role role() const override;
  bool name(const mem::BufChain& memory, size_t most, std::vector<srpc::stream::RemotePiece>& pieces) override;
  // Once this end is gone, nothing reaches its memory.
  void keep(std::vector<mem::BufChain>&&) override {}
  void begin(std::unique_ptr<srpc::stream::Transfer> transfer) override;
  bool checked() const override { return true; }

 private:
  struct Pull;

  static void on_pulled(void* pull);
  // False: the connection is lost.
  bool move(srpc::stream::Transfer& transfer);

  NetWire& wire_;
  int side_;
  SimLoop& loop_;
  mem::Pool& pool_;
  std::list<std::unique_ptr<Pull>> pulls_;
};

}  // namespace cairn::sim
