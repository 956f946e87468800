#include "object/uploads.h"

#include <fmt/core.h>

#include "kv/prefix_store.h"
#include "object/freeze.h"
#include "object/keys.h"

namespace cairn::object {
namespace {

Error no_upload() { return {Errc::not_found, "upload"}; }
Error bad_part(uint32_t number) { return {Errc::invalid_argument, fmt::format("part {}", number)}; }

// Ids of one key ascend with time: 8 bytes of it, then 8 random ones.
Id128 new_upload_id(int64_t unix_ns, Rng& rng) {
  Id128 id = Id128::random(rng);
  for (size_t i = 0; i < 8; ++i) id.bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(unix_ns) >> (56 - 8 * i));
  return id;
}

bool same_parts(const std::vector<PartInfo>& named, const std::vector<PartInfo>& stored) {
  return std::ranges::equal(
      named, stored, [](const PartInfo& a, const PartInfo& b) { return a.number == b.number && a.etag == b.etag; });
}

}  // namespace

Task<Result<Uploads::Found>> Uploads::find(std::string bucket, std::string key, std::string upload_id,
                                           CallContext context) {
  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  const std::optional<Id128> id = Id128::parse(upload_id);
  for (;;) {
    std::optional<std::string> bytes;
    if (id && key.size() <= keys::kMaxObjectKey) {
      CO_TRY(bytes, co_await core_.client.kv_get(ref.group, keys::upload(ref.id, key, *id), core_.call(context)));
    }
    if (bytes) {
      CO_TRY(auto record, UploadRecord::decode(*bytes));
      co_return Found{.bucket = ref, .id = *id, .record = std::move(record)};
    }
    CO_TRY(const bool changed, co_await buckets_.refresh(bucket, ref, context));
    if (!changed) co_return no_upload();
  }
}

Task<Result<std::string>> Uploads::create(std::string bucket, std::string key, ObjectStore::UploadOptions options,
                                          CallContext context) {
  const UploadRecord record{.options = std::move(options), .initiated_unix_ns = core_.wall.unix_ns()};
  const Id128 id = new_upload_id(record.initiated_unix_ns, core_.loop.rng());
  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Commit commit;
    commit.require_present(Guard::bucket, keys::bucket_state(ref.id));
    std::string stored_key = keys::upload(ref.id, key, id);
    if (key.size() > keys::kMaxObjectKey || stored_key.size() > client::Client::kMaxKeyBytes) {
      co_return Error(Errc::too_large, "key");
    }
    commit.put(std::move(stored_key), record.encode());
    CO_TRY(const auto blocked, co_await commit.run(core_.client, ref.group, mem::Purpose::client, context.deadline));
    if (!blocked) co_return id.to_string();
    CO_TRY(co_await objects_.clear_way(*blocked, bucket, ref, context));
  }
  co_return Error(Errc::busy, "bucket");
}

Task<Result<ObjectInfo>> Uploads::commit_part(Found upload, std::string key, uint32_t number, DataSink& sink,
                                              Writer::Commit commit, CallContext context) {
  const Buckets::Ref ref = upload.bucket;
  const std::string part_key = keys::part(ref.id, upload.id, number);
  PartRecord record{.data = sink.data(), .etag = commit.etag, .modified_unix_ns = 0, .checksum = commit.checksum};
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    CO_TRY(auto old_bytes, co_await core_.client.kv_get(ref.group, part_key, core_.call(context)));
    CO_TRY(co_await sink.flush());
    record.modified_unix_ns = core_.wall.unix_ns();
    Commit batch;
    batch.require_present(Guard::upload, keys::upload(ref.id, key, upload.id));
    require_not_frozen(batch, upload.id);
    Session::require_alive(batch, record.data.id);
    if (old_bytes) {
      CO_TRY(const auto old, PartRecord::decode(*old_bytes));
      if (old.data.size > 0 && old.data.id != record.data.id) {
        GarbageRecord garbage;
        garbage.data.push_back(old.data);
        batch.put(keys::garbage(core_.wall.unix_ns(), old.data.id.lease()), garbage.encode());
      }
    }
    batch.require_unchanged(Guard::record, part_key, std::move(old_bytes));
    batch.put(part_key, record.encode());
    const auto blocked = co_await batch.run(core_.client, ref.group, mem::Purpose::client, context.deadline);
    if (!blocked) {
      // Nobody else can tell whether it is there: the client sends the part again, and if it is, that replaces it.
      if (client::outcome_unknown(blocked.code())) sink.abandon();
      co_return blocked.error();
    }
    if (!*blocked) {
      sink.keep();
      core_.metrics.commits.add();
      co_return ObjectInfo{.key = std::move(key),
                           .size = record.data.size,
                           .etag = record.etag,
                           .modified_unix_ns = record.modified_unix_ns,
                           .attributes = {},
                           .checksum = record.checksum,
                           .parts = {}};
    }
    switch (**blocked) {
      case Guard::upload:
        co_return no_upload();
      case Guard::session:
        session_.lost(record.data.id.session());
        co_return Error(Errc::unavailable, "this gateway was taken for dead; try again");
      case Guard::frozen:
        CO_TRY(co_await wait_until_thawed(core_, ref.group, upload.id, context));
        break;
      case Guard::bucket:
      case Guard::record:
        break;
    }
    core_.metrics.conflicts.add();
    CO_TRY(co_await core_.pause(attempt, context.cancel));
  }
  co_return Error(Errc::busy, "too many write the same part at the same time");
}

