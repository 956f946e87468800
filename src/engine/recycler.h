// Recycler: gives units that nobody needs any more back to the allocator, discarding them on the device first when it
// can (an SSD that knows what is free stays fast). In the background: a big delete releases millions at once.
#pragma once

#include "engine/shard_state.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::engine {

class Recycler {
 public:
  class Listener {
   public:
    virtual void on_units_freed() = 0;

   protected:
    ~Listener() = default;
  };

  Recycler(ShardState& state, Listener& listener) : state_(state), listener_(listener), wake_(state.context.loop) {}

  // Units may have been released, by a checkpoint or the end of a read.
  void wake() { wake_.set(); }
  // Until stop(); spawn it once.
  Task<void> run();
  void stop() {
    stopping_ = true;
    wake();
  }

 private:
  bool wants_discard() const;
  Task<void> discard(std::vector<Unit> units);

  ShardState& state_;
  Listener& listener_;
  Event wake_;
  bool stopping_ = false;
};

}  // namespace cairn::engine
