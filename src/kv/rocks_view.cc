#include "kv/rocks_view.h"

#include <rocksdb/experimental.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/write_batch.h>

#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "kv/prefix_store.h"

namespace cairn::kv {
namespace {

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

// On the reactor a scan gives up after so many deleted or overwritten keys, and goes to a helper thread.
constexpr uint64_t kSkippedOnReactor = 512;

rocksdb::ReadOptions read_options(bool may_block) {
  rocksdb::ReadOptions options;
  options.read_tier = may_block ? rocksdb::kReadAllTier : rocksdb::kBlockCacheTier;
  options.background_purge_on_iterator_cleanup = true;
  if (!may_block) options.max_skippable_internal_keys = kSkippedOnReactor;
  return options;
}

// `options` has the prefix in its bounds; items come back without it.
rocksdb::Status scan_range(rocksdb::DB& db, const ScanOptions& options, size_t prefix_size, bool may_block,
                           ScanResult& result) {
  result = {};
  rocksdb::ReadOptions read = read_options(may_block);
  const rocksdb::Slice end = slice(options.end);
  if (!options.end.empty()) read.iterate_upper_bound = &end;
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(read));
  size_t bytes = 0;
  for (it->Seek(slice(options.begin)); it->Valid(); it->Next()) {
    const size_t key_size = it->key().size() - prefix_size;
    const size_t size = key_size + (options.keys_only ? 0 : it->value().size());
    const bool full = result.items.size() >= options.max_items || bytes + size > options.max_bytes;
    if (full && !result.items.empty()) {
      result.more = true;
      return rocksdb::Status::OK();
    }
    bytes += size;
    result.items.push_back({std::string(it->key().data() + prefix_size, key_size),
                            options.keys_only ? std::string() : it->value().ToString()});
  }
  return it->status();
}

// After a scan that passed over many deleted keys: without this every page of a listing would pass over them again.
// Flushing brings those in memory into a file, which is compacted soon because it is full of them (rocks_options);
// suggesting the range does the same for older files. Neither waits.
void trim_deleted_keys(RocksDatabase& database, const ScanOptions& options) {
  rocksdb::FlushOptions flush;
  flush.wait = false;
  flush.allow_write_stall = true;
  const rocksdb::Slice begin = slice(options.begin);
  const rocksdb::Slice end = slice(options.end);
  auto status = database.db->Flush(flush);
  if (status.ok()) {
    status =
        rocksdb::experimental::SuggestCompactRange(database.db.get(), &begin, options.end.empty() ? nullptr : &end);
  }
  // Only an optimisation: if it can't be had now, a later scan asks again.
  if (!status.ok()) LOG(debug, "{}: trimming deleted keys: {}", database.path, status.ToString());
}

// On a helper thread.
rocksdb::Status scan_and_trim(RocksDatabase& database, const ScanOptions& options, size_t prefix_size,
                              ScanResult& result) {
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
  auto status = scan_range(*database.db, options, prefix_size, true, result);
  const uint64_t deleted = rocksdb::get_perf_context()->internal_delete_skipped_count;
  if (status.ok() && deleted >= kDeletedKeysWorthTrimming) trim_deleted_keys(database, options);
  return status;
}

}  // namespace

RocksView::RocksView(std::shared_ptr<RocksDatabase> database, std::string prefix, OffloadPool& helpers,
                     Reactor& reactor, Registry& registry, std::string_view labels)
    : database_(std::move(database)),
      prefix_(std::move(prefix)),
      helpers_(helpers),
      reactor_(reactor),
      writes_(registry.counter("kv_store_writes_total", "Batches written to the ordered store", labels)),
      busy_(registry.counter("kv_store_busy_total", "Writes refused because the store was behind", labels)),
      reads_(registry.counter("kv_store_reads_total", "Gets and scans of the ordered store", labels)),
      reads_offloaded_(registry.counter("kv_store_reads_offloaded_total",
                                        "Gets and scans that memory and cache could not answer", labels)),
      flushes_(registry.counter("kv_store_flushes_total", "Flushes of the ordered store asked for", labels)) {}

Result<void> RocksView::write(std::span<const Mutation> mutations) {
  rocksdb::WriteBatch batch;
  for (const Mutation& mutation : mutations) {
    const rocksdb::Slice key[] = {slice(prefix_), slice(mutation.key)};
    rocksdb::Status status;
    if (mutation.value) {
      const rocksdb::Slice value = slice(*mutation.value);
      status = batch.Put(rocksdb::SliceParts(key, 2), rocksdb::SliceParts(&value, 1));
    } else {
      status = batch.Delete(rocksdb::SliceParts(key, 2));
    }
    if (!status.ok()) return rocks_error(status, "key-value store: write");
  }
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  options.no_slowdown = true;
  if (auto status = database_->db->Write(options, &batch); !status.ok()) {
    if (status.IsIncomplete()) busy_.add();
    return rocks_error(status, "key-value store: write");
  }
  writes_.add();
  return {};
}

Task<Result<std::optional<std::string>>> RocksView::get(std::string_view key) {
  const auto database = database_;
  const std::string prefixed = prefix_ + std::string(key);
  std::string value;
  reads_.add();
  auto status = database->db->Get(read_options(false), slice(prefixed), &value);
  if (status.IsIncomplete()) {
    reads_offloaded_.add();
    co_await offload(helpers_, reactor_,
                     [&] { status = database->db->Get(read_options(true), slice(prefixed), &value); });
  }
  if (status.IsNotFound()) co_return std::optional<std::string>();
  if (!status.ok()) co_return rocks_error(status, "key-value store: get");
  co_return std::optional<std::string>(std::move(value));
}

Task<Result<ScanResult>> RocksView::scan(ScanOptions options) {
  const auto database = database_;
  const size_t prefix_size = prefix_.size();
  options.begin.insert(0, prefix_);
  options.end = options.end.empty() ? prefix_end(prefix_) : prefix_ + options.end;
  ScanResult result;
  reads_.add();
  if (!options.end.empty() && options.begin >= options.end) co_return result;
  auto status = scan_range(*database->db, options, prefix_size, false, result);
  if (status.IsIncomplete()) {
    // From the start again, so that a result is of one moment.
    reads_offloaded_.add();
    co_await offload(helpers_, reactor_, [&] { status = scan_and_trim(*database, options, prefix_size, result); });
  }
  if (!status.ok()) co_return rocks_error(status, "key-value store: scan");
  co_return result;
}

Task<Result<void>> RocksView::flush() {
  const auto database = database_;
  flushes_.add();
  rocksdb::Status status;
  co_await offload(helpers_, reactor_, [&] {
    rocksdb::FlushOptions options;
    options.wait = true;
    options.allow_write_stall = true;  // else it would wait for compactions first
    status = database->db->Flush(options);
  });
  if (!status.ok()) co_return rocks_error(status, "key-value store: flush");
  co_return Result<void>{};
}

}  // namespace cairn::kv