Task<Result<ObjectStore::PartList>> Uploads::list_parts(Found upload, uint32_t after, size_t limit,
                                                        CallContext context) {
  ObjectStore::PartList out;
  const Buckets::Ref ref = upload.bucket;
  if (after == UINT32_MAX) co_return out;
  std::string begin = keys::part(ref.id, upload.id, after + 1);
  const std::string end = kv::prefix_end(keys::part_prefix(ref.id, upload.id));
  // One more than wanted tells whether more follow.
  while (out.parts.size() <= limit) {
    kv::ScanOptions options{
        .begin = begin, .end = end, .max_items = std::min<size_t>(limit + 1 - out.parts.size(), 1000)};
    CO_TRY(const auto page, co_await core_.client.kv_scan(ref.group, std::move(options), core_.call(context)));
    for (const kv::KeyValue& item : page.items) {
      const std::optional<uint32_t> number = keys::part_number(item.key);
      if (!number) co_return Error(Errc::corrupt, "a part record with a malformed key");
      CO_TRY(auto record, PartRecord::decode(item.value));
      out.parts.push_back({.number = *number,
                           .size = record.data.size,
                           .etag = std::move(record.etag),
                           .modified_unix_ns = record.modified_unix_ns,
                           .checksum = std::move(record.checksum)});
    }
    if (!page.more) break;
    begin = page.items.back().key + '\0';
  }
  if (out.parts.size() > limit) {
    out.more = true;
    out.parts.resize(limit);
  }
  co_return out;
}

Task<Result<Uploads::Assembly>> Uploads::assemble(const Found& upload, const ObjectStore::Completion& completion,
                                                  CallContext context) {
  Assembly out;
  out.table.parts.reserve(completion.parts.size());
  auto wanted = completion.parts.begin();
  const std::string prefix = keys::part_prefix(upload.bucket.id, upload.id);
  std::string begin = prefix;
  for (bool more = true; more;) {
    kv::ScanOptions options{.begin = begin, .end = kv::prefix_end(prefix)};
    CO_TRY(const auto page,
           co_await core_.client.kv_scan(upload.bucket.group, std::move(options), core_.call(context)));
    for (const kv::KeyValue& item : page.items) {
      const std::optional<uint32_t> number = keys::part_number(item.key);
      if (!number) co_return Error(Errc::corrupt, "a part record with a malformed key");
      CO_TRY(auto record, PartRecord::decode(item.value));
      if (wanted != completion.parts.end() && wanted->number < *number) co_return bad_part(wanted->number);
      if (wanted == completion.parts.end() || wanted->number != *number) {
        if (record.data.size > 0) out.left_over.push_back(record.data);
        continue;
      }
      if (record.etag != wanted->etag) co_return bad_part(*number);
      if (wanted->checksum && (!record.checksum || record.checksum->value != wanted->checksum->value)) {
        co_return bad_part(*number);
      }
      out.size += record.data.size;
      out.table.parts.push_back({.number = *number,
                                 .data = record.data,
                                 .etag = std::move(record.etag),
                                 .checksum = std::move(record.checksum)});
      ++wanted;
    }
    more = page.more;
    if (more) begin = page.items.back().key + '\0';
  }
  if (wanted != completion.parts.end()) co_return bad_part(wanted->number);
  co_return out;
}

