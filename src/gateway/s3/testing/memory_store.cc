#include "gateway/s3/testing/memory_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "mem/pool.h"

namespace cairn::s3::testing {

using object::CallContext;
using object::ObjectInfo;

namespace {

Error no(std::string_view what) { return Error(Errc::not_found, std::string(what)); }

}  // namespace

// Asserts what object_store.h demands of the gateway.
class MemoryStore::StoreWriter final : public object::Writer {
 public:
  StoreWriter(MemoryStore& store, std::string bucket, std::string key)
      : store_(store), bucket_(std::move(bucket)), key_(std::move(key)) {
    ++store_.writers_open;
  }
  StoreWriter(MemoryStore& store, std::string bucket, std::string key, std::string upload, uint32_t number)
      : StoreWriter(store, std::move(bucket), std::move(key)) {
    upload_ = std::move(upload);
    number_ = number;
  }
  ~StoreWriter() override { --store_.writers_open; }

  Task<Result<void>> write(mem::BufChain data) override {
    ASSERT(!odd_ && !ended_ && !data.empty());
    for (const mem::Buf& buf : data.slices()) ASSERT(reinterpret_cast<uintptr_t>(buf.data()) % mem::kPage == 0);
    odd_ = data.size() % mem::kPage != 0;
    if (store_.faults.write) co_return *store_.faults.write;
    if (store_.faults.forget) {
      data.clear();
    } else {
      data_.append(std::move(data));
    }
    co_await store_.loop_.yield();
    co_return Result<void>();
  }
  Task<Result<ObjectInfo>> commit(Commit commit) override {
    ASSERT(!ended_);
    ended_ = true;
    co_await store_.loop_.yield();
    if (store_.faults.commit) co_return *store_.faults.commit;
    if (upload_.empty()) co_return store_.store(bucket_, key_, std::move(commit), std::move(data_), {});
    CO_TRY(Upload* const upload, store_.find_upload(bucket_, key_, upload_));
    Part& part = upload->parts[number_];
    part.info = {number_, data_.size(), commit.etag, store_.clock_.unix_ns(), commit.checksum};
    part.data = std::move(data_);
    ObjectInfo info;
    info.key = key_;
    info.size = part.info.size;
    info.etag = part.info.etag;
    info.checksum = part.info.checksum;
    info.modified_unix_ns = part.info.modified_unix_ns;
    co_return info;
  }
  Task<void> abort() override {
    ended_ = true;
    data_.clear();
    co_return;
  }

 private:
  MemoryStore& store_;
  std::string bucket_;
  std::string key_;
  std::string upload_;
  uint32_t number_ = 0;
  mem::BufChain data_;
  bool odd_ = false;
  bool ended_ = false;
};

class MemoryStore::StoreReader final : public object::Reader {
 public:
  StoreReader(MemoryStore& store, std::shared_ptr<Object> object, object::ByteRange range)
      : store_(store), object_(std::move(object)), range_(range) {}

  const ObjectInfo& info() const override { return object_->info; }
  Task<Result<mem::BufChain>> next() override {
    co_await store_.loop_.yield();
    if (store_.faults.bad_piece && *store_.faults.bad_piece == count_) co_return store_.faults.bad_piece_error;
    ++count_;
    const auto n = static_cast<size_t>(std::min<uint64_t>(store_.faults.piece_bytes, range_.length));
    auto piece = object_->data.slice(static_cast<size_t>(range_.offset), n);
    range_.offset += n;
    range_.length -= n;
    co_return piece;
  }

