#include "scenarios/node_scenario.h"

#include "scenarios/node_world.h"
#include "scenarios/object_workload.h"

namespace cairn::scenarios {
namespace {

class NodeScenario {
 public:
  explicit NodeScenario(const RunInput& input) : world_(input), workload_(world_) {
    // Damage has a scenario of its own; here it would only say that an object is damaged.
    FaultPlan& plan = world_.plan;
    plan.rot_data = plan.rot_journal = plan.rot_superblock = plan.lying_data_writes = plan.sparse_full = false;
    world_.store.lie_about_flush(input.sabotage == Sabotage::store_lies_about_flush);
  }

  RunOutcome run();

 private:
  bool start();
  void live();
  void faults_on();
  void faults_off();
  void finish();
  Task<void> wait_until_empty();

  NodeWorld world_;
  ObjectWorkload workload_;
};

void NodeScenario::faults_on() {
  const FaultPlan& plan = world_.plan;
  DiskFaults& faults = world_.disk.faults();
  faults.tear_bytes = plan.tear_bytes;
  faults.tear_to_garbage = plan.tear_to_garbage;
  faults.slow_ppm = plan.slow ? 10'000 : 0;
  faults.slow_max = milliseconds(100);
  faults.read_error_ppm = plan.read_errors ? 10'000 : 0;
  faults.write_error_ppm = plan.write_errors ? 2'000 : 0;
  faults.flush_error_ppm = plan.flush_errors ? 4'000 : 0;
  faults.lie_about_flush = world_.input.sabotage == Sabotage::disk_lies_about_flush;
  world_.store.set_unflushed_limit(plan.store_busy ? 8 : 0);
}

void NodeScenario::faults_off() {
  DiskFaults& faults = world_.disk.faults();
  faults.slow_ppm = faults.read_error_ppm = faults.write_error_ppm = faults.flush_error_ppm = 0;
  world_.store.set_unflushed_limit(0);
}

bool NodeScenario::start() {
  const Result<void> started = world_.start();
  world_.check.that(started.has_value(), "starting failed: {}", started ? "" : started.error().to_string());
  return world_.check.ok();
}

void NodeScenario::live() {
  faults_on();
  workload_.start();
  const auto time = milliseconds(static_cast<int64_t>(2 + world_.rng.below(world_.rng.chance(1, 4) ? 300 : 40)));
  (void)world_.sim.run_until([this] { return !world_.check.ok(); }, time);
  const bool crash = world_.plan.crashes && world_.check.ok() && !world_.rng.chance(1, 5);
  if (crash) {
    const bool killed = world_.rng.chance(1, 3);
    world_.coverage.hit(killed ? "end.killed" : "end.power_lost");
    world_.power_off(killed ? CrashStyle::keep_completed : world_.plan.crash_style);
  }
  workload_.stop();
  workload_.join();
  faults_off();
  world_.stop();
  if (crash) {
    world_.power_on();
  } else {
    world_.coverage.hit("end.clean");
  }
}

// The janitor works by itself: after the grace that readers have, nothing is left.
Task<void> NodeScenario::wait_until_empty() {
  for (int minutes = 0; minutes < 60 && world_.used_bytes() > 0; ++minutes) {
    (void)co_await world_.loop.sleep(seconds(60));
    for (const auto& own : world_.node->shards()) {
      const auto done = co_await own.shard->checkpoint();
      world_.check.that(done.has_value(), "a checkpoint failed: {}", done ? "" : done.error().to_string());
    }
  }
  world_.check.that(world_.used_bytes() == 0, "all is deleted, and an hour later {} bytes are still in use",
                    world_.used_bytes());
}

void NodeScenario::finish() {
  world_.sim.run(world_.loop, &ObjectWorkload::everything_works, &workload_);
  if (!world_.check.ok()) return;
  world_.stop();
  if (!start()) return;
  world_.sim.run(world_.loop, &ObjectWorkload::check_everything, &workload_);
  if (!world_.check.ok()) return;
  world_.sim.run(world_.loop, &ObjectWorkload::delete_everything, &workload_);
  if (!world_.check.ok()) return;
  world_.sim.run(world_.loop, &NodeScenario::wait_until_empty, this);
}

RunOutcome NodeScenario::run() {
  for (const auto* name : {"end.killed", "end.power_lost", "end.clean", "object.put", "object.get", "object.race",
                           "object.upload_completed", "object.no_space"}) {
    world_.coverage.expect(name);
  }
  const Result<void> formatted = world_.format();
  world_.check.that(formatted.has_value(), "formatting failed");
  const uint64_t lives = 1 + world_.rng.below(3);
  bool up = world_.check.ok() && start();
  if (up) world_.sim.run(world_.loop, &ObjectWorkload::make_bucket, &workload_);
  for (uint64_t life = 0; life < lives && up && world_.check.ok(); ++life) {
    live();
    up = world_.check.ok() && start();
    if (up) {
      workload_.reset_stop();
      world_.sim.run(world_.loop, &ObjectWorkload::check_everything, &workload_);
    }
  }
  if (up && world_.check.ok()) finish();
  faults_off();
  world_.stop();

  RunOutcome outcome;
  outcome.failure = world_.check.failure();
  outcome.plan = world_.plan.to_string();
  outcome.trace_hash = world_.sim.trace().hash();
  outcome.events = world_.sim.trace().events();
  outcome.simulated_ns = world_.sim.now().ns;
  outcome.coverage = world_.coverage;
  return outcome;
}

}  // namespace

RunOutcome run_node_scenario(const RunInput& input) {
  NodeScenario scenario(input);
  return scenario.run();
}

}  // namespace cairn::scenarios
