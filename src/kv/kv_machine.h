// KvMachine: the key-value state machine of one group, on its replica's part of the store.
//
//                    leader                                         every replica
//   batch ──▶ admit: latches, conditions ──▶ body ──▶ the group's log ──▶ apply(index, body)
//                       ▲  reads                          (not here)          │ one atomic write:
//                       └──────────────── OrderedStore ◀───────────────────────┘ mutations + applied index
//
//   CO_TRY(auto admission, co_await machine.admit(std::move(batch), cancel));
//   entry.body = admission.body;                     // propose it, wait until it is committed
//   CO_TRY(co_await machine.apply(index, entry.body));
//   admission.guard.release();                       // or its destructor: only when applied, or never proposed
//
// Conditions are looked at once, by the leader, against the applied state; so a leader applies everything that earlier
// leaders committed before it admits. When a proposal's fate is unknown (it may still be committed), its guard must be
// kept until that is known or this replica no longer leads.
//
// Knows neither groups nor the engine: the caller gives each group its own key prefix. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/endian.h"
#include "base/status.h"
#include "kv/batch.h"
#include "kv/latches.h"
#include "kv/ordered_store.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::kv {

struct Condition {
  enum class Kind : uint8_t { absent, present, equals };
  std::string key;
  Kind kind = Kind::absent;
  std::string value{};  // for equals
};

// Takes effect whole or not at all. A key may be mutated several times: the last one counts.
struct Batch {
  std::vector<Condition> conditions;
  std::vector<Mutation> mutations;
};

class KvMachine {
 public:
  struct Options {
    std::string prefix;         // of every key of this machine in the store; no other's prefix begins with it
    size_t max_waiting = 4096;  // batches that wait for conflicting ones
  };
  // Reads how far the store has applied. `loop` and `store` outlive the machine. Errors: the store's; corrupt or
  // unsupported when the applied index isn't what this build writes.
  static Task<Result<std::unique_ptr<KvMachine>>> open(Loop& loop, OrderedStore& store, Options options);
  KvMachine(const KvMachine&) = delete;
  KvMachine& operator=(const KvMachine&) = delete;

  struct Admission {
    std::string body;      // for the log
    Latches::Guard guard;  // what the conditions said stays true while it is held
  };
  // Waits for conflicting batches, then looks at the conditions. Errors: condition_failed, with the number of the first
  // condition that doesn't hold (from 0) as message; too_large; busy (too many wait); the token's reason; the store's.
  Task<Result<Admission>> admit(Batch batch, CancelToken cancel = {});

  // The effects of the log's entry `index`, visible when it returns. Called in ascending order of `index`, awaiting may
  // overlap; an index that is applied already does nothing. `also` is written in the same atomic write, under its keys
  // as they are: other bookkeeping about the same entry.
  //
  // When the store is behind, it waits for a flush and tries again: a committed entry is never dropped. Errors: corrupt
  // or unsupported (the body), the store's, the token's reason. After any error but the token's, the machine has failed
  // and answers every further apply with that error; what the store then holds is known after it is opened anew.
  Task<Result<void>> apply(uint64_t index, std::string body, std::vector<Mutation> also = {}, CancelToken cancel = {});

  // Reads see every entry whose apply has returned.
  Task<Result<std::optional<std::string>>> get(std::string key);
  Task<Result<ScanResult>> scan(ScanOptions options);

  // The last index whose effects are in the store. Durable only after a flush of the store.
  uint64_t applied() const { return applied_; }
  const Latches& latches() const { return latches_; }

 private:
  // The value under the applied key.
  struct AppliedValue {
    static constexpr uint16_t kVersion = 1;
    Le16 version;
    Le16 reserved;
    Le64 index;
    Le32 crc;  // of what precedes it
  };
  static_assert(sizeof(AppliedValue) == 16);

  KvMachine(Loop& loop, OrderedStore& store, Options options);
  static Mutation applied_mutation(const std::string& key, uint64_t index);
  Task<Result<void>> load_applied();
  Task<Result<std::optional<size_t>>> first_failed(const std::vector<Condition>& conditions);
  Task<Result<void>> write_waiting(const std::vector<Mutation>& mutations, CancelToken cancel);

  Loop& loop_;
  OrderedStore& store_;
  // prefix + 'd' + key: data; prefix + 'm': the applied index.
  std::string data_prefix_;
  std::string applied_key_;
  uint64_t applied_ = 0;
  Semaphore applying_;  // one at a time, in the order of the calls
  std::optional<Error> failed_;
  Latches latches_;
};

}  // namespace cairn::kv
