#include "kv/kv_machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "kv/prefix_store.h"

namespace cairn::kv {
namespace {

// Between two tries when flushing alone doesn't make room (the store's compaction is behind).
constexpr Duration kFirstPause = milliseconds(1);
constexpr Duration kLongestPause = milliseconds(100);

bool holds(const Condition& condition, const std::optional<std::string>& value) {
  switch (condition.kind) {
    case Condition::Kind::absent:
      return !value.has_value();
    case Condition::Kind::present:
      return value.has_value();
    case Condition::Kind::equals:
      return value == condition.value;
  }
  return false;
}

// Gives a semaphore's unit back at the end of a block.
class Turn {
 public:
  explicit Turn(Semaphore& semaphore) : semaphore_(semaphore) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { semaphore_.give(); }

 private:
  Semaphore& semaphore_;
};

}  // namespace

KvMachine::KvMachine(Loop& loop, OrderedStore& store, Options options)
    : loop_(loop),
      store_(store),
      data_prefix_(options.prefix + 'd'),
      applied_key_(options.prefix + 'm'),
      applying_(loop, 1),
      latches_(loop, options.max_waiting) {}

Task<Result<std::unique_ptr<KvMachine>>> KvMachine::open(Loop& loop, OrderedStore& store, Options options) {
  std::unique_ptr<KvMachine> machine(new KvMachine(loop, store, std::move(options)));
  CO_TRY(co_await machine->load_applied());
  co_return machine;
}

Mutation KvMachine::applied_mutation(const std::string& key, uint64_t index) {
  AppliedValue value;
  value.version = AppliedValue::kVersion;
  value.index = index;
  value.crc = crc32c(&value, offsetof(AppliedValue, crc));
  return {key, std::string(reinterpret_cast<const char*>(&value), sizeof value)};
}

Task<Result<void>> KvMachine::load_applied() {
  CO_TRY(auto bytes, co_await store_.get(applied_key_));
  if (!bytes) co_return Result<void>{};
  AppliedValue value;
  if (bytes->size() != sizeof value) co_return Error(Errc::corrupt, "key-value machine: applied index of wrong size");
  std::memcpy(&value, bytes->data(), sizeof value);
  if (value.crc != crc32c(&value, offsetof(AppliedValue, crc))) {
    co_return Error(Errc::corrupt, "key-value machine: wrong checksum of the applied index");
  }
  if (value.version != AppliedValue::kVersion) {
    co_return Error(
        Errc::unsupported,
        fmt::format("key-value machine: data of version {}, newer than this build: upgrade it", value.version.get()));
  }
  applied_ = value.index;
  co_return Result<void>{};
}

Task<Result<KvMachine::Admission>> KvMachine::admit(Batch batch, CancelToken cancel) {
  // First, because it needs no wait.
  CO_TRY(auto body, encode_batch(batch.mutations));
  std::vector<Latches::Want> wants;
  wants.reserve(batch.conditions.size() + batch.mutations.size());
  for (const Condition& condition : batch.conditions) wants.push_back({.key = condition.key, .check = true});
  for (const Mutation& mutation : batch.mutations) wants.push_back({.key = mutation.key, .change = true});
  CO_TRY(auto guard, co_await latches_.acquire(std::move(wants), cancel));

  CO_TRY(const std::optional<size_t> failed, co_await first_failed(batch.conditions));
  if (failed) co_return Error(Errc::condition_failed, std::to_string(*failed));
  co_return Admission{.body = std::move(body), .guard = std::move(guard)};
}

Task<Result<std::optional<size_t>>> KvMachine::first_failed(const std::vector<Condition>& conditions) {
  for (size_t i = 0; i < conditions.size(); ++i) {
    CO_TRY(const auto value, co_await get(conditions[i].key));
    if (!holds(conditions[i], value)) co_return std::optional<size_t>(i);
  }
  co_return std::optional<size_t>();
}

Task<Result<void>> KvMachine::apply(uint64_t index, std::string body, std::vector<Mutation> also, CancelToken cancel) {
  CO_TRY(co_await applying_.take(1, cancel));
  const Turn turn(applying_);
  if (failed_) co_return *failed_;
  if (index <= applied_) co_return Result<void>{};

  auto decoded = decode_batch(body);
  if (!decoded) {
    failed_ = std::move(decoded).error().with_context(fmt::format("entry {}", index));
    co_return *failed_;
  }
  std::vector<Mutation> mutations = *std::move(decoded);
  for (Mutation& mutation : mutations) mutation.key.insert(0, data_prefix_);
  std::ranges::move(also, std::back_inserter(mutations));
  mutations.push_back(applied_mutation(applied_key_, index));

  if (Result<void> written = co_await write_waiting(mutations, cancel); !written) {
    if (!cancel.cancelled() || written.code() != cancel.reason()) failed_ = written.error();
    co_return std::move(written).error();
  }
  applied_ = index;
  co_return Result<void>{};
}

Task<Result<void>> KvMachine::write_waiting(const std::vector<Mutation>& mutations, CancelToken cancel) {
  for (Duration pause{};; pause = std::clamp(pause * 2, kFirstPause, kLongestPause)) {
    Result<void> written = store_.write(mutations);
    if (written.code() != Errc::busy) co_return written;
    CO_TRY(co_await store_.flush());
    if (pause.ns > 0) CO_TRY(co_await loop_.sleep(pause, cancel));
    if (cancel.cancelled()) co_return Error(cancel.reason());
  }
}

Task<Result<std::optional<std::string>>> KvMachine::get(std::string key) {
  key.insert(0, data_prefix_);
  co_return co_await store_.get(key);
}

Task<Result<ScanResult>> KvMachine::scan(ScanOptions options) {
  PrefixStore data(store_, data_prefix_);
  co_return co_await data.scan(std::move(options));
}

}  // namespace cairn::kv
