#include "object/buckets.h"

#include "kv/prefix_store.h"
#include "object/freeze.h"
#include "object/keys.h"

namespace cairn::object {
namespace {

constexpr Duration kCacheTime = seconds(10);
constexpr size_t kCacheEntries = 10'000;

Error no_bucket() { return {Errc::not_found, "bucket"}; }

}  // namespace

void Buckets::remember(const std::string& name, Ref ref) {
  // Rarely full; forgetting everything then costs one read per bucket in use.
  if (cache_.size() >= kCacheEntries) cache_.clear();
  cache_.insert_or_assign(name, Cached{.ref = ref, .until = core_.loop.now() + kCacheTime});
}

Task<Result<std::optional<Buckets::Found>>> Buckets::find(std::string name, CallContext context) {
  CO_TRY(auto bytes,
         co_await core_.client.kv_get(core_.client.system_group(), keys::bucket_entry(name), core_.call(context)));
  if (!bytes) co_return std::optional<Found>();
  CO_TRY(auto record, BucketRecord::decode(*bytes));
  co_return std::optional<Found>(Found{.record = std::move(record), .bytes = *std::move(bytes)});
}

Task<Result<std::optional<Buckets::Found>>> Buckets::find_whole(std::string name, CallContext context) {
  CO_TRY(auto found, co_await find(name, context));
  if (!found) co_return found;
  const Ref ref = ref_of(found->record);
  CO_TRY(const auto state, co_await core_.client.kv_get(ref.group, keys::bucket_state(ref.id), core_.call(context)));
  if (state) co_return found;
  forget(name);
  CO_TRY(co_await drop_entry(std::move(name), std::move(found->bytes), context));
  co_return std::optional<Found>();
}

Task<Result<void>> Buckets::drop_entry(std::string name, std::string bytes, CallContext context) {
  Commit commit;
  commit.require_unchanged(Guard::record, keys::bucket_entry(name), std::move(bytes));
  commit.erase(keys::bucket_entry(name));
  // Blocked: somebody else has done it, which is as good.
  CO_TRY(co_await commit.run(core_.client, core_.client.system_group(), mem::Purpose::internal, context.deadline));
  co_return Result<void>{};
}

Task<Result<Buckets::Ref>> Buckets::resolve(std::string name, CallContext context) {
  const auto cached = cache_.find(name);
  if (cached != cache_.end() && cached->second.until > core_.loop.now()) co_return cached->second.ref;
  CO_TRY(const auto found, co_await find(name, context));
  if (!found) {
    forget(name);
    co_return no_bucket();
  }
  const Ref ref = ref_of(found->record);
  remember(name, ref);
  co_return ref;
}

Task<Result<bool>> Buckets::refresh(std::string name, Ref& ref, CallContext context) {
  CO_TRY(const auto found, co_await find_whole(name, context));
  if (!found) {
    forget(name);
    co_return no_bucket();
  }
  const Ref now = ref_of(found->record);
  remember(name, now);
  const bool changed = now.id != ref.id;
  ref = now;
  co_return changed;
}

Task<Result<BucketInfo>> Buckets::create(std::string name, std::string owner, CallContext context) {
  const engine::GroupId system = core_.client.system_group();
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    CO_TRY(const auto found, co_await find_whole(name, context));
    if (found) co_return Error(Errc::already_exists, "bucket");
    const BucketRecord record{.id = Id128::random(core_.loop.rng()),
                              .info = {.name = name, .owner = owner, .created_unix_ns = core_.wall.unix_ns()}};
    const Ref ref = ref_of(record);
    Commit state;
    state.put(keys::bucket_state(ref.id), record.encode());
    CO_TRY(co_await state.run(core_.client, ref.group, mem::Purpose::client, context.deadline));

    Commit entry;
    entry.require_absent(Guard::record, keys::bucket_entry(name));
    entry.put(keys::bucket_entry(name), record.encode());
    const auto blocked = co_await entry.run(core_.client, system, mem::Purpose::client, context.deadline);
    if (blocked && !*blocked) {
      remember(name, ref);
      co_return record.info;
    }
    if (!blocked && client::outcome_unknown(blocked.code())) {
      CO_TRY(const auto now, co_await find(name, context));
      if (!now || now->record.id != record.id) co_return blocked.error();
      co_return record.info;
    }
    Commit undo;
    undo.erase(keys::bucket_state(ref.id));
    (void)co_await undo.run(core_.client, ref.group, mem::Purpose::internal, context.deadline);
    if (!blocked) co_return blocked.error();
    CO_TRY(co_await core_.pause(attempt, context.cancel));
  }
  co_return Error(Errc::busy, "bucket");
}

