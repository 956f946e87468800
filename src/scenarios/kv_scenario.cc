#include "scenarios/kv_scenario.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_machine.h"
#include "kv/memory_store.h"
#include "reactor/scope.h"
#include "scenarios/kv_model.h"
#include "sim/check.h"
#include "sim/fault_plan.h"
#include "sim/simulator.h"

namespace cairn::scenarios {
namespace {

constexpr std::string_view kPrefix = "g1/";

class KvWorld {
 public:
  explicit KvWorld(const RunInput& input)
      : sim_(input.seed),
        loop_(sim_),
        rng_(sim_.make_rng("kv workload")),
        plan_(FaultPlan::draw(rng_)),
        store_(loop_, {.read_max = microseconds(80), .flush_max = microseconds(800)}),
        sabotage_(input.sabotage) {
    sim_.trace().print_to(input.trace);
    keys_ = 2 + rng_.below(20);
    store_.lie_about_flush(sabotage_ == Sabotage::store_lies_about_flush);
  }

  RunOutcome run();

 private:
  void live();
  void open_and_check();
  void replay();
  void crash();
  void set_faults(bool on);

  static Task<void> client(KvWorld* world, uint64_t number, CancelToken stop);
  Task<void> do_batch(SeededRng& rng);
  Task<void> do_get(SeededRng& rng);
  Task<void> do_scan(SeededRng& rng);
  Task<void> do_flush();
  Task<bool> commit_and_apply(uint64_t index, std::string body);

  std::string random_key(SeededRng& rng) const { return "k" + std::to_string(rng.below(keys_)); }
  kv::Batch random_batch(SeededRng& rng);
  kv::ScanOptions random_scan(SeededRng& rng) const;
  // True when `agrees` holds for an index from `first` to the one that is applied now.
  template <typename Agrees>
  bool at_some_moment_since(uint64_t first, Agrees agrees) const {
    for (uint64_t at = first; at <= machine_->applied(); ++at) {
      if (agrees(at)) return true;
    }
    return false;
  }

  Simulator sim_;
  SimLoop loop_;
  SeededRng rng_;
  FaultPlan plan_;
  kv::MemoryStore store_;
  Sabotage sabotage_;
  Check check_;
  Coverage coverage_;
  uint64_t keys_ = 0;

