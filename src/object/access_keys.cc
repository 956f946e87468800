#include "object/access_keys.h"

#include "kv/prefix_store.h"
#include "object/commit.h"
#include "object/keys.h"
#include "object/records.h"

namespace cairn::object {
namespace {

constexpr Duration kCacheTime = seconds(5);
constexpr size_t kCacheEntries = 10'000;
// Longer names can't be stored, so they aren't looked for either: they come from whoever sends a request.
constexpr size_t kMaxAccessKey = 256;

}  // namespace

Task<Result<void>> AccessKeys::put(ObjectStore::AccessKey key, CallContext context) {
  if (key.access_key.empty() || key.access_key.size() > kMaxAccessKey) {
    co_return Error(Errc::invalid_argument, "an access key has 1 to 256 bytes");
  }
  Commit commit;
  commit.require_absent(Guard::record, keys::access_key(key.access_key));
  commit.put(keys::access_key(key.access_key), encode_access_key(key));
  CO_TRY(const auto blocked,
         co_await commit.run(core_.client, core_.client.system_group(), mem::Purpose::client, context.deadline));
  if (blocked) co_return Error(Errc::already_exists, "access key");
  co_return Result<void>{};
}

Task<Result<ObjectStore::AccessKey>> AccessKeys::get(std::string access_key, CallContext context) {
  const auto cached = cache_.find(access_key);
  if (cached != cache_.end() && cached->second.until > core_.loop.now()) co_return cached->second.key;
  std::optional<std::string> bytes;
  if (access_key.size() <= kMaxAccessKey) {
    CO_TRY(bytes, co_await core_.client.kv_get(core_.client.system_group(), keys::access_key(access_key),
                                               core_.call(context)));
  }
  if (!bytes) {
    cache_.erase(access_key);
    co_return Error(Errc::not_found, "access key");
  }
  CO_TRY(auto key, decode_access_key(*bytes));
  if (cache_.size() >= kCacheEntries) cache_.clear();
  cache_.insert_or_assign(access_key, Cached{.key = key, .until = core_.loop.now() + kCacheTime});
  co_return key;
}

Task<Result<void>> AccessKeys::remove(std::string access_key, CallContext context) {
  cache_.erase(access_key);
  if (access_key.size() > kMaxAccessKey) co_return Error(Errc::not_found, "access key");
  Commit commit;
  commit.require_present(Guard::record, keys::access_key(access_key));
  commit.erase(keys::access_key(access_key));
  CO_TRY(const auto blocked,
         co_await commit.run(core_.client, core_.client.system_group(), mem::Purpose::internal, context.deadline));
  cache_.erase(access_key);
  if (blocked) co_return Error(Errc::not_found, "access key");
  co_return Result<void>{};
}

Task<Result<std::vector<ObjectStore::AccessKey>>> AccessKeys::list(CallContext context) {
  std::vector<ObjectStore::AccessKey> out;
  std::string begin(keys::kAccessKeys);
  const std::string end = kv::prefix_end(begin);
  for (bool more = true; more;) {
    kv::ScanOptions options{.begin = begin, .end = end};
    CO_TRY(const auto page,
           co_await core_.client.kv_scan(core_.client.system_group(), std::move(options), core_.call(context)));
    for (const kv::KeyValue& item : page.items) {
      CO_TRY(auto key, decode_access_key(item.value));
      out.push_back(std::move(key));
    }
    more = page.more;
    if (more) begin = page.items.back().key + '\0';
  }
  co_return out;
}

}  // namespace cairn::object
