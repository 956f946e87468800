// An entry between append and apply: durable or on its way to be, and without any effect yet.
#pragma once

#include <cstdint>

#include "engine/journal_format.h"
#include "engine/types.h"
#include "mem/buf_chain.h"

namespace cairn::engine {

struct PendingEntry {
  Record record;     // its body is given up once it is encoded
  Lsn batch{};       // where its batch lies, once there is one
  Lsn inline_lsn{};  // where its first inline page lies in the journal
  bool durable = false;

  // A bit per inline page: found rotten at replay; applying it makes the page unreadable instead of wrong.
  uint32_t rotten_pages = 0;
  // Units held back for inline pages, for those of them that will have no home yet; the rest goes back at apply.
  uint32_t reserved_units = 0;
  // After a replay: the checkpoint has its effects already (kv_batch: in the store; chunk_*: in the chunk's map, which
  // was loaded from a checkpoint that was cut off).
  bool covered = false;

  // Whole pages, for the cache and for reads before the checkpoint; empty after a replay.
  mem::BufChain inline_payload;
  mem::BufChain direct_payload;
};

}  // namespace cairn::engine