Task<Result<BucketInfo>> Buckets::head(std::string name, CallContext context) {
  CO_TRY(auto found, co_await find_whole(name, context));
  if (!found) {
    forget(name);
    co_return no_bucket();
  }
  remember(name, ref_of(found->record));
  co_return std::move(found->record.info);
}

Task<Result<bool>> Buckets::is_empty(Ref ref, CallContext context) {
  const std::string begin = keys::object(ref.id, "");
  kv::ScanOptions options{.begin = begin, .end = kv::prefix_end(begin), .max_items = 1, .keys_only = true};
  CO_TRY(const auto found, co_await core_.client.kv_scan(ref.group, std::move(options), core_.call(context)));
  co_return found.items.empty();
}

Task<Result<void>> Buckets::remove(std::string name, CallContext context) {
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    CO_TRY(auto found, co_await find_whole(name, context));
    if (!found) {
      forget(name);
      co_return no_bucket();
    }
    const Ref ref = ref_of(found->record);
    // Cheap, and right in nearly all cases: a full bucket is not frozen first.
    CO_TRY(const bool looks_empty, co_await is_empty(ref, context));
    if (!looks_empty) co_return Error(Errc::condition_failed, "bucket");

    Freeze freeze(core_, ref.group, ref.id);
    CO_TRY(const auto missing, co_await freeze.take(Guard::bucket, keys::bucket_state(ref.id), context));
    if (missing) continue;  // gone meanwhile: look again
    const Result<bool> still_empty = co_await is_empty(ref, context);
    if (!still_empty || !*still_empty) {
      co_await freeze.thaw(context);
      if (!still_empty) co_return still_empty.error();
      co_return Error(Errc::condition_failed, "bucket");
    }
    Commit decide;
    freeze.end_with(decide);
    decide.erase(keys::bucket_state(ref.id));
    GarbageRecord garbage;
    garbage.bucket = ref.id;
    garbage.bucket_uploads = true;
    decide.put(keys::garbage(core_.wall.unix_ns(), ref.id), garbage.encode());
    CO_TRY(const auto blocked, co_await decide.run(core_.client, ref.group, mem::Purpose::internal, context.deadline));
    if (blocked) {  // we were taken for dead
      CO_TRY(co_await core_.pause(attempt + 1, context.cancel));
      continue;
    }
    forget(name);
    co_return co_await drop_entry(std::move(name), std::move(found->bytes), context);
  }
  co_return Error(Errc::busy, "bucket");
}

Task<Result<std::vector<BucketInfo>>> Buckets::list(CallContext context) {
  std::vector<BucketInfo> out;
  std::string begin(keys::kBuckets);
  const std::string end = kv::prefix_end(begin);
  for (bool more = true; more;) {
    kv::ScanOptions options{.begin = begin, .end = end};
    CO_TRY(const auto page,
           co_await core_.client.kv_scan(core_.client.system_group(), std::move(options), core_.call(context)));
    for (const kv::KeyValue& item : page.items) {
      CO_TRY(auto record, BucketRecord::decode(item.value));
      out.push_back(std::move(record.info));
    }
    more = page.more;
    if (more) begin = page.items.back().key + '\0';
  }
  co_return out;
}

}  // namespace cairn::object
