#include "kv/rocks_database.h"

#include <fmt/core.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>

namespace cairn::kv {

rocksdb::Options rocks_options(const RocksStore::Options& options, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 8 << 10;
  // Absent keys are asked for all the time ("if it doesn't exist yet"); the filter answers without the disk.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // Indexes and filters inside the cache, or memory would grow with the data. Those of the hot level stay.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;

  rocksdb::Options db;
  db.create_if_missing = options.create;
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  const auto compressions = rocksdb::GetSupportedCompressions();
  const bool lz4 = std::ranges::find(compressions, rocksdb::kLZ4Compression) != compressions.end();
  db.compression = lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;

  // Memory: four tables at most, together within their limit, which is charged to the cache.
  db.write_buffer_size = options.write_buffer_bytes / 4;
  db.max_write_buffer_number = 4;
  db.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(options.write_buffer_bytes, cache);
  db.max_open_files = options.open_files;

  db.max_background_jobs = std::max(2, options.background_threads);
  db.max_subcompactions = 1;
  // Closing files and dropping old versions is left to background threads, never to the reactor that let go of them.
  db.avoid_unnecessary_blocking_io = true;

  // Durability is what flush() says. The journal has the rest, so closing needn't flush.
  db.avoid_flush_during_shutdown = true;
  db.paranoid_checks = true;
  // A failed flush or manifest write is final until the store is opened anew; RocksDB would try again by itself.
  db.max_bgerror_resume_count = 0;
  db.bytes_per_sync = 1 << 20;
  db.level_compaction_dynamic_level_bytes = true;

  // Many deleted keys in a row make every scan over them slow: a file full of them is compacted soon.
  db.table_properties_collector_factories.push_back(rocksdb::NewCompactOnDeletionCollectorFactory(1024, 512, 0.5));

  // The log goes into the store's directory: at most 4 files of 1 MiB.
  db.info_log_level = rocksdb::InfoLogLevel::INFO_LEVEL;
  db.max_log_file_size = 1 << 20;
  db.keep_log_file_num = 4;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

Error rocks_error(const rocksdb::Status& status, std::string_view what) {
  const auto code = [&] {
    if (status.IsNoSpace()) return Errc::no_space;
    if (status.IsCorruption()) return Errc::corrupt;
    if (status.IsIncomplete() || status.IsBusy() || status.IsTryAgain() || status.IsTimedOut()) return Errc::busy;
    if (status.IsShutdownInProgress()) return Errc::closed;
    if (status.IsNotSupported()) return Errc::unsupported;
    if (status.IsNotFound()) return Errc::not_found;
    return Errc::io_error;
  }();
  return {code, fmt::format("{}: {}", what, status.ToString())};
}

}  // namespace cairn::kv
