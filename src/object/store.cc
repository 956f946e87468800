#include "object/store.h"

#include <fmt/core.h>

#include "object/keys.h"
#include "object/listing.h"
#include "object/stored_reader.h"
#include "object/writers.h"

namespace cairn::object {
namespace {

Result<void> check_key(const std::string& key) {
  if (!key.empty() && key.size() <= keys::kMaxObjectKey) return {};
  return Error(key.empty() ? Errc::invalid_argument : Errc::too_large, "key");
}

}  // namespace

Store::Store(Context context, Identity identity)
    : metrics_(context.registry),
      background_(context.loop),
      core_{{.loop = context.loop, .client = context.client, .wall = context.wall, .background = background_},
            metrics_,
            identity},
      buckets_(core_),
      session_(core_),
      objects_(core_, buckets_, session_),
      uploads_(core_, buckets_, session_, objects_),
      access_keys_(core_) {}

Task<void> Store::close() {
  co_await background_.close();
  co_await session_.close();
}

Task<Result<BucketInfo>> Store::create_bucket(std::string name, std::string owner, CallContext context) {
  return buckets_.create(std::move(name), std::move(owner), context);
}
Task<Result<BucketInfo>> Store::head_bucket(std::string name, CallContext context) {
  return buckets_.head(std::move(name), context);
}
Task<Result<void>> Store::remove_bucket(std::string name, CallContext context) {
  return buckets_.remove(std::move(name), context);
}
Task<Result<std::vector<BucketInfo>>> Store::list_buckets(CallContext context) { return buckets_.list(context); }

Task<Result<std::unique_ptr<Writer>>> Store::put(std::string bucket, std::string key, CallContext context) {
  CO_TRY(check_key(key));
  CO_TRY(co_await buckets_.resolve(bucket, context));
  CO_TRY(const DataId data, co_await session_.new_data(context));
  co_return std::make_unique<ObjectWriter>(core_, session_, objects_, data, std::move(bucket), std::move(key), context);
}

Task<Result<ObjectInfo>> Store::head(std::string bucket, std::string key, CallContext context) {
  CO_TRY(auto found, co_await objects_.find(std::move(bucket), std::move(key), context));
  co_return std::move(found.info);
}

Task<Result<std::unique_ptr<Reader>>> Store::open(std::string bucket, std::string key, RangeChooser* chooser,
                                                  CallContext context) {
  CO_TRY(auto found, co_await objects_.find(std::move(bucket), std::move(key), context));
  ByteRange range{.offset = 0, .length = found.info.size};
  if (chooser != nullptr) {
    CO_TRY(range, chooser->choose(found.info));
    if (range.offset > found.info.size || range.length > found.info.size - range.offset) {
      co_return Error(Errc::invalid_argument, "a range beyond the object's end");
    }
  }
  auto reader = std::make_unique<StoredReader>(core_, std::move(found), range, context);
  CO_TRY(co_await reader->begin());
  co_return reader;
}

Task<Result<void>> Store::remove(std::string bucket, std::string key, WriteConditions conditions, CallContext context) {
  return objects_.remove(std::move(bucket), std::move(key), std::move(conditions), context);
}

Task<Result<ListResult>> Store::list(std::string bucket, ListQuery query, CallContext context) {
  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  for (;;) {
    CO_TRY(auto result, co_await list_objects(core_, ref, query, context));
    if (!result.objects.empty() || !result.common_prefixes.empty()) co_return result;
    // Nothing there, or another bucket has the name by now.
    CO_TRY(const bool changed, co_await buckets_.refresh(bucket, ref, context));
    if (!changed) co_return result;
  }
}

Task<Result<std::string>> Store::create_upload(std::string bucket, std::string key, UploadOptions options,
                                               CallContext context) {
  CO_TRY(check_key(key));
  co_return co_await uploads_.create(std::move(bucket), std::move(key), std::move(options), context);
}

Task<Result<ObjectStore::UploadOptions>> Store::head_upload(std::string bucket, std::string key, std::string upload_id,
                                                            CallContext context) {
  CO_TRY(auto found, co_await uploads_.find(std::move(bucket), std::move(key), std::move(upload_id), context));
  co_return std::move(found.record.options);
}

Task<Result<std::unique_ptr<Writer>>> Store::put_part(std::string bucket, std::string key, std::string upload_id,
                                                      uint32_t number, CallContext context) {
  if (number == 0 || number > kMaxParts) {
    co_return Error(Errc::invalid_argument, fmt::format("part numbers go from 1 to {}", kMaxParts));
  }
  CO_TRY(auto found, co_await uploads_.find(std::move(bucket), key, std::move(upload_id), context));
  CO_TRY(const DataId data, co_await session_.new_data(context));
  co_return std::make_unique<PartWriter>(core_, session_, uploads_, data, std::move(found), std::move(key), number,
                                         context);
}

Task<Result<ObjectStore::PartList>> Store::list_parts(std::string bucket, std::string key, std::string upload_id,
                                                      uint32_t after, size_t limit, CallContext context) {
  CO_TRY(auto found, co_await uploads_.find(std::move(bucket), std::move(key), std::move(upload_id), context));
  co_return co_await uploads_.list_parts(std::move(found), after, limit, context);
}

Task<Result<ObjectInfo>> Store::complete_upload(std::string bucket, std::string key, std::string upload_id,
                                                Completion completion, CallContext context) {
  return uploads_.complete(std::move(bucket), std::move(key), std::move(upload_id), std::move(completion), context);
}
Task<Result<void>> Store::abort_upload(std::string bucket, std::string key, std::string upload_id,
                                       CallContext context) {
  return uploads_.abort(std::move(bucket), std::move(key), std::move(upload_id), context);
}

Task<Result<ObjectStore::UploadList>> Store::list_uploads(std::string bucket, UploadQuery query, CallContext context) {
  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  for (;;) {
    CO_TRY(auto result, co_await object::list_uploads(core_, ref, query, context));
    if (!result.uploads.empty() || !result.common_prefixes.empty()) co_return result;
    CO_TRY(const bool changed, co_await buckets_.refresh(bucket, ref, context));
    if (!changed) co_return result;
  }
}

Task<Result<void>> Store::put_access_key(AccessKey key, CallContext context) {
  return access_keys_.put(std::move(key), context);
}
Task<Result<ObjectStore::AccessKey>> Store::get_access_key(std::string access_key, CallContext context) {
  return access_keys_.get(std::move(access_key), context);
}
Task<Result<void>> Store::remove_access_key(std::string access_key, CallContext context) {
  return access_keys_.remove(std::move(access_key), context);
}
Task<Result<std::vector<ObjectStore::AccessKey>>> Store::list_access_keys(CallContext context) {
  return access_keys_.list(context);
}

}  // namespace cairn::object
