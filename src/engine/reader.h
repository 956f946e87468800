// Reader: bytes of chunks, from memory or the device, never unchecked.
//
// A read looks everything up at once and then waits for the device without holding anything but a ticket that keeps the
// units it reads from being given to others. Meanwhile a page may be replaced, and a checkpoint may write it home in
// place: then its bytes don't match the CRC that was looked up, and the read looks it up again. Bytes that don't match
// although nothing changed are rotten, and are never served.
#pragma once

#include "engine/read_plan.h"
#include "engine/shard_state.h"
#include "reactor/cancel.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::engine {

class Reader {
 public:
  // Told when a read is over: units may have waited for it.
  class Listener {
   public:
    virtual void on_read_done() = 0;

   protected:
    ~Listener() = default;
  };

  Reader(ShardState& state, Listener& listener) : state_(state), listener_(listener), idle_(state.context.loop) {}

  // Needs one block for zeroes.
  Task<Result<void>> start();
  // New reads are refused (closed), and those under way put nothing into the cache any more.
  void refuse() { refusing_ = true; }
  // Waits for the reads under way. Call refuse() before.
  Task<void> stop();
  Task<Result<mem::BufChain>> read(ChunkId chunk, uint32_t offset, uint32_t length, CancelToken token,
                                   mem::Purpose purpose);

 private:
  enum class Verdict : uint8_t { good, changed, rotten };
  class Ticket;
  class UnderWay;

  Task<Result<Verdict>> fetch(ChunkId id, const ReadPlan& plan, mem::BufChain memory);
  Verdict check(ChunkId id, const ReadPlan& plan, const mem::BufChain& memory);
  void report(ChunkId id, const ReadPiece& piece, uint32_t index) const;
  void keep(ChunkId id, const ReadPlan& plan, const mem::BufChain& memory);
  void keep_piece(const Chunk& chunk, const ReadPlan& plan, const ReadPiece& piece, const mem::BufChain& memory);
  mem::BufChain assemble(const ReadPlan& plan, mem::BufChain memory) const;

  ShardState& state_;
  Listener& listener_;
  mem::Buf zeroes_;  // there as long as a read is under way
  bool refusing_ = false;
  uint64_t under_way_ = 0;
  Event idle_;
};

}  // namespace cairn::engine