 private:
  MemoryStore& store_;
  std::shared_ptr<Object> object_;
  object::ByteRange range_;
  size_t count_ = 0;
};

std::unique_ptr<object::Writer> MemoryStore::make_part_writer(std::string bucket, std::string key,
                                                              std::string upload_id, uint32_t number) {
  return std::make_unique<StoreWriter>(*this, std::move(bucket), std::move(key), std::move(upload_id), number);
}

Result<MemoryStore::Bucket*> MemoryStore::find(const std::string& bucket) {
  if (faults.every) return *faults.every;
  const auto found = buckets_.find(bucket);
  if (found == buckets_.end()) return no("bucket");
  return &found->second;
}

Result<MemoryStore::Upload*> MemoryStore::find_upload(const std::string& bucket, const std::string& key,
                                                      const std::string& upload_id) {
  TRY(Bucket* const in, find(bucket));
  const auto found = in->uploads.find(upload_id);
  if (found == in->uploads.end() || found->second.key != key) return no("upload");
  return &found->second;
}

Result<void> MemoryStore::check(const Bucket& bucket, const std::string& key,
                                const object::WriteConditions& conditions) const {
  const auto found = bucket.objects.find(key);
  const bool there = found != bucket.objects.end();
  if (conditions.if_none_match_any && there) return Error(Errc::already_exists, "key");
  if (!conditions.if_match) return {};
  if (!there) return no("key");
  if (*conditions.if_match != "*" && *conditions.if_match != found->second->info.etag) {
    return Error(Errc::condition_failed, "key");
  }
  return {};
}

Result<ObjectInfo> MemoryStore::store(const std::string& bucket, const std::string& key, object::Writer::Commit commit,
                                      mem::BufChain data, std::vector<object::PartInfo> parts) {
  TRY(Bucket* const in, find(bucket));
  TRY(check(*in, key, commit.conditions));
  auto object = std::make_shared<Object>();
  object->info.key = key;
  object->info.size = data.size();
  object->info.etag = std::move(commit.etag);
  object->info.modified_unix_ns = clock_.unix_ns();
  object->info.attributes = std::move(commit.attributes);
  object->info.checksum = std::move(commit.checksum);
  object->info.parts = std::move(parts);
  object->data = std::move(data);
  in->objects[key] = object;
  return object->info;
}

Task<Result<object::BucketInfo>> MemoryStore::create_bucket(std::string name, std::string owner, CallContext) {
  if (faults.every) co_return *faults.every;
  if (buckets_.contains(name)) co_return Error(Errc::already_exists, "bucket");
  Bucket& bucket = buckets_[name];
  bucket.info = {name, std::move(owner), clock_.unix_ns()};
  co_return bucket.info;
}

Task<Result<object::BucketInfo>> MemoryStore::head_bucket(std::string name, CallContext context) {
  last_trace = context.trace;
  CO_TRY(Bucket* const bucket, find(name));
  co_return bucket->info;
}

Task<Result<void>> MemoryStore::remove_bucket(std::string name, CallContext) {
  CO_TRY(Bucket* const bucket, find(name));
  if (!bucket->objects.empty()) co_return Error(Errc::condition_failed, "bucket");
  buckets_.erase(name);
  co_return Result<void>();
}

Task<Result<std::vector<object::BucketInfo>>> MemoryStore::list_buckets(CallContext) {
  if (faults.every) co_return *faults.every;
  std::vector<object::BucketInfo> all;
  all.reserve(buckets_.size());
  for (const auto& [name, bucket] : buckets_) all.push_back(bucket.info);
  co_return all;
}

Task<Result<std::unique_ptr<object::Writer>>> MemoryStore::put(std::string bucket, std::string key, CallContext) {
  CO_TRY(find(bucket));
  co_return std::make_unique<StoreWriter>(*this, std::move(bucket), std::move(key));
}

Task<Result<ObjectInfo>> MemoryStore::head(std::string bucket, std::string key, CallContext) {
  CO_TRY(Bucket* const in, find(bucket));
  const auto found = in->objects.find(key);
  if (found == in->objects.end()) co_return no("key");
  co_return found->second->info;
}

Task<Result<std::unique_ptr<object::Reader>>> MemoryStore::open(std::string bucket, std::string key,
                                                                object::RangeChooser* chooser, CallContext) {
  CO_TRY(Bucket* const in, find(bucket));
  const auto found = in->objects.find(key);
  if (found == in->objects.end()) co_return no("key");
  object::ByteRange range{0, found->second->info.size};
  if (chooser != nullptr) {
    CO_TRY(range, chooser->choose(found->second->info));
  }
  ASSERT(range.offset + range.length <= found->second->info.size);
  co_return std::make_unique<StoreReader>(*this, found->second, range);
}

Task<Result<void>> MemoryStore::remove(std::string bucket, std::string key, object::WriteConditions conditions,
                                       CallContext) {
  CO_TRY(Bucket* const in, find(bucket));
  CO_TRY(check(*in, key, conditions));
  in->objects.erase(key);
  co_return Result<void>();
}

Task<Result<void>> MemoryStore::put_access_key(AccessKey key, CallContext) {
  keys_[key.access_key] = key;
  co_return Result<void>();
}

Task<Result<object::ObjectStore::AccessKey>> MemoryStore::get_access_key(std::string access_key, CallContext) {
  const auto found = keys_.find(access_key);
  if (found == keys_.end()) co_return no("access key");
  co_return found->second;
}

Task<Result<void>> MemoryStore::remove_access_key(std::string access_key, CallContext) {
  if (keys_.erase(access_key) == 0) co_return no("access key");
  co_return Result<void>();
}

Task<Result<std::vector<object::ObjectStore::AccessKey>>> MemoryStore::list_access_keys(CallContext) {
  std::vector<AccessKey> all;
  all.reserve(keys_.size());
  for (const auto& [name, key] : keys_) all.push_back(key);
  co_return all;
}

}  // namespace cairn::s3::testing
