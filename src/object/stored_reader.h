// StoredReader: gives an object's bytes piece by piece, reading one piece ahead.
//
// What keeps the bytes there while it reads: deleted data stays for kDeleteGrace after it got into the delete queue
// (reaper.h), so a reader has at least that long from its look-up without doing anything. One that takes longer renews
// a lease on the data at the bucket's group, beginning well before the grace is over; the reaper passes over what is
// leased. No write, and nothing at all for a read of a few seconds. docs/decisions has what was rejected.
//
//   look-up        3 s            6 s            9 s       10 s
//      |── no lease ─┼── lease, renewed every 3 s ┼──────────┼──
//      └── data deleted at the earliest ────────────────────▶│ unless leased
#pragma once

#include <memory>
#include <string>

#include "object/core.h"
#include "object/layout.h"
#include "object/objects.h"
#include "reactor/sync.h"

namespace cairn::object {

// Deleted data is kept for at least this long.
inline constexpr Duration kDeleteGrace = seconds(10);
inline constexpr Duration kLeaseRenewal = seconds(3);
inline constexpr Duration kLeaseTime = seconds(12);
// A lease taken at the first renewal is there when the grace ends, even if one renewal failed.
static_assert(2 * kLeaseRenewal.ns < kDeleteGrace.ns && 2 * kLeaseRenewal.ns < kLeaseTime.ns);

class StoredReader final : public Reader {
 public:
  // `range` lies within the object.
  StoredReader(Core& core, Objects::Found found, ByteRange range, CallContext context);
  StoredReader(const StoredReader&) = delete;
  StoredReader& operator=(const StoredReader&) = delete;
  ~StoredReader() override;

  // Waits for the first piece, so that what can't be read is known before anything is promised to a client.
  Task<Result<void>> begin();

  const ObjectInfo& info() const override { return info_; }
  Task<Result<mem::BufChain>> next() override;

 private:
  // One piece under way. Shared with the read, which may outlive the reader.
  struct Fetch {
    explicit Fetch(Loop& loop) : done(loop) {}
    Event done;
    Result<mem::BufChain> result;
  };
  // Shared with the renewals.
  struct Lease {
    CancelSource cancel;
    engine::GroupId group;
    Id128 data;
  };
  static Task<void> fetch(Core* core, std::shared_ptr<Fetch> fetch, Piece piece, Time deadline);
  static Task<void> keep_lease(Core* core, std::shared_ptr<Lease> lease, Time from);
  void start_fetch();

  Core& core_;
  CallContext context_;
  ObjectInfo info_;
  Layout layout_;
  uint64_t position_;  // of the next fetch
  uint64_t end_;
  std::shared_ptr<Fetch> ahead_;
  std::shared_ptr<Lease> lease_;
};

}  // namespace cairn::object
