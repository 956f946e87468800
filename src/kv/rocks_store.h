// RocksStore: RocksDB as a node's ordered map on stable storage. One database per device, shared by the shards on it
// through views, each with its own key prefix and thread.
//
//   TRY(auto store, RocksStore::open({.path = device_dir / "map"}));             // blocks: at start only
//   auto view = store->view("s0/", helpers, reactor, registry, "shard=\"0\"");           // on reactor 0; an
//   OrderedStore
//
// Its write-ahead log is off: the shard's journal is the log. So what a crash leaves is what the memory tables flushed
// so far held, which is a prefix of the writes, as OrderedStore promises: there is one column family, and RocksDB
// installs flushes in order.
//
// What runs where: write() only inserts into memory and is refused (busy) when RocksDB would make it wait. get() and
// scan() look at memory and at cached blocks first, and go to a helper thread when that isn't enough. flush() waits on
// a helper thread. RocksDB's own flushes and compactions run on at most `background_threads` threads.
//
// A view and its operations in flight keep the database open, so the store and its views may be destroyed in any order;
// the helpers and the reactor outlive the operations.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/status.h"
#include "kv/ordered_store.h"

namespace cairn {
class OffloadPool;
class Reactor;
}  // namespace cairn

namespace cairn::kv {

struct RocksDatabase;

class RocksStore {
 public:
  struct Options {
    std::string path;               // a directory
    bool create = true;             // when there is no store yet
    size_t cache_bytes = 64 << 20;  // blocks, indexes and filters; memory tables count against it, too
    size_t write_buffer_bytes = 32 << 20;
    int background_threads = 2;
    int open_files = 256;
  };

  // Errors, with the path and a cure: unavailable (another process has it open), not_found (`create` is off), corrupt,
  // unsupported (written by a newer release, or not by this program), no_space, io_error.
  static Result<std::unique_ptr<RocksStore>> open(Options options);
  RocksStore(const RocksStore&) = delete;
  RocksStore& operator=(const RocksStore&) = delete;
  // Closes the database once no view and no operation uses it. Doesn't flush.
  ~RocksStore();

  // `prefix` isn't empty and no other view's begins with it. The view belongs to the reactor, as does
  // `registry`; `labels` tell the view's metrics apart.
  std::unique_ptr<OrderedStore> view(std::string prefix, OffloadPool& helpers, Reactor& reactor, Registry& registry,
                                     std::string_view labels) const;

  // Memory in use by caches and memory tables, and bytes on disk.
  size_t memory_bytes() const;
  size_t disk_bytes() const;

 private:
  explicit RocksStore(std::shared_ptr<RocksDatabase> database);
  std::shared_ptr<RocksDatabase> database_;
};

}  // namespace cairn::kv
