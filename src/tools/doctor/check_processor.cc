#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/units.h"
#include "tools/doctor/checks.h"

namespace cairn::srpc::doctor {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;

void check_cores(const Machine& machine, Findings& findings) {
  const auto list = value_of(machine.read("/proc/self/status").value_or(""), "Cpus_allowed_list");
  const auto cores = list ? count_cores(*list) : std::nullopt;
  if (!cores) {
    findings.add(Level::unknown, "cores", "number of cores: /proc/self/status doesn't say");
    return;
  }
  findings.add(*cores == 1 ? Level::note : Level::ok, "cores", fmt::format("{} for this process ({})", *cores, *list),
               *cores == 1
                   ? "a reactor that polls takes turns with its peer here: pin economy mode, or give it more cores"
                   : "");
}

void check_governor(const Machine& machine, Findings& findings) {
  std::map<std::string, int> governors;
  for (const std::string& name : machine.list("/sys/devices/system/cpu")) {
    const auto governor = machine.read(fmt::format("/sys/devices/system/cpu/{}/cpufreq/scaling_governor", name));
    if (governor) ++governors[*governor];
  }
  if (governors.empty()) {
    findings.add(Level::unknown, "governor",
                 "the processor's frequency is somebody else's business (a virtual machine?)");
    return;
  }
  const bool fast = governors.size() == 1 && governors.contains("performance");
  std::vector<std::string> names;
  for (const auto& [name, count] : governors) names.push_back(fmt::format("{} on {}", name, count));
  findings.add(
      fast ? Level::ok : Level::note, "governor", fmt::format("{}", fmt::join(names, ", ")),
      fast ? "" : "'cpupower frequency-set -g performance': else the first call after a pause meets a slow core");
}

// The tightest value of `file` from this process's control group up to the root (cgroup v2), as `read` gives it.
template <typename Read>
uint64_t tightest(const Machine& machine, std::string_view file, Read read) {
  uint64_t limit = kUnlimited;
  const std::string membership = machine.read("/proc/self/cgroup").value_or("");
  const size_t at = membership.find("0::/");
  if (at == std::string::npos) return limit;
  std::string group = membership.substr(at + 3, membership.find('\n', at) - at - 3);
  for (;;) {
    if (const auto text = machine.read(fmt::format("/sys/fs/cgroup{}/{}", group, file)))
      limit = std::min(limit, read(*text));
    if (group.empty() || group == "/") return limit;
    group.resize(group.rfind('/'));
  }
}

uint64_t number_or_max(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : kUnlimited;  // "max"
}

// "QUOTA PERIOD", in us: hundredths of a core.
uint64_t quota_percent(const std::string& text) {
  const uint64_t quota = number_or_max(text);
  const size_t space = text.find(' ');
  if (quota == kUnlimited || space == std::string::npos) return kUnlimited;
  const uint64_t period = number_or_max(text.substr(space + 1));
  return period == 0 || period == kUnlimited ? kUnlimited : quota * 100 / period;
}

void check_control_group(const Machine& machine, Findings& findings) {
  const uint64_t memory = tightest(machine, "memory.max", number_or_max);
  const uint64_t cpu = tightest(machine, "cpu.max", quota_percent);
  if (memory == kUnlimited && cpu == kUnlimited) {
    findings.add(Level::ok, "control group", "no limit of memory or processor time");
    return;
  }
  if (memory != kUnlimited) {
    findings.add(Level::ok, "control group",
                 fmt::format("memory: at most {}, arenas and shared memory included", format_size(memory)));
  }
  if (cpu != kUnlimited) {
    findings.add(
        Level::warning, "control group",
        fmt::format("processor time: at most {}.{:02} cores: who has used that up stands still until the period ends",
                    cpu / 100, cpu % 100),
        "no quota for storage (CPUQuota=, --cpus): whole cores instead (AllowedCPUs=, --cpuset-cpus); with a quota "
        "pin economy mode");
  }
}

}  // namespace

std::optional<uint64_t> count_cores(const std::string& list) {
  uint64_t count = 0;
  const char* at = list.data();
  const char* const end = list.data() + list.size();
  while (at < end) {
    uint64_t first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) return std::nullopt;
    uint64_t last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc() || last < first) return std::nullopt;
    }
    count += last - first + 1;
    if (parsed.ptr < end && *parsed.ptr != ',') return std::nullopt;
    at = parsed.ptr + 1;
  }
  return count == 0 ? std::nullopt : std::optional(count);
}

void check_processor(const Machine& machine, Findings& findings) {
  check_cores(machine, findings);
  check_governor(machine, findings);
  check_control_group(machine, findings);
}

Findings examine(const Machine& machine) {
  Findings findings;
  const auto ports = check_rdma(machine, findings);
  const bool devices = !ports.empty() || !machine.list("/sys/class/infiniband").empty();
  check_fabric(machine, ports, findings);
  check_limits(machine, devices, findings);
  check_processor(machine, findings);
  return findings;
}

}  // namespace cairn::srpc::doctor