Task<Result<ObjectInfo>> Uploads::complete(std::string bucket, std::string key, std::string upload_id,
                                           ObjectStore::Completion completion, CallContext context) {
  if (completion.parts.empty()) co_return Error(Errc::invalid_argument, "no parts");
  for (size_t i = 1; i < completion.parts.size(); ++i) {
    if (completion.parts[i - 1].number >= completion.parts[i].number) {
      co_return Error(Errc::invalid_argument, "parts are not in ascending order");
    }
  }
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const auto upload = co_await find(bucket, key, upload_id, context);
    if (!upload) {
      const std::optional<Id128> id = Id128::parse(upload_id);
      if (upload.code() != Errc::not_found || upload.error().message() != "upload" || !id) co_return upload.error();
      CO_TRY(auto before, co_await completed_before(bucket, key, *id, completion, context));
      if (before) co_return *std::move(before);
      co_return no_upload();
    }
    Freeze freeze(core_, upload->bucket.group, upload->id);
    CO_TRY(const auto missing,
           co_await freeze.take(Guard::upload, keys::upload(upload->bucket.id, key, upload->id), context));
    if (missing) continue;  // completed or aborted meanwhile: look again
    bool try_again = false;
    auto completed = co_await complete_frozen(*upload, bucket, key, completion, freeze, try_again, context);
    if (completed) co_return completed;
    co_await freeze.thaw(context);
    if (!try_again) co_return completed;
    CO_TRY(co_await core_.pause(attempt + 1, context.cancel));
  }
  co_return Error(Errc::busy, "too many complete the upload at the same time");
}

Task<Result<ObjectInfo>> Uploads::complete_frozen(const Found& upload, std::string bucket, std::string key,
                                                  const ObjectStore::Completion& completion, Freeze& freeze,
                                                  bool& try_again, CallContext context) {
  CO_TRY(Assembly assembly, co_await assemble(upload, completion, context));
  CO_TRY(const DataId table_id, co_await session_.new_data(context));
  Objects::Replacement replacement{.key = key, .record = {}, .conditions = completion.conditions};
  replacement.record.data = {.id = table_id, .size = assembly.size};
  replacement.record.etag = completion.etag;
  replacement.record.modified_unix_ns = core_.wall.unix_ns();
  replacement.record.attributes = upload.record.options.attributes;
  replacement.record.checksum = completion.checksum;
  replacement.record.part_count = static_cast<uint32_t>(assembly.table.parts.size());
  replacement.record.upload = upload.id;
  CO_TRY(replacement.table, assembly.table.encode());

  GarbageRecord garbage;
  garbage.bucket = upload.bucket.id;
  garbage.upload = upload.id;
  garbage.data = std::move(assembly.left_over);
  replacement.add = [&](Commit& commit) {
    freeze.end_with(commit);
    commit.erase(keys::upload(upload.bucket.id, key, upload.id));
    commit.put(keys::garbage(core_.wall.unix_ns(), upload.id), garbage.encode());
  };
  const Objects::Outcome outcome = co_await objects_.replace(upload.bucket, replacement, context);
  // After an unknown outcome the client asks again, and finds the upload or the object.
  if (outcome.error) co_return *outcome.error;
  if (outcome.blocked) {
    // The bucket may be about to go, or has gone, or we were slow and somebody broke our freeze.
    Buckets::Ref ref = upload.bucket;
    CO_TRY(co_await objects_.clear_way(*outcome.blocked, bucket, ref, context));
    try_again = true;
    co_return Error(Errc::busy, "upload");
  }
  ObjectInfo info = replacement.record.to_info(std::move(key));
  for (const TablePart& part : assembly.table.parts) {
    info.parts.push_back(part.to_info(replacement.record.modified_unix_ns));
  }
  co_return info;
}

Task<Result<std::optional<ObjectInfo>>> Uploads::completed_before(std::string bucket, std::string key, Id128 upload,
                                                                  const ObjectStore::Completion& completion,
                                                                  CallContext context) {
  auto found = co_await objects_.find(std::move(bucket), std::move(key), context);
  if (!found) {
    if (found.code() == Errc::not_found) co_return std::optional<ObjectInfo>();
    co_return found.error();
  }
  if (found->record.upload != upload || !same_parts(completion.parts, found->info.parts)) {
    co_return std::optional<ObjectInfo>();
  }
  co_return std::optional<ObjectInfo>(std::move(found->info));
}

Task<Result<void>> Uploads::abort(std::string bucket, std::string key, std::string upload_id, CallContext context) {
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    CO_TRY(const Found upload, co_await find(bucket, key, upload_id, context));
    GarbageRecord garbage;
    garbage.bucket = upload.bucket.id;
    garbage.upload = upload.id;
    garbage.upload_data = true;
    Commit commit;
    commit.require_present(Guard::upload, keys::upload(upload.bucket.id, key, upload.id));
    require_not_frozen(commit, upload.id);
    commit.erase(keys::upload(upload.bucket.id, key, upload.id));
    commit.put(keys::garbage(core_.wall.unix_ns(), upload.id), garbage.encode());
    CO_TRY(const auto blocked,
           co_await commit.run(core_.client, upload.bucket.group, mem::Purpose::internal, context.deadline));
    if (!blocked) co_return Result<void>{};
    if (*blocked == Guard::frozen) CO_TRY(co_await wait_until_thawed(core_, upload.bucket.group, upload.id, context));
    CO_TRY(co_await core_.pause(attempt, context.cancel));
  }
  co_return Error(Errc::busy, "upload");
}

}  // namespace cairn::object
