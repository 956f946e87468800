// Client: routes each call to the poll group that owns the data, over SRPC, and hides what can be hidden: connections
// that come and go, servers that are busy or starting, a cluster map that has changed. What gateways and services use;
// one instance per reactor.
//
// What is repeated by itself: everything that a server refused (busy, unavailable, stale_epoch), and after a lost
// connection the calls that may run twice: reads and deletes. A write or batch whose connection is lost ends with
// Errc::closed, and one whose deadline passes with Errc::timed_out: its effect is unknown (see outcome_unknown()), and
// only the caller knows how to find out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "base/trace.h"
#include "engine/types.h"
#include "kv/kv_machine.h"
#include "kv/ordered_store.h"
#include "mem/buf_chain.h"
#include "mem/pool.h"
#include "reactor/cancel.h"
#include "reactor/task.h"

namespace cairn::client {

struct CallContext {
  // A call that names none gets the client's own.
  Time deadline = Time::never();
  CancelToken cancel{};
  Trace trace{};  // of the request that this is done for
};

// After this error nobody knows whether a write or batch took effect or still will; after any other one it did not.
constexpr bool outcome_unknown(Errc code) {
  switch (code) {
    case Errc::ok:
    case Errc::invalid_argument:
    case Errc::not_found:
    case Errc::already_exists:
    case Errc::condition_failed:
    case Errc::no_space:
    case Errc::busy:
    case Errc::unavailable:
    case Errc::stale_epoch:
    case Errc::permission_denied:
    case Errc::unauthenticated:
    case Errc::unsupported:
    case Errc::too_large:
      return false;
    case Errc::corrupt:
    case Errc::io_error:
    case Errc::device_fenced:
    case Errc::timed_out:
    case Errc::cancelled:
    case Errc::closed:
    case Errc::protocol_error:
    case Errc::unknown:
      return true;
  }
  return true;
}

class Client {
 public:
  virtual ~Client() = default;

  // Which group holds a chunk, and which one a bucket's index or other keyed state (`salt`: the bucket's id).
  virtual engine::GroupId group_of_chunk(engine::ChunkId chunk) const = 0;
  virtual engine::GroupId group_of_key(Id128 salt) const = 0;
  // The group of cluster-wide state: bucket names, access keys.
  virtual engine::GroupId system_group() const = 0;
  virtual std::vector<engine::GroupId> all_groups() const = 0;

  // Chunks. Payload alignment as in object::Writer::write; offset a multiple of 4 KiB.
  virtual Task<Result<void>> chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data,
                                         CallContext context) = 0;
  // Bytes [offset, offset + length), cut at the chunk's end. not_found when there is no such chunk.
  virtual Task<Result<mem::BufChain>> chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                                 CallContext context) = 0;
  // Deleting what isn't there is ok.
  virtual Task<Result<void>> chunk_delete(engine::ChunkId chunk, CallContext context) = 0;
  // Up to `limit` ids of the group greater than `after`, ascending.
  virtual Task<Result<std::vector<engine::ChunkId>>> chunk_list(engine::GroupId group, engine::ChunkId after,
                                                                size_t limit, CallContext context) = 0;

  // Ordered map of a group; reads see every acknowledged batch. kv_batch: condition_failed with the number of the first
  // condition that failed (from 0) as message. Purpose::internal is for batches that give space back: a full device
  // takes them. Keys are at most kMaxKeyBytes long, a batch's mutations altogether kv::kMaxBatchBytes.
  static constexpr size_t kMaxKeyBytes = 1'900;
  virtual Task<Result<std::optional<std::string>>> kv_get(engine::GroupId group, std::string key,
                                                          CallContext context) = 0;
  virtual Task<Result<kv::ScanResult>> kv_scan(engine::GroupId group, kv::ScanOptions options, CallContext context) = 0;
  virtual Task<Result<void>> kv_batch(engine::GroupId group, kv::Batch batch, mem::Purpose purpose,
                                      CallContext context) = 0;

  // Leases: "somebody still uses `what`", kept in memory by the group's leader until `ttl` (at most kMaxLease) has
  // passed since the last renewal; forgotten when the leader changes or restarts. Errors: busy when it keeps too many.
  static constexpr Duration kMaxLease = seconds(60);
  virtual Task<Result<void>> lease_renew(engine::GroupId group, Id128 what, Duration ttl, CallContext context) = 0;
  struct LeaseCheck {
    std::vector<bool> held;  // for each that was asked for
    Duration memory{};       // for how long this leader has been taking leases: older ones it can't know
  };
  virtual Task<Result<LeaseCheck>> lease_check(engine::GroupId group, std::vector<Id128> what, CallContext context) = 0;
};

}  // namespace cairn::client
