// The database behind RocksStore and its views: for this module's own files only.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kv/rocks_store.h"

namespace cairn::kv {

// Shared by the store, its views and their operations in flight. RocksDB is safe to use from many threads.
struct RocksDatabase {
  std::string path;
  std::shared_ptr<rocksdb::Cache> cache;
  std::unique_ptr<rocksdb::DB> db;
};

rocksdb::Options rocks_options(const RocksStore::Options& options, const std::shared_ptr<rocksdb::Cache>& cache);
// status.ok() is false.
Error rocks_error(const rocksdb::Status& status, std::string_view what);

// A scan that passed over this many deleted keys asks RocksDB to get rid of them.
inline constexpr uint64_t kDeletedKeysWorthTrimming = 4096;

}  // namespace cairn::kv
