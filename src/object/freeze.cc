#include "object/freeze.h"

#include "object/keys.h"

namespace cairn::object {

void require_not_frozen(Commit& commit, Id128 id) { commit.require_absent(Guard::frozen, keys::frozen(id)); }

Task<Result<void>> wait_until_thawed(Core& core, engine::GroupId group, Id128 id, CallContext context) {
  std::optional<std::string> first;
  Time since = core.loop.now();
  for (Duration wait = microseconds(200);; wait = std::min(wait * 2, milliseconds(100))) {
    CO_TRY(auto now, co_await core.client.kv_get(group, keys::frozen(id), core.call(context)));
    if (!now) co_return Result<void>{};
    if (now != first) {
      first = std::move(now);
      since = core.loop.now();
    } else if (core.loop.now() - since >= kFreezePatience) {
      Commit commit;
      commit.require_unchanged(Guard::frozen, keys::frozen(id), first);
      commit.erase(keys::frozen(id));
      CO_TRY(co_await commit.run(core.client, group, mem::Purpose::internal, context.deadline));
      continue;
    }
    CO_TRY(co_await core.loop.sleep(wait, context.cancel));
  }
}

Task<Result<std::optional<Guard>>> Freeze::take(Guard guard, std::string guard_key, CallContext context) {
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    nonce_ = Id128::random(core_.loop.rng()).to_string();
    Commit commit;
    commit.require_present(guard, guard_key);
    require_not_frozen(commit, id_);
    commit.put(keys::frozen(id_), nonce_);
    CO_TRY(const auto blocked, co_await commit.run(core_.client, group_, mem::Purpose::internal, context.deadline));
    if (!blocked) co_return std::optional<Guard>();
    if (*blocked == guard) co_return blocked;
    CO_TRY(co_await wait_until_thawed(core_, group_, id_, context));
    CO_TRY(co_await core_.pause(attempt, context.cancel));
  }
  co_return Error(Errc::busy, "too many wait for each other; try again later");
}

void Freeze::end_with(Commit& commit) const {
  commit.require_unchanged(Guard::frozen, keys::frozen(id_), nonce_);
  commit.erase(keys::frozen(id_));
}

Task<void> Freeze::thaw(CallContext context) {
  Commit commit;
  end_with(commit);
  // If this fails, somebody who wants to get on will do it.
  (void)co_await commit.run(core_.client, group_, mem::Purpose::internal, context.deadline);
}

}  // namespace cairn::object
