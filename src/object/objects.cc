#include "object/objects.h"

#include "object/freeze.h"
#include "object/keys.h"

namespace cairn::object {
namespace {

Error no_key() { return {Errc::not_found, "key"}; }

Result<void> check(const WriteConditions& conditions, const std::optional<ObjectRecord>& stored) {
  if (conditions.if_none_match_any && stored) return Error(Errc::already_exists, "key");
  if (!conditions.if_match) return {};
  if (!stored) return no_key();
  if (*conditions.if_match != "*" && stored->etag != *conditions.if_match) return Error(Errc::condition_failed, "key");
  return {};
}

}  // namespace

Task<Result<Objects::Stored>> Objects::read(Buckets::Ref bucket, std::string key, CallContext context) {
  Stored stored;
  CO_TRY(stored.bytes, co_await core_.client.kv_get(bucket.group, keys::object(bucket.id, key), core_.call(context)));
  if (stored.bytes) {
    CO_TRY(stored.record, ObjectRecord::decode(*stored.bytes));
  }
  co_return stored;
}

Task<Result<Objects::Found>> Objects::find(std::string bucket, std::string key, CallContext context) {
  if (key.size() > keys::kMaxObjectKey) co_return no_key();
  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const Time looked_up = core_.loop.now();
    CO_TRY(Stored stored, co_await read(ref, key, context));
    if (!stored.record) {
      CO_TRY(const bool changed, co_await buckets_.refresh(bucket, ref, context));
      if (changed) continue;
      co_return no_key();
    }
    Found found{.bucket = ref, .record = *std::move(stored.record), .info = {}, .parts = {}, .looked_up = looked_up};
    found.info = found.record.to_info(key);
    if (found.record.part_count > 0) {
      CO_TRY(const auto bytes,
             co_await core_.client.kv_get(ref.group, keys::table(ref.id, found.record.data.id), core_.call(context)));
      if (!bytes) {  // replaced, and its data deleted, in between
        CO_TRY(co_await core_.pause(attempt, context.cancel));
        continue;
      }
      CO_TRY(found.parts, PartTable::decode(*bytes));
      for (const TablePart& part : found.parts->parts) {
        found.info.parts.push_back(part.to_info(found.record.modified_unix_ns));
      }
    }
    co_return found;
  }
  co_return Error(Errc::busy, "the object changes too often to be read");
}

void Objects::discard(Commit& commit, Buckets::Ref bucket, const ObjectRecord& record) const {
  GarbageRecord garbage;
  if (record.part_count > 0) {
    garbage.bucket = bucket.id;
    garbage.table = record.data.id;
  } else if (record.data.size > 0) {
    garbage.data.push_back(record.data);
  } else {
    return;
  }
  commit.put(keys::garbage(core_.wall.unix_ns(), record.data.id.lease()), garbage.encode());
}

Task<Result<std::optional<Guard>>> Objects::replace_once(Buckets::Ref bucket, const Replacement& replacement,
                                                         const Stored& old, CallContext context) {
  const std::string key = keys::object(bucket.id, replacement.key);
  Commit commit;
  commit.require_present(Guard::bucket, keys::bucket_state(bucket.id));
  require_not_frozen(commit, bucket.id);
  commit.require_unchanged(Guard::record, key, old.bytes);
  commit.put(key, replacement.record.encode());
  if (replacement.table) commit.put(keys::table(bucket.id, replacement.record.data.id), *replacement.table);
  if (old.record) discard(commit, bucket, *old.record);
  if (replacement.add) replacement.add(commit);
  co_return co_await commit.run(core_.client, bucket.group, mem::Purpose::client, context.deadline);
}

