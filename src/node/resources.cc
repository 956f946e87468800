#include "node/resources.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/units.h"
#include "node/files.h"

namespace cairn::node {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTiB = uint64_t{1} << 40;
constexpr uint64_t kHugePage = 2 * kMiB;
constexpr uint64_t kMaxAutoReactors = 16;
constexpr uint64_t kAutoShards = 8;
constexpr uint64_t kBytesPerShard = 2 * kGiB;
constexpr uint64_t kArenaPerReactor = 256 * kMiB;
// Below this a reactor can't hold a few 4 MiB objects in flight and its reserves.
constexpr uint64_t kMinArenaPerReactor = 32 * kMiB;

uint64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint64_t>(std::max(1, CPU_COUNT(&set)));
}

uint64_t physical_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : kGiB;
}

// The tightest memory.max on the way from this process's control group to the root (cgroup v2).
uint64_t cgroup_memory_limit() {
  uint64_t limit = UINT64_MAX;
  const auto membership = read_small_file("/proc/self/cgroup");
  if (!membership) return limit;
  const size_t at = membership->find("0::/");
  if (at == std::string::npos) return limit;
  std::string group = membership->substr(at + 3, membership->find('\n', at) - at - 3);
  for (;;) {
    if (const auto text = read_small_file("/sys/fs/cgroup" + group + "/memory.max")) {
      uint64_t value = 0;
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
      if (error == std::errc()) limit = std::min(limit, value);  // "max" doesn't parse
    }
    if (group.empty() || group == "/") return limit;
    group.resize(group.rfind('/'));
  }
}

uint64_t wanted_reactors(const NodeSettings& settings, const Machine& machine) {
  return settings.reactors.value_or(std::clamp<uint64_t>(machine.cores - 1, 1, kMaxAutoReactors));
}

uint64_t round_down(uint64_t value, uint64_t unit) { return value - value % unit; }

}  // namespace

Machine Machine::probe() {
  return {.cores = usable_cores(), .memory_bytes = std::min(physical_memory(), cgroup_memory_limit())};
}

uint32_t resolve_shards(const NodeSettings& settings, const Machine& machine, uint64_t device_bytes) {
  if (settings.device_shards) return static_cast<uint32_t>(*settings.device_shards);
  const uint64_t by_size = std::clamp<uint64_t>(device_bytes / kBytesPerShard, 1, kAutoShards);
  return static_cast<uint32_t>(std::max(by_size, wanted_reactors(settings, machine)));
}

Result<Resources> resolve_resources(const NodeSettings& settings, const Machine& machine, uint32_t shards) {
  Resources r;
  if (shards == 0) shards = resolve_shards(settings, machine, 0);
  r.reactors = static_cast<uint32_t>(wanted_reactors(settings, machine));
  if (r.reactors > shards) {
    // A reactor without a shard would own nothing.
    if (settings.reactors) {
      return Error(Errc::invalid_argument,
                   fmt::format("reactors={} is more than the {} shards of the device: each reactor needs one; set "
                               "reactors={} or less",
                               r.reactors, shards, shards));
    }
    r.reactors = shards;
  }

  const uint64_t least = r.reactors * kMinArenaPerReactor;
  if (settings.memory_arena) {
    r.arena_bytes = *settings.memory_arena;
    if (r.arena_bytes < least) {
      return Error(Errc::invalid_argument,
                   fmt::format("memory.arena={} is too small for {} reactors: at least {}",
                               format_size_exact(r.arena_bytes), r.reactors, format_size_exact(least)));
    }
    if (r.arena_bytes > machine.memory_bytes) {
      return Error(Errc::invalid_argument,
                   fmt::format("memory.arena={} is more than the memory this process may use, {}",
                               format_size_exact(r.arena_bytes), format_size(machine.memory_bytes)));
    }
  } else {
    r.arena_bytes = std::max(least, std::min(r.reactors * kArenaPerReactor, machine.memory_bytes / 4));
  }
  r.arena_bytes = round_down(r.arena_bytes, kHugePage);

  r.engine_cache_bytes = settings.engine_cache.value_or(r.arena_bytes / 2);
  if (r.engine_cache_bytes > r.arena_bytes / 4 * 3) {
    return Error(Errc::invalid_argument,
                 fmt::format("engine.cache={} is more than three quarters of memory.arena ({}): requests need the rest",
                             format_size_exact(r.engine_cache_bytes), format_size_exact(r.arena_bytes)));
  }
  r.store_cache_bytes = settings.store_cache.value_or(std::clamp(machine.memory_bytes / 16, 8 * kMiB, kGiB));
  return r;
}

Result<uint64_t> resolve_device_size(const NodeSettings& settings, uint64_t free_bytes) {
  if (settings.device_size) {
    const uint64_t size = round_down(*settings.device_size, kMiB);
    if (size <= free_bytes) return size;
    return Error(Errc::no_space,
                 fmt::format("device.size={} doesn't fit: the file system has {} free; make room, or set a smaller "
                             "device.size or another device.path",
                             format_size_exact(size), format_size(free_bytes)));
  }
  if (free_bytes < kGiB) {
    return Error(Errc::no_space,
                 fmt::format("a device of 1 GiB, the smallest default, doesn't fit: the file system has {} free; make "
                             "room, or set device.size or another device.path",
                             format_size(free_bytes)));
  }
  return round_down(std::clamp(free_bytes / 4, kGiB, kTiB), kMiB);
}

}  // namespace cairn::node
