// Client: routes each call to the poll group that owns the data, over SRPC, and hides retries. What gateways and
// services use; one instance per reactor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "engine/types.h"
#include "kv/ordered_store.h"
#include "mem/buf_chain.h"
#include "reactor/cancel.h"
#include "reactor/task.h"

namespace cairn::client {

struct CallContext {
  Time deadline = Time::never();
  CancelToken cancel;
};

// A batch that takes effect whole or not at all.
struct Condition {
  enum class Kind : uint8_t { absent, present, equals };
  std::string key;
  Kind kind = Kind::absent;
  std::string value;  // for equals
};
struct Batch {
  std::vector<Condition> conditions;
  std::vector<kv::Mutation> mutations;
};

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
  virtual Task<Result<mem::BufChain>> chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                                 CallContext context) = 0;
  // Deleting what isn't there is ok.
  virtual Task<Result<void>> chunk_delete(engine::ChunkId chunk, CallContext context) = 0;
  // Up to `limit` ids of the group greater than `after`, ascending.
  virtual Task<Result<std::vector<engine::ChunkId>>> chunk_list(engine::GroupId group, engine::ChunkId after,
                                                                size_t limit, CallContext context) = 0;

  // Ordered map of a group; reads see every acknowledged batch. kv_batch: condition_failed with the index of the first
  // condition that failed as message.
  virtual Task<Result<std::optional<std::string>>> kv_get(engine::GroupId group, std::string key,
                                                          CallContext context) = 0;
  virtual Task<Result<kv::ScanResult>> kv_scan(engine::GroupId group, kv::ScanOptions options, CallContext context) = 0;
  virtual Task<Result<void>> kv_batch(engine::GroupId group, Batch batch, CallContext context) = 0;
};

}  // namespace cairn::client