Task<Objects::Outcome> Objects::replace(Buckets::Ref bucket, const Replacement& replacement, CallContext context) {
  // Once the answer to a batch was lost, only our own record under the key, or a later batch that succeeds, tells. Any
  // other end is an unknown one: the data must stay, because the lost batch may have made it visible for a while.
  std::optional<Error> lost;
  std::optional<std::string> replaced_by_lost;
  const auto fail = [&lost](Error error) {
    return Outcome{.error = lost ? *lost : std::move(error), .unknown = lost.has_value()};
  };
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const Result<Stored> old = co_await read(bucket, replacement.key, context);
    if (!old) co_return fail(old.error());
    if (lost) {
      if (old->record && old->record->data.id == replacement.record.data.id) co_return Outcome{};
      if (old->bytes != replaced_by_lost) co_return fail(*lost);
    }
    if (const Result<void> checked = check(replacement.conditions, old->record); !checked) {
      co_return fail(checked.error());
    }
    if (replacement.sink != nullptr) {
      if (const Result<void> flushed = co_await replacement.sink->flush(); !flushed) co_return fail(flushed.error());
    }
    const Result<std::optional<Guard>> done = co_await replace_once(bucket, replacement, *old, context);
    if (!done) {
      if (!client::outcome_unknown(done.code())) co_return fail(done.error());
      if (!lost) replaced_by_lost = old->bytes;
      lost = done.error();
    } else if (!*done) {
      core_.metrics.commits.add();
      co_return Outcome{};
    } else if (**done != Guard::record) {
      if (lost) co_return fail(*lost);
      co_return Outcome{.blocked = *done};
    }
    core_.metrics.conflicts.add();
    if (const Result<void> paused = co_await core_.pause(attempt, context.cancel); !paused) {
      co_return fail(paused.error());
    }
  }
  co_return fail(Error(Errc::busy, "too many change the object at the same time; try again later"));
}

Task<Result<void>> Objects::clear_way(Guard guard, std::string bucket, Buckets::Ref& ref, CallContext context) {
  switch (guard) {
    case Guard::bucket:
      CO_TRY(co_await buckets_.refresh(std::move(bucket), ref, context));
      co_return Result<void>{};
    case Guard::frozen:
      co_return co_await wait_until_thawed(core_, ref.group, ref.id, context);
    case Guard::session:
    case Guard::upload:
    case Guard::record:
      break;
  }
  co_return Error(Errc::unavailable, "this gateway was taken for dead; try again");
}

Task<Result<ObjectInfo>> Objects::commit_put(std::string bucket, std::string key, DataSink& sink, Writer::Commit commit,
                                             CallContext context) {
  const DataRef data = sink.data();
  Replacement replacement{.key = key, .record = {}, .conditions = std::move(commit.conditions), .sink = &sink};
  replacement.record.data = data;
  replacement.record.etag = std::move(commit.etag);
  replacement.record.modified_unix_ns = core_.wall.unix_ns();
  replacement.record.attributes = std::move(commit.attributes);
  replacement.record.checksum = std::move(commit.checksum);
  replacement.add = [data](Commit& batch) { Session::require_alive(batch, data.id); };

  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Outcome outcome = co_await replace(ref, replacement, context);
    if (outcome.error) {
      if (outcome.unknown) sink.abandon();
      co_return *std::move(outcome.error);
    }
    if (!outcome.blocked) {
      sink.keep();
      co_return replacement.record.to_info(std::move(key));
    }
    if (*outcome.blocked == Guard::session) session_.lost(data.id.session());
    CO_TRY(co_await clear_way(*outcome.blocked, bucket, ref, context));
  }
  co_return Error(Errc::busy, "bucket");
}

Task<Result<void>> Objects::remove(std::string bucket, std::string key, WriteConditions conditions,
                                   CallContext context) {
  CO_TRY(Buckets::Ref ref, co_await buckets_.resolve(bucket, context));
  if (key.size() > keys::kMaxObjectKey) co_return Result<void>{};
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    CO_TRY(Stored old, co_await read(ref, key, context));
    if (!old.record) {
      CO_TRY(const bool changed, co_await buckets_.refresh(bucket, ref, context));
      if (changed) continue;
      co_return check(conditions, old.record);
    }
    CO_TRY(check(conditions, old.record));
    Commit commit;
    commit.require_unchanged(Guard::record, keys::object(ref.id, key), std::move(old.bytes));
    commit.erase(keys::object(ref.id, key));
    discard(commit, ref, *old.record);
    // Repeating it after a lost answer is harmless: the condition names the very record.
    const auto blocked = co_await commit.run(core_.client, ref.group, mem::Purpose::internal, context.deadline);
    if (blocked && !*blocked) {
      core_.metrics.commits.add();
      co_return Result<void>{};
    }
    if (!blocked && blocked.code() != Errc::closed) co_return blocked.error();
    core_.metrics.conflicts.add();
    CO_TRY(co_await core_.pause(attempt, context.cancel));
  }
  co_return Error(Errc::busy, "too many change the object at the same time; try again later");
}

}  // namespace cairn::object
