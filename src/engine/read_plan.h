// Where each part of a read comes from, as the chunk map has it at one moment.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>

#include "base/status.h"
#include "engine/shard_state.h"
#include "mem/buf_chain.h"

namespace cairn::engine {

// A run of pages from one source. Runs of `device` and `journal` hold the CRCs their pages had.
struct ReadPiece {
  enum class Source : uint8_t { zero, memory, device, journal };
  Source source = Source::zero;
  uint32_t first_page = 0;  // of the chunk
  uint32_t pages = 0;
  mem::Buf memory;      // memory
  HomePage home{};      // device: of the first page; the others follow
  Lsn lsn{};            // journal: always one page
  uint32_t crc_at = 0;  // device, journal: of the first page's CRC in ReadPlan::crcs
};

struct ReadPlan {
  boost::container::small_vector<ReadPiece, 2> pieces;  // in order, without gaps
  boost::container::small_vector<uint32_t, 16> crcs;
  uint64_t device_bytes = 0;  // of memory that has to be read into
};

// Of whole pages [first, first + count) of the chunk. corrupt: one of them is lost.
Result<ReadPlan> plan_read(ShardState& state, const Chunk& chunk, uint32_t first, uint32_t count);

// Whether the page at `index` of a device or journal piece is still where the plan found it, with the same CRC. If it
// is, and its bytes don't match, they are rotten; if not, they were just replaced.
bool is_current(const ShardState& state, const Chunk& chunk, const ReadPlan& plan, const ReadPiece& piece,
                uint32_t index);

}  // namespace cairn::engine
