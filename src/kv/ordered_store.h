// OrderedStore: the seam to an ordered map on stable storage. The engine keeps its chunk-map checkpoints in one, the
// key-value machine its data. RocksStore (RocksDB, write-ahead log off) is the real one; MemoryStore forgets what was
// not flushed when the simulator crashes it.
//
// Durability is a prefix: after a crash the store holds exactly the first n writes for some n that covers everything
// before the last completed flush(). Callers put the log position into the same write as the data it produced, so that
// they know where to replay from.
//
// One thread per view; see RocksStore for sharing one database between reactors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "reactor/task.h"

namespace cairn::kv {

struct Mutation {
  std::string key;
  std::optional<std::string> value;  // none: delete
};

struct KeyValue {
  std::string key;
  std::string value;
};

struct ScanOptions {
  std::string begin{};  // inclusive
  std::string end{};    // exclusive; empty: to the last key
  size_t max_items = 1000;
  size_t max_bytes = size_t{1} << 20;  // keys (a view may count its prefix) and values; at least one item is returned
  bool keys_only = false;              // values come back empty
};

struct ScanResult {
  std::vector<KeyValue> items;  // ascending bytewise
  bool more = false;            // items beyond the last one exist in the range
};

class OrderedStore {
 public:
  virtual ~OrderedStore() = default;

  // Atomic, visible to the next read at once, durable with the next flush at the latest. Does not block. Errors:
  // no_space, io_error; Errc::busy when the store is behind with its flushes (flush() and try again).
  virtual Result<void> write(std::span<const Mutation> mutations) = 0;
  virtual Task<Result<std::optional<std::string>>> get(std::string_view key) = 0;
  virtual Task<Result<ScanResult>> scan(ScanOptions options) = 0;
  // Everything written before the call is on stable storage when it returns.
  virtual Task<Result<void>> flush() = 0;
};

}  // namespace cairn::kv
