// The engine's vocabulary.
#pragma once

#include <cstdint>
#include <string>

#include "base/id.h"
#include "base/strong.h"
#include "mem/buf_chain.h"

namespace cairn::engine {

inline constexpr uint32_t kPageBytes = 4096;              // the unit of checksums and of small writes
inline constexpr uint32_t kUnitBytes = 64 * 1024;         // the unit of allocation
inline constexpr uint32_t kChunkBytes = 4 * 1024 * 1024;  // the largest chunk

using ChunkId = Id128;  // an object's data id in the first 12 bytes, the chunk's number (big-endian) in the last 4

using GroupId = Strong<uint32_t, struct GroupTag>;
using Term = Strong<uint64_t, struct TermTag>;
using Index = Strong<uint64_t, struct IndexTag>;  // position in a group's log, from 1
using Lsn = Strong<uint64_t, struct LsnTag>;      // byte position in a shard's journal, never reused

// What an entry of a group's log asks its state machine to do.
enum class EntryKind : uint8_t {
  noop = 1,
  chunk_write = 2,    // payload to (chunk, offset)
  chunk_delete = 3,   // the whole chunk
  chunk_discard = 4,  // a range of whole pages reads as zeroes from now on
  kv_batch = 5,       // opaque to the engine: `body` for the key-value machine
};

struct Entry {
  GroupId group;
  Term term;
  Index index;
  EntryKind kind = EntryKind::noop;

  // chunk_*:
  ChunkId chunk;
  uint32_t offset = 0;    // bytes, a multiple of 4 KiB
  uint32_t length = 0;    // bytes; for a write payload.size()
  mem::BufChain payload;  // chunk_write: every slice 4 KiB-aligned in memory, all but the last whole pages. A write
                          // replaces whole pages: the engine zeroes the rest of the last page in its block, and what
                          // the chunk had there reads as zeroes afterwards.
  // kv_batch:
  std::string body;  // at most 1 MiB
};

}  // namespace cairn::engine
