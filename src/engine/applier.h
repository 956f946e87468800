// Applier: the effects of committed entries on the chunk map and everything that hangs on it. Can't fail: what an entry
// needs was taken when it was admitted.
#pragma once

#include "engine/shard_state.h"

namespace cairn::engine {

class Applier {
 public:
  explicit Applier(ShardState& state) : state_(state) {}

  void apply(PendingEntry& entry);

 private:
  void write(PendingEntry& entry);
  void write_units(PendingEntry& entry, Chunk& chunk);
  void write_inline(PendingEntry& entry, Chunk& chunk);
  void remove(const PendingEntry& entry);
  void discard(const PendingEntry& entry);
  void give_up_unit(UnitSlot& slot, Lsn by);
  bool make_home(PendingEntry& entry, UnitSlot& slot);

  ShardState& state_;
};

}  // namespace cairn::engine
