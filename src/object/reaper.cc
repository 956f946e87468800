#include "object/reaper.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "kv/prefix_store.h"
#include "object/data_sink.h"
#include "object/keys.h"
#include "object/stored_reader.h"

namespace cairn::object {
namespace {

constexpr size_t kBatchItems = 1024;
// Some 20 MiB. Over the grace: how many items a second one group gives back at most is a tenth of it.
constexpr size_t kWaitingItems = 65536;
constexpr Duration kPassEvery = seconds(4);
constexpr Duration kFirstIdle = milliseconds(500);
constexpr Duration kLongestIdle = seconds(4);
constexpr Duration kAfterError = seconds(2);

// What readers may hold a lease on; none for what no reader can have found.
std::optional<DataId> readable(const GarbageRecord& garbage) {
  if (garbage.table) return garbage.table;
  if (garbage.data.size() == 1) return garbage.data.front().id;
  return std::nullopt;
}

}  // namespace

Task<void> Reaper::run() {
  Scope batches(base_.loop);
  Duration idle = kFirstIdle;
  while (!base_.background.token().cancelled()) {
    const Result<Look> found = co_await look(&batches);
    if (found && found->more) continue;
    if (!found) report(found.error());
    // Also after something was found: items that come one by one shall go in batches.
    idle = found && found->any ? kFirstIdle : std::min(idle * 2, kLongestIdle);
    (void)co_await base_.loop.sleep(found ? idle : kAfterError, base_.background.token());
  }
  co_await batches.join();
}

Task<Result<Reaper::Look>> Reaper::look(Scope* batches) {
  if (waiting_.size() >= kWaitingItems) co_return Look{};
  const std::string first(keys::kGarbage);
  if (cursor_.empty()) pass_began_ = base_.loop.now();
  kv::ScanOptions options{
      .begin = std::max(cursor_, first), .end = kv::prefix_end(keys::kGarbage), .max_items = kBatchItems};
  CO_TRY(const auto page, co_await base_.client.kv_scan(group_, std::move(options), base_.background_call()));
  std::vector<Item> items;
  items.reserve(page.items.size());
  for (const kv::KeyValue& found : page.items) {
    if (waiting_.contains(found.key)) continue;
    auto garbage = GarbageRecord::decode(found.value);
    if (!garbage) {
      report(garbage.error());  // The others go on.
      continue;
    }
    items.push_back({.key = found.key, .garbage = std::move(*garbage)});
  }
  if (!page.items.empty()) cursor_ = page.items.back().key + '\0';
  // Most of what is new is at the end. What was leased, failed, or was queued by a slow clock is before the cursor.
  if (!page.more && base_.loop.now() - pass_began_ >= kPassEvery) cursor_.clear();
  if (items.empty()) co_return Look{.any = false, .more = page.more};
  for (const Item& item : items) waiting_.insert(item.key);
  batches->spawn(&Reaper::work_off, this, std::move(items));
  co_return Look{.any = true, .more = page.more};
}

Task<void> Reaper::work_off(std::vector<Item> items) {
  report(co_await delete_batch(&items));
  for (const Item& item : items) waiting_.erase(item.key);
}

Task<Result<void>> Reaper::delete_batch(std::vector<Item>* items) {
  CO_TRY(co_await base_.loop.sleep(kDeleteGrace, base_.background.token()));
  CO_TRY(co_await check_leases(items));
  Result<void> first_error;
  Scope scope(base_.loop);
  for (Item& item : *items) {
    if (item.leased) continue;
    (void)co_await turns_.take();
    if (!first_error || base_.background.token().cancelled()) {
      turns_.give();
      break;
    }
    scope.spawn(&Reaper::delete_item, this, &item, &first_error);
  }
  co_await scope.join();
  std::vector<std::string> done;
  for (const Item& item : *items) {
    if (item.done) done.push_back(item.key);
  }
  const size_t count = done.size();
  CO_TRY(co_await erase(std::move(done)));
  metrics_.reaped.add(count);
  co_return first_error;
}

void Reaper::report(const Result<void>& result) {
  if (result.code() == Errc::cancelled) return;
  if (!result && result.code() != last_error_) {
    LOG(warn, "group {}: deleted data isn't given back: {}", group_.value, result.error().to_string());
  }
  last_error_ = result.code();
}

Task<Result<void>> Reaper::check_leases(std::vector<Item>* items) {
  std::vector<Id128> ids;
  std::vector<Item*> asked;
  for (Item& item : *items) {
    const std::optional<DataId> data = readable(item.garbage);
    if (!data) continue;
    ids.push_back(data->lease());
    asked.push_back(&item);
  }
  if (ids.empty()) co_return Result<void>{};
  for (;;) {
    CO_TRY(const auto check, co_await base_.client.lease_check(group_, ids, base_.background_call()));
    if (check.memory < kLeaseTime) {
      CO_TRY(co_await base_.loop.sleep(kLeaseTime - check.memory, base_.background.token()));
      continue;
    }
    for (size_t i = 0; i < asked.size(); ++i) asked[i]->leased = check.held[i];
    co_return Result<void>{};
  }
}

Task<void> Reaper::delete_item(Item* item, Result<void>* first_error) {
  Result<void> deleted = co_await delete_garbage(item->garbage);
  item->done = deleted.has_value();
  if (!deleted && *first_error) *first_error = std::move(deleted);
  turns_.give();
}

Task<Result<void>> Reaper::delete_garbage(const GarbageRecord& garbage) {
  for (const DataRef& data : garbage.data) CO_TRY(co_await delete_data(data));
  if (garbage.table) CO_TRY(co_await delete_table(garbage.bucket, *garbage.table));
  if (!garbage.upload.is_zero()) CO_TRY(co_await delete_parts(garbage.bucket, garbage.upload, garbage.upload_data));
  if (garbage.bucket_uploads) CO_TRY(co_await abort_uploads(garbage.bucket));
  co_return Result<void>{};
}

Task<Result<void>> Reaper::delete_data(DataRef data) {
  CO_TRY(co_await delete_chunks(base_, data));
  metrics_.reaped_chunks.add(data.chunk_count());
  co_return Result<void>{};
}

Task<Result<void>> Reaper::delete_table(Id128 bucket, DataId table) {
  const std::string key = keys::table(bucket, table);
  CO_TRY(const auto bytes, co_await base_.client.kv_get(group_, key, base_.background_call()));
  if (!bytes) co_return Result<void>{};
  CO_TRY(const auto decoded, PartTable::decode(*bytes));
  for (const TablePart& part : decoded.parts) CO_TRY(co_await delete_data(part.data));
  co_return co_await erase({key});
}

Task<Result<void>> Reaper::delete_parts(Id128 bucket, Id128 upload, bool with_data) {
  const std::string prefix = keys::part_prefix(bucket, upload);
  for (bool more = true; more;) {
    kv::ScanOptions options{.begin = prefix, .end = kv::prefix_end(prefix)};
    CO_TRY(const auto page, co_await base_.client.kv_scan(group_, std::move(options), base_.background_call()));
    std::vector<std::string> done;
    for (const kv::KeyValue& item : page.items) {
      if (with_data) {
        CO_TRY(const auto part, PartRecord::decode(item.value));
        CO_TRY(co_await delete_data(part.data));
      }
      done.push_back(item.key);
    }
    CO_TRY(co_await erase(std::move(done)));
    more = page.more;
  }
  co_return Result<void>{};
}

Task<Result<void>> Reaper::abort_uploads(Id128 bucket) {
  const std::string prefix = keys::upload_prefix(bucket, "");
  for (bool more = true; more;) {
    kv::ScanOptions options{.begin = prefix, .end = kv::prefix_end(prefix), .max_items = 200, .keys_only = true};
    CO_TRY(const auto page, co_await base_.client.kv_scan(group_, std::move(options), base_.background_call()));
    kv::Batch batch;
    for (const kv::KeyValue& item : page.items) {
      const auto upload = keys::parse_upload(item.key);
      if (!upload) co_return Error(Errc::corrupt, "an upload record with a malformed key");
      GarbageRecord garbage;
      garbage.bucket = bucket;
      garbage.upload = upload->upload;
      garbage.upload_data = true;
      // In one batch: a part that is committed later finds no upload.
      batch.mutations.push_back({item.key, std::nullopt});
      batch.mutations.push_back({keys::garbage(base_.wall.unix_ns(), upload->upload), garbage.encode()});
    }
    if (!batch.mutations.empty()) {
      CO_TRY(co_await base_.client.kv_batch(group_, std::move(batch), mem::Purpose::internal, base_.background_call()));
    }
    more = page.more;
  }
  co_return Result<void>{};
}

Task<Result<void>> Reaper::erase(std::vector<std::string> keys) {
  if (keys.empty()) co_return Result<void>{};
  kv::Batch batch;
  for (std::string& key : keys) batch.mutations.push_back({std::move(key), std::nullopt});
  co_return co_await base_.client.kv_batch(group_, std::move(batch), mem::Purpose::internal, base_.background_call());
}

}  // namespace cairn::object
