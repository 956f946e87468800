#include "scenarios/engine_scenario.h"

#include <algorithm>

#include "scenarios/engine_checks.h"
#include "scenarios/engine_workload.h"
#include "scenarios/engine_world.h"

namespace cairn::scenarios {
namespace {

class EngineScenario {
 public:
  explicit EngineScenario(const RunInput& input)
      : world_(input), mix_(EngineMix::draw(world_.rng)), workload_(world_, mix_) {}

  RunOutcome run();

 private:
  bool start();
  bool format();
  bool open();
  void open_and_crash();
  void live();
  void end_life();
  void finish();
  Task<void> everything_works();
  Task<void> delete_everything();
  Task<void> serves_nothing();

  void faults_on();
  void faults_off();
  void damage_something();
  // Until some moment of the next `time`, or so many disk operations.
  void run_a_while(Duration time, uint64_t operations);
  void power_off();

  EngineWorld world_;
  EngineMix mix_;
  EngineWorkload workload_;
};

void EngineScenario::faults_on() {
  const FaultPlan& plan = world_.plan;
  DiskFaults& faults = world_.disk.faults();
  faults.tear_bytes = plan.tear_bytes;
  faults.tear_to_garbage = plan.tear_to_garbage;
  faults.slow_ppm = plan.slow ? 10'000 : 0;
  faults.slow_max = milliseconds(50);
  faults.read_error_ppm = plan.read_errors ? 20'000 : 0;
  faults.write_error_ppm = plan.write_errors ? 4'000 : 0;
  faults.flush_error_ppm = plan.flush_errors ? 8'000 : 0;
  faults.lie_about_flush = world_.input.sabotage == Sabotage::disk_lies_about_flush;
  if (plan.lying_data_writes) {
    const auto layout = engine::ShardLayout::of(world_.extent());
    faults.lie_begin = layout->data_offset;
    faults.lie_end = layout->data_offset + uint64_t{layout->unit_count} * engine::kUnitBytes;
    faults.lost_write_ppm = 20'000;
    faults.misdirected_write_ppm = 20'000;
  }
  world_.store.set_unflushed_limit(plan.store_busy ? 4 : 0);
  if (plan.store_errors) {
    world_.store.set_fault_hook([this](kv::MemoryStore::Operation) {
      if (!world_.sim.rng().chance(1, 200)) return Errc::ok;
      world_.coverage.hit("fault.store_error");
      return Errc::io_error;
    });
  }
}

void EngineScenario::faults_off() {
  DiskFaults& faults = world_.disk.faults();
  faults.slow_ppm = faults.read_error_ppm = faults.write_error_ppm = faults.flush_error_ppm = 0;
  faults.lost_write_ppm = faults.misdirected_write_ppm = 0;
  faults.full = false;
  world_.store.set_unflushed_limit(0);
  world_.store.set_fault_hook({});
}

void EngineScenario::run_a_while(Duration time, uint64_t operations) {
  const auto count = [this] {
    const SimDisk::Stats& stats = world_.disk.stats();
    return stats.reads + stats.writes + stats.flushes;
  };
  const uint64_t target = count() + operations;
  (void)world_.sim.run_until([&] { return count() >= target || !world_.check.ok(); }, time);
}

void EngineScenario::power_off() {
  // A killed process loses nothing that the disk had completed; lost power loses what the drive's cache held.
  const bool killed = world_.rng.chance(1, 3);
  world_.coverage.hit(killed ? "end.killed" : "end.power_lost");
  world_.power_off(killed ? CrashStyle::keep_completed : world_.plan.crash_style);
}

// Damage that only reading finds.
void EngineScenario::damage_something() {
  const FaultPlan& plan = world_.plan;
  const auto layout = engine::ShardLayout::of(world_.extent());
  const auto rot = [&](uint64_t begin, uint64_t end, std::string_view name) {
    if (world_.disk.rot(begin, end) == world_.disk.size_bytes()) return;
    ++world_.rotten_pages;
    world_.coverage.hit(name);
  };
  if (plan.rot_data && world_.rng.chance(1, 2)) {
    rot(layout->data_offset, layout->data_offset + uint64_t{layout->unit_count} * engine::kUnitBytes, "fault.rot_data");
  }
  if (plan.rot_journal && world_.rng.chance(1, 3)) {
    rot(layout->journal_offset, layout->journal_offset + layout->journal_bytes, "fault.rot_journal");
    world_.journal_damage_possible = true;
  }
  if (plan.rot_superblock && world_.rng.chance(1, 3)) {
    // One of a pair: the other one must do.
    rot(layout->superblocks_offset, layout->journal_offset, "fault.rot_superblock");
  }
}

bool EngineScenario::format() {
  // A format that was interrupted is begun anew; nothing of the first one may shine through.
  if (world_.plan.crashes && world_.rng.chance(1, 16)) {
    Scope scope(world_.loop);
    struct Half {
      static Task<void> run(EngineWorld* world, engine::Shard::Context context) {
        (void)co_await engine::Shard::format(context, world->extent());
      }
    };
    Registry registry;
    mem::Pool pool(world_.loop, registry, world_.input.arena.memory(), 4 << 20);
    scope.spawn(
        &Half::run, &world_,
        engine::Shard::Context{
            .loop = world_.loop, .registry = registry, .pool = pool, .device = world_.disk, .store = world_.store});
    run_a_while(milliseconds(20), 1 + world_.rng.below(20));
    world_.power_off(world_.plan.crash_style);
    world_.sim.run(world_.loop, &Scope::join, &scope);
    world_.power_on();
    world_.coverage.hit("end.during_format");
  }
  const auto formatted = world_.format();
  return world_.check.that(formatted.has_value(), "formatting failed: {}",
                           formatted ? "" : formatted.error().to_string());
}

// The power goes while the shard opens. It must do no harm.
void EngineScenario::open_and_crash() {
  Scope scope(world_.loop);
  struct Half {
    static Task<void> run(EngineWorld* world, std::unique_ptr<engine::Shard>* out, engine::Shard::Context context) {
      auto opened = co_await engine::Shard::open(context, world->extent(), world->sizes.options);
      if (opened) *out = *std::move(opened);
    }
  };
  world_.pool.reset();
  Registry registry;
  mem::Pool pool(world_.loop, registry, world_.input.arena.memory(), 4 << 20);
  std::unique_ptr<engine::Shard> shard;
  scope.spawn(
      &Half::run, &world_, &shard,
      engine::Shard::Context{
          .loop = world_.loop, .registry = registry, .pool = pool, .device = world_.disk, .store = world_.store});
  run_a_while(milliseconds(3), 1 + world_.rng.below(30));
  power_off();
  world_.sim.run(world_.loop, &Scope::join, &scope);
  if (shard != nullptr) world_.sim.run(world_.loop, &engine::Shard::close, shard.get());
  shard.reset();
  world_.power_on();
  world_.coverage.hit("end.during_open");
}

// A shard whose journal can't be read would give old bytes for new ones: it must give none.
Task<void> EngineScenario::serves_nothing() {
  for (uint32_t i = 0; i < world_.sizes.chunks && world_.check.ok(); ++i) {
    const auto data = co_await world_.shard->read(world_.chunk_id(i), 0, engine::kPageBytes);
    world_.check.that(data.code() == Errc::corrupt, "a damaged shard answered a read with {}",
                      std::string(errc_name(data.code())));
    const auto written = co_await workload_.write(i, 0, 5000, {});
    world_.check.that(written.code() == Errc::corrupt, "a damaged shard answered a write with {}",
                      std::string(errc_name(written.code())));
  }
}

bool EngineScenario::open() {
  if (world_.plan.crashes && world_.life > 0 && world_.rng.chance(1, 4)) open_and_crash();
  // With read errors the first try may fail, or find the journal unreadable; that must pass with the errors.
  const bool bad_reads = world_.plan.read_errors && world_.rng.chance(1, 2);
  if (bad_reads) {
    world_.disk.faults().read_error_ppm = 50'000;
    const Result<void> first = world_.open();
    world_.disk.faults().read_error_ppm = 0;
    if (first) return true;
    world_.coverage.hit("open.failed_by_read_errors");
    world_.close();
  }
  const Result<void> opened = world_.open();
  if (opened) return world_.check.ok();
  if (opened.code() == Errc::corrupt && world_.journal_damage_possible) {
    world_.coverage.hit("open.damaged");
    world_.sim.run(world_.loop, &EngineScenario::serves_nothing, this);
    return false;
  }
  world_.check.fail("opening failed: {}", opened.error().to_string());
  return false;
}

bool EngineScenario::start() {
  if (!format()) return false;
  return open();
}

void EngineScenario::live() {
  faults_on();
  workload_.start();
  const auto time =
      microseconds(static_cast<int64_t>(500 + world_.rng.below(world_.rng.chance(1, 4) ? 60'000 : 12'000)));
  const uint64_t operations = world_.rng.chance(1, 2) ? 5 + world_.rng.below(400) : 5000;
  run_a_while(time, operations);
  if (world_.plan.sparse_full && world_.rng.chance(1, 2)) {
    world_.disk.faults().full = true;
    world_.coverage.hit("fault.sparse_full");
    run_a_while(milliseconds(3), 300);
  }
  end_life();
}

void EngineScenario::end_life() {
  const bool crash = world_.plan.crashes && world_.check.ok() && !world_.rng.chance(1, 6);
  const bool while_closing = crash && world_.rng.chance(1, 6);
  world_.coverage.hit("life.checkpoints", world_.metric("engine_checkpoints_total"));
  world_.coverage.hit("life.journal_bytes", world_.metric("engine_journal_bytes_total"));
  if (crash && !while_closing) power_off();
  workload_.stop();
  if (while_closing) {
    Scope scope(world_.loop);
    scope.spawn(&engine::Shard::close, world_.shard.get());
    run_a_while(milliseconds(5), 1 + world_.rng.below(40));
    power_off();
    world_.sim.run(world_.loop, &Scope::join, &scope);
    workload_.join();
    for (auto& group : world_.groups()) group->kv.reset();
    world_.shard.reset();
    world_.coverage.hit("end.during_close");
  } else {
    workload_.join();
    if (!crash) world_.coverage.hit("end.clean");
  }
  faults_off();
  world_.close();
  if (!world_.powered()) world_.power_on();
  damage_something();
}

Task<void> EngineScenario::everything_works() {
  for (uint32_t chunk = 0; chunk < world_.sizes.chunks && world_.check.ok(); ++chunk) {
    // A full shard takes deletes, and then there is room.
    auto written = co_await workload_.write(chunk, 0, 70'000, {});
    if (written.code() == Errc::no_space) {
      const auto removed = co_await workload_.remove((chunk + 1) % world_.sizes.chunks);
      world_.check.that(removed.has_value(), "a full shard refused a delete: {}",
                        removed ? "" : removed.error().to_string());
      const auto freed = co_await world_.shard->checkpoint();
      world_.check.that(freed.has_value(), "a full shard could not make a checkpoint: {}",
                        freed ? "" : freed.error().to_string());
      written = {};  // there may be nothing in the chunk that was deleted
    }
    world_.check.that(written.has_value(), "a write without faults failed: {}",
                      written ? "" : written.error().to_string());
  }
  if (world_.check.ok()) co_await check_everything(world_);
}

Task<void> EngineScenario::delete_everything() {
  for (uint32_t chunk = 0; chunk < world_.sizes.chunks && world_.check.ok(); ++chunk) {
    const auto removed = co_await workload_.remove(chunk);
    world_.check.that(removed.has_value(), "a delete failed: {}", removed ? "" : removed.error().to_string());
  }
  // The second one frees what the first one's tail did not cover yet.
  for (int i = 0; i < 2; ++i) {
    const auto done = co_await world_.shard->checkpoint();
    world_.check.that(done.has_value(), "a checkpoint failed: {}", done ? "" : done.error().to_string());
  }
  (void)co_await world_.loop.sleep(seconds(1));  // discards
  const engine::SpaceUsage usage = world_.shard->usage();
  world_.check.that(usage.free_bytes == usage.total_bytes,
                    "all is deleted, and {} of {} bytes are free (used {}, "
                    "pending {}, freeing {})",
                    usage.free_bytes, usage.total_bytes, usage.used_bytes, usage.pending_bytes, usage.freeing_bytes);
  if (world_.check.ok()) {
    const auto written = co_await workload_.write(0, 0, 70'000, {});
    world_.check.that(written.has_value(), "an empty shard refused a write: {}",
                      written ? "" : written.error().to_string());
  }
}

// Liveness: with the faults off, everything works again.
void EngineScenario::finish() {
  world_.sim.run(world_.loop, &EngineScenario::everything_works, this);
  if (!world_.check.ok()) return;
  world_.close();
  if (!open()) return;
  world_.sim.run(world_.loop, &check_everything, std::ref(world_));
  if (!world_.check.ok()) return;
  world_.sim.run(world_.loop, &EngineScenario::delete_everything, this);
}

RunOutcome EngineScenario::run() {
  for (const auto* name :
       {"end.killed", "end.power_lost", "end.clean", "end.during_open", "end.during_close", "end.during_format",
        "recovery.entries", "recovery.unacknowledged_kept", "recovery.unacknowledged_lost", "open.damaged",
        "read.corrupt", "propose.no_space", "propose.fenced", "propose.busy"}) {
    world_.coverage.expect(name);
  }
  const uint64_t lives = 1 + world_.rng.below(4);
  bool open_now = start();
  for (uint64_t life = 0; life < lives && open_now && world_.check.ok(); ++life) {
    world_.sim.run(world_.loop, &check_everything, std::ref(world_));
    if (!world_.check.ok()) break;
    live();
    open_now = world_.check.ok() && open();
  }
  if (open_now && world_.check.ok()) {
    world_.sim.run(world_.loop, &check_everything, std::ref(world_));
    if (world_.check.ok()) finish();
  }
  faults_off();
  world_.close();

  RunOutcome outcome;
  outcome.failure = world_.check.failure();
  outcome.plan = world_.plan.to_string();
  outcome.trace_hash = world_.sim.trace().hash();
  outcome.events = world_.sim.trace().events();
  outcome.simulated_ns = world_.sim.now().ns;
  outcome.coverage = world_.coverage;
  const SimDisk::Stats& stats = world_.disk.stats();
  outcome.coverage.hit("disk.writes_torn", stats.crash_torn);
  outcome.coverage.hit("disk.writes_lost", stats.crash_lost);
  outcome.coverage.hit("disk.writes_kept", stats.crash_kept);
  outcome.coverage.hit("fault.read_error", stats.read_errors);
  outcome.coverage.hit("fault.write_error", stats.write_errors);
  outcome.coverage.hit("fault.flush_error", stats.flush_errors);
  outcome.coverage.hit("fault.lying_write", stats.lost_writes + stats.misdirected_writes);
  return outcome;
}

}  // namespace

RunOutcome run_engine_scenario(const RunInput& input) {
  EngineScenario scenario(input);
  return scenario.run();
}

}  // namespace cairn::scenarios
