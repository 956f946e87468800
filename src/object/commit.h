// Commit: one conditional batch on one group, with a name for each condition, so that whoever retries knows what stood
// in the way.
//
//   Commit commit;
//   commit.require_present(Guard::bucket, keys::bucket_state(bucket));
//   commit.require_unchanged(Guard::record, key, old);
//   commit.put(key, record);
//   CO_TRY(auto blocked, co_await commit.run(client, group, mem::Purpose::client, context));
//   if (!blocked) ...                       // committed
//   else if (*blocked == Guard::record) ... // somebody else was faster: read again
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"

namespace cairn::object {

enum class Guard : uint8_t {
  bucket,   // the bucket exists
  frozen,   // it, or the upload, isn't about to go
  session,  // this writer's session hasn't been declared dead
  upload,   // the upload exists
  record,   // what is replaced is still what was read
};

class Commit {
 public:
  void require_present(Guard guard, std::string key) { require(guard, {.key = std::move(key), .kind = Kind::present}); }
  void require_absent(Guard guard, std::string key) { require(guard, {.key = std::move(key), .kind = Kind::absent}); }
  // `old` is what a read has returned.
  void require_unchanged(Guard guard, std::string key, std::optional<std::string> old) {
    if (!old) return require_absent(guard, std::move(key));
    require(guard, {.key = std::move(key), .kind = Kind::equals, .value = *std::move(old)});
  }
  void put(std::string key, std::string value) { batch_.mutations.push_back({std::move(key), std::move(value)}); }
  void erase(std::string key) { batch_.mutations.push_back({std::move(key), std::nullopt}); }

  // Once. None: committed. A guard: it failed and nothing has changed. An error: see client::outcome_unknown. The
  // caller's cancellation is not passed on, so that a client that hangs up doesn't leave the outcome open.
  Task<Result<std::optional<Guard>>> run(client::Client& client, engine::GroupId group, mem::Purpose purpose,
                                         Time deadline);

 private:
  using Kind = kv::Condition::Kind;
  void require(Guard guard, kv::Condition condition) {
    guards_.push_back(guard);
    batch_.conditions.push_back(std::move(condition));
  }

  std::vector<Guard> guards_;  // of batch_.conditions
  kv::Batch batch_;
};

}  // namespace cairn::object
