#include "object/session.h"

#include <vector>

#include "base/log.h"
#include "object/keys.h"
#include "object/records.h"

namespace cairn::object {
namespace {

// What is done here may be done twice.
constexpr uint32_t kLostTries = 4;

}  // namespace

void Session::require_alive(Commit& commit, DataId data) {
  commit.require_present(Guard::session, keys::fence(data.session()));
}

void Session::lost(uint32_t number) {
  if (number_ == number) number_.reset();
}

Task<Result<DataId>> Session::new_data(CallContext context) {
  if (!number_) {
    CO_TRY(co_await opening_.take(1, context.cancel));
    Result<uint32_t> opened = number_ ? Result<uint32_t>(*number_) : co_await open(context);
    opening_.give();
    if (!opened) co_return std::move(opened).error().with_context("opening a write session");
  }
  co_return DataId::make(*number_, counter_++);
}

Task<Result<uint32_t>> Session::open(CallContext context) {
  CO_TRY(const uint32_t number, co_await reserve_number(context));
  // All or none: a fence that is missing in one group would make every commit there fail.
  const std::vector<engine::GroupId> groups = core_.client.all_groups();
  std::vector<Result<void>> results(groups.size());
  Scope scope(core_.loop);
  for (size_t i = 0; i < groups.size(); ++i) {
    scope.spawn(&Session::put_fence, this, groups[i], number, &results[i], context);
  }
  co_await scope.join();
  for (Result<void>& result : results) {
    if (!result) {
      clean_ = false;  // the owner's next life removes what is there of it
      co_return std::move(result).error();
    }
  }
  number_ = number;
  counter_ = 1;
  co_return number;
}

Task<void> Session::put_fence(engine::GroupId group, uint32_t number, Result<void>* result, CallContext context) {
  kv::Batch batch;
  batch.mutations.push_back({keys::fence(number), std::string()});
  *result =
      co_await core_.client.kv_batch(group, std::move(batch), mem::Purpose::internal, {.deadline = context.deadline});
}

Task<Result<uint32_t>> Session::reserve_number(CallContext context) {
  const engine::GroupId group = core_.client.system_group();
  const std::string counter_key(keys::kSessionCounter);
  uint32_t lost = 0;
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    CO_TRY(auto old, co_await core_.client.kv_get(group, counter_key, core_.call(context)));
    uint32_t last = 0;
    if (old) {
      CO_TRY(last, decode_session_counter(*old));
    }
    if (last == UINT32_MAX) co_return Error(Errc::too_large, "all session numbers are used up");
    const uint32_t number = last + 1;
    const SessionRecord record{
        .owner = core_.identity.owner, .life = core_.identity.life, .opened_unix_ns = core_.wall.unix_ns()};
    Commit commit;
    commit.require_unchanged(Guard::record, counter_key, std::move(old));
    commit.put(counter_key, encode_session_counter(number));
    commit.put(keys::session(number), record.encode());
    const auto blocked = co_await commit.run(core_.client, group, mem::Purpose::internal, context.deadline);
    if (blocked && !*blocked) co_return number;
    // A lost answer may cost a number, and leave a session record for the owner's next life to remove.
    if (!blocked && (blocked.code() != Errc::closed || ++lost == kLostTries)) co_return blocked.error();
    CO_TRY(co_await core_.pause(attempt, context.cancel));
  }
  co_return Error(Errc::busy, "too many writers start at the same time");
}

Task<void> Session::close() {
  if (!number_) co_return;
  const uint32_t number = *number_;
  number_.reset();
  if (!clean_) co_return;
  // Not core_.background_call(): its scope is being cancelled.
  const client::CallContext context{.deadline = core_.loop.now() + seconds(5), .cancel = {}};
  Result<void> done = co_await fence_session(core_.client, number, context);
  if (done) {
    kv::Batch batch;
    batch.mutations.push_back({keys::session(number), std::nullopt});
    done =
        co_await core_.client.kv_batch(core_.client.system_group(), std::move(batch), mem::Purpose::internal, context);
  }
  if (!done) LOG(info, "write session {} stays for the next start to clean up: {}", number, done.error().to_string());
}

Task<Result<void>> fence_session(client::Client& client, uint32_t number, client::CallContext context) {
  for (const engine::GroupId group : client.all_groups()) {
    kv::Batch batch;
    batch.mutations.push_back({keys::fence(number), std::nullopt});
    CO_TRY(co_await client.kv_batch(group, std::move(batch), mem::Purpose::internal, context));
  }
  co_return Result<void>{};
}

}  // namespace cairn::object