  std::unique_ptr<kv::KvMachine> machine_;
  KvModel model_{kPrefix.size() + 1};
  std::vector<std::string> bodies_;  // the log: entry i is bodies_[i - 1]
  uint64_t committed_ = 0;           // what a crash can't take from the log
  uint64_t flushed_ = 0;             // applied at the start of the last flush that succeeded
  bool failed_ = false;              // the machine failed: nothing goes on until it is opened anew
};

kv::Batch KvWorld::random_batch(SeededRng& rng) {
  kv::Batch batch;
  for (uint64_t i = 0, n = rng.below(4); i < n; ++i) {
    const auto kind = static_cast<kv::Condition::Kind>(rng.below(3));
    batch.conditions.push_back({.key = random_key(rng), .kind = kind, .value = std::to_string(rng.below(3))});
  }
  for (uint64_t i = 0, n = rng.below(5); i < n; ++i) {
    kv::Mutation mutation{random_key(rng), std::nullopt};
    if (rng.chance(2, 3)) mutation.value = std::to_string(rng.below(3));
    batch.mutations.push_back(std::move(mutation));
  }
  return batch;
}

kv::ScanOptions KvWorld::random_scan(SeededRng& rng) const {
  kv::ScanOptions options;
  if (rng.chance(1, 2)) options.begin = random_key(rng);
  if (rng.chance(1, 2)) options.end = random_key(rng);
  if (rng.chance(1, 2)) options.max_items = 1 + rng.below(5);
  if (rng.chance(1, 4)) options.max_bytes = 1 + rng.below(20);
  options.keys_only = rng.chance(1, 4);
  return options;
}

Task<bool> KvWorld::commit_and_apply(uint64_t index, std::string body) {
  // The log's round trip. Entries commit in order.
  (void)co_await loop_.sleep(microseconds(static_cast<int64_t>(loop_.rng().below(150))));
  while (committed_ + 1 < index && !failed_) (void)co_await loop_.sleep(microseconds(7));
  if (failed_) co_return false;
  committed_ = std::max(committed_, index);
  while (machine_->applied() + 1 < index && !failed_) (void)co_await loop_.sleep(microseconds(3));
  if (failed_) co_return false;
  const Result<void> applied = co_await machine_->apply(index, std::move(body));
  sim_.trace().event("kv.applied", index, static_cast<uint64_t>(applied.code()));
  if (applied) co_return true;
  failed_ = true;
  co_return false;
}

Task<void> KvWorld::do_batch(SeededRng& rng) {
  kv::Batch batch = random_batch(rng);
  const std::vector<kv::Condition> conditions = batch.conditions;
  const std::vector<kv::Mutation> mutations = batch.mutations;
  const uint64_t before = machine_->applied();
  auto admission = co_await machine_->admit(std::move(batch));
  sim_.trace().event("kv.admit", static_cast<uint64_t>(admission.code()), before, machine_->applied());
  if (admission.code() == Errc::condition_failed) {
    coverage_.hit("kv.condition_failed");
    const size_t which = std::stoul(admission.error().message());
    check_.that(at_some_moment_since(before, [&](uint64_t at) { return model_.first_failed(conditions, at) == which; }),
                "condition {} was said to be false, and it was true all the time", which);
    co_return;
  }
  if (!admission || failed_) co_return;  // the store failed or lost its power
  const uint64_t index = model_.append(mutations);
  bodies_.push_back(admission->body);
  check_.that(!model_.first_failed(conditions, index - 1).has_value(),
              "entry {} was proposed although a condition is not true at its place in the log", index);
  if (co_await commit_and_apply(index, admission->body)) coverage_.hit("kv.batch_applied");
}

Task<void> KvWorld::do_get(SeededRng& rng) {
  const std::string key = random_key(rng);
  const uint64_t before = machine_->applied();
  const auto value = co_await machine_->get(key);
  if (!value) co_return;
  check_.that(at_some_moment_since(before, [&](uint64_t at) { return model_.get(key, at) == *value; }),
              "get {} gave '{}', its value at no moment of the call", key, value->value_or("(nothing)"));
  coverage_.hit("kv.get");
}

Task<void> KvWorld::do_scan(SeededRng& rng) {
  const kv::ScanOptions options = random_scan(rng);
  const uint64_t before = machine_->applied();
  const auto result = co_await machine_->scan(options);
  if (!result) co_return;
  check_.that(at_some_moment_since(before, [&](uint64_t at) { return same_items(model_.scan(options, at), *result); }),
              "scan from '{}' to '{}' gave {} items, the state at no moment of the call", options.begin, options.end,
              result->items.size());
  coverage_.hit("kv.scan");
}

Task<void> KvWorld::do_flush() {
  const uint64_t covered = machine_->applied();
  if (!co_await store_.flush()) co_return;
  flushed_ = std::max(flushed_, covered);
  coverage_.hit("kv.flush");
}

Task<void> KvWorld::client(KvWorld* world, uint64_t number, CancelToken stop) {
  SeededRng rng(world->sim_.seed() * 1000 + number + world->bodies_.size() * 7);
  while (!stop.cancelled() && !world->failed_ && world->check_.ok()) {
    const uint64_t what = rng.below(20);
    if (what < 12) {
      co_await world->do_batch(rng);
    } else if (what < 16) {
      co_await world->do_get(rng);
    } else if (what < 18) {
      co_await world->do_scan(rng);
    } else {
      co_await world->do_flush();
    }
    (void)co_await world->loop_.sleep(microseconds(static_cast<int64_t>(rng.below(60))));
  }
}

void KvWorld::set_faults(bool on) {
  store_.set_unflushed_limit(on && plan_.store_busy ? 3 : 0);
  if (!on || !plan_.store_errors) {
    store_.set_fault_hook({});
    return;
  }
  store_.set_fault_hook([this](kv::MemoryStore::Operation) {
    if (!sim_.rng().chance(1, 60)) return Errc::ok;
    coverage_.hit("fault.store_error");
    return Errc::io_error;
  });
}

void KvWorld::open_and_check() {
  failed_ = false;
  auto opened = sim_.run(loop_, &kv::KvMachine::open, std::ref(static_cast<Loop&>(loop_)),
                         std::ref(static_cast<kv::OrderedStore&>(store_)),
                         kv::KvMachine::Options{.prefix = std::string(kPrefix)});
  if (!check_.that(opened.has_value(), "opening failed")) return;
  machine_ = *std::move(opened);
  const uint64_t applied = machine_->applied();
  check_.that(applied >= flushed_, "the store is back at entry {}, and a flush covered {}", applied, flushed_);
  check_.that(applied <= model_.last(), "the store has applied entry {}, which is not in the log", applied);
  const kv::ScanOptions all{.max_items = 1000};
  const auto state = sim_.run(loop_, &kv::KvMachine::scan, machine_.get(), all);
  check_.that(state && same_items(*state, model_.scan(all, applied)),
              "after a restart the store is not the state at its applied index {}", applied);
}

void KvWorld::replay() {
  // From a little before, too: applying twice must change nothing.
  uint64_t from = machine_->applied() - std::min(machine_->applied(), rng_.below(4));
  coverage_.hit("kv.replayed", model_.last() - machine_->applied());
  if (sabotage_ == Sabotage::skip_entry && from + 1 < model_.last()) ++from;
  for (uint64_t index = from + 1; index <= model_.last() && check_.ok(); ++index) {
    const auto applied = sim_.run(loop_, &kv::KvMachine::apply, machine_.get(), index, bodies_[index - 1],
                                  std::vector<kv::Mutation>{}, CancelToken{});
    check_.that(applied.has_value(), "replaying entry {} failed", index);
  }
  committed_ = model_.last();
}

void KvWorld::live() {
  set_faults(true);
  CancelSource stop;
  Scope scope(loop_);
  const uint64_t clients = 1 + rng_.below(8);
  for (uint64_t i = 0; i < clients; ++i) scope.spawn(&KvWorld::client, this, i, CancelToken(stop));
  const auto length = microseconds(static_cast<int64_t>(200 + rng_.below(6000)));
  (void)sim_.run_until([this] { return failed_ || !check_.ok(); }, length);
  if (plan_.crashes && check_.ok()) {
    store_.power_off(sim_.rng());
    failed_ = true;
    coverage_.hit("kv.crash");
  }
  stop.cancel();
  sim_.run(loop_, &Scope::join, &scope);
  set_faults(false);
}

void KvWorld::crash() {
  if (!plan_.crashes) {
    // A stop instead: what is in memory is in the store, or the machine failed.
    machine_.reset();
    return;
  }
  machine_.reset();
  store_.power_on();
  // The log keeps what was committed, and any part of what was on its way.
  const uint64_t last = committed_ + rng_.below(model_.last() - committed_ + 1);
  coverage_.hit("kv.uncommitted_lost", model_.last() - last);
  coverage_.hit("kv.uncommitted_kept", last - committed_);
  model_.cut(last);
  bodies_.resize(last);
}

RunOutcome KvWorld::run() {
  for (const auto* name : {"kv.crash", "kv.replayed", "kv.uncommitted_lost", "kv.uncommitted_kept"}) {
    coverage_.expect(name);
  }
  const uint64_t lives = 1 + rng_.below(5);
  for (uint64_t life = 0; life <= lives && check_.ok(); ++life) {
    open_and_check();
    if (check_.ok()) replay();
    if (check_.ok() && life < lives) {
      live();
      crash();
    }
  }
  // With the faults off, everything works.
  if (check_.ok()) {
    SeededRng rng(1);
    sim_.run(loop_, &KvWorld::do_batch, this, std::ref(rng));
    check_.that(!failed_ && machine_->applied() == model_.last(), "a batch without faults was not applied");
  }
  machine_.reset();
  RunOutcome outcome;
  outcome.failure = check_.failure();
  outcome.plan = plan_.to_string();
  outcome.trace_hash = sim_.trace().hash();
  outcome.events = sim_.trace().events();
  outcome.simulated_ns = sim_.now().ns;
  outcome.coverage = coverage_;
  return outcome;
}

}  // namespace

RunOutcome run_kv_scenario(const RunInput& input) {
  KvWorld world(input);
  return world.run();
}

}  // namespace cairn::scenarios
