// Sweep: gives back what writers left behind that died before they committed, and counts what nobody refers to.
//
// For each dead session (session.h): fence it, so that no commit of it can succeed any more; list its chunks; mark what
// records refer to; delete the rest; forget the session. A crash in between repeats it from the start. Memory is
// bounded: chunks are looked at in ranges of ids, each with a walk over the records of its own.
#pragma once

#include <string>
#include <vector>

#include "object/core.h"
#include "object/data_id.h"
#include "object/references.h"

namespace cairn::object {

// Chunks by what refers to them.
struct OrphanReport {
  uint64_t chunks = 0;                // looked at
  uint64_t referenced = 0;            // by objects and parts
  uint64_t queued = 0;                // by the delete queue only: will be deleted soon
  uint64_t in_flight = 0;             // by nothing yet, and their writer lives
  uint64_t orphans = 0;               // by nothing, and their writer is dead or unknown
  std::vector<std::string> examples;  // ids of orphans, at most kMaxExamples

  static constexpr size_t kMaxExamples = 100;
};

class Sweep {
 public:
  // Chunks per range, over all groups together: 32 MiB of ids.
  static constexpr size_t kRangeChunks = size_t{2} << 20;

  Sweep(const Base& base, JanitorMetrics& metrics, size_t range_chunks = kRangeChunks)
      : base_(base), metrics_(metrics), range_chunks_(range_chunks) {}

  // All dead sessions of this owner: those of other lives than this one. Errors: the client's, corrupt; what was done
  // stays done.
  Task<Result<void>> run(Identity identity, client::CallContext context);
  // Looks at all chunks and deletes nothing.
  Task<Result<OrphanReport>> check(Identity identity, client::CallContext context);

 private:
  struct Range {
    std::vector<engine::ChunkId> chunks;
    engine::ChunkId last;  // of the range
    bool end = false;      // nothing comes after it
  };
  struct Sessions {
    std::vector<uint32_t> alive;
    std::vector<uint32_t> dead;
  };
  Task<Result<Sessions>> list_sessions(Identity identity, client::CallContext context);
  Task<Result<void>> sweep_session(uint32_t session, client::CallContext context);
  // The chunks after `after` and not after `end`, at most about range_chunks_ of them.
  Task<Result<Range>> list_range(engine::ChunkId after, engine::ChunkId end, client::CallContext context);
  static References references_of(const std::vector<engine::ChunkId>& chunks);

  const Base& base_;
  JanitorMetrics& metrics_;
  size_t range_chunks_;
};

}  // namespace cairn::object
