#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/units.h"
#include "tools/doctor/checks.h"

namespace cairn::srpc::doctor {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;
constexpr uint64_t kMiB = uint64_t{1} << 20;
// An arena of one reactor, registered as a whole.
constexpr uint64_t kLockedMemoryWanted = 256 * kMiB;
constexpr uint64_t kDescriptorsNeeded = 1024;
constexpr uint64_t kDescriptorsWanted = 16384;
constexpr int kCapIpcLock = 14;

// The soft limit in the text of /proc/self/limits.
std::optional<uint64_t> soft_limit(const std::string& text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string::npos) return std::nullopt;
  const size_t from = text.find_first_not_of(' ', at + name.size());
  if (from == std::string::npos) return std::nullopt;
  if (text.compare(from, 9, "unlimited") == 0) return kUnlimited;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + from, text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

bool may_lock_anything(const Machine& machine) {
  const auto text = value_of(machine.read("/proc/self/status").value_or(""), "CapEff");
  if (!text) return false;
  uint64_t capabilities = 0;
  std::from_chars(text->data(), text->data() + text->size(), capabilities, 16);
  return (capabilities >> kCapIpcLock & 1) != 0;
}

void check_memlock(const Machine& machine, const std::string& limits, bool rdma, Findings& findings) {
  const auto limit = soft_limit(limits, "Max locked memory");
  if (!limit) {
    findings.add(Level::unknown, "memlock", "limit of locked memory: /proc/self/limits doesn't say");
    return;
  }
  const std::string text =
      fmt::format("locked memory: {}", *limit == kUnlimited ? "unlimited" : format_size_exact(*limit));
  if (*limit == kUnlimited) {
    findings.add(Level::ok, "memlock", text);
  } else if (may_lock_anything(machine)) {
    findings.add(Level::ok, "memlock", text + ", and CAP_IPC_LOCK, which goes beyond it");
  } else if (*limit < kLockedMemoryWanted) {
    findings.add(
        rdma ? Level::error : Level::note, "memlock",
        text + (rdma ? ": RDMA can't register its memory" : ": enough without RDMA"),
        "LimitMEMLOCK=infinity in the unit, '--ulimit memlock=-1' for a container, or '* - memlock unlimited' in "
        "/etc/security/limits.conf");
  } else {
    findings.add(Level::ok, "memlock", text);
  }
}

void check_descriptors(const std::string& limits, Findings& findings) {
  const auto limit = soft_limit(limits, "Max open files");
  if (!limit) {
    findings.add(Level::unknown, "descriptors", "limit of open files: /proc/self/limits doesn't say");
    return;
  }
  const Level level = *limit < kDescriptorsNeeded   ? Level::error
                      : *limit < kDescriptorsWanted ? Level::note
                                                    : Level::ok;
  findings.add(level, "descriptors",
               *limit == kUnlimited
                   ? "open files: unlimited"
                   : fmt::format("open files: {}, one for each connection, two over shared memory", *limit),
               level == Level::ok ? "" : "LimitNOFILE=1048576 in the unit, or 'ulimit -n 1048576'");
}

void check_huge_pages(const Machine& machine, Findings& findings) {
  const std::string info = machine.read("/proc/meminfo").value_or("");
  const std::string total = value_of(info, "HugePages_Total").value_or("0");
  const std::string free = value_of(info, "HugePages_Free").value_or("0");
  const std::string transparent = machine.read("/sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  if (total != "0") {
    findings.add(Level::ok, "huge pages", fmt::format("{} reserved, {} free", total, free),
                 free == "0" ? "all are taken: the next arena gets normal pages" : "");
  } else if (transparent.contains("[always]") || transparent.contains("[madvise]")) {
    findings.add(Level::ok, "huge pages", "none reserved; transparent ones are on, and asked for");
  } else {
    findings.add(
        Level::note, "huge pages", "none reserved, and transparent ones are off: more misses of the TLB",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or 'sysctl vm.nr_hugepages=N' (2 MiB each)");
  }
}

void check_shared_memory(const Machine& machine, Findings& findings) {
  // Anonymous, so the size of /dev/shm doesn't matter; the control group's memory does.
  if (machine.read_number("/proc/sys/vm/memfd_noexec").value_or(0) >= 2) {
    findings.add(Level::warning, "shared memory",
                 "vm.memfd_noexec is 2: memfds of SRPC are refused, and clients of this machine come over TCP",
                 "sysctl vm.memfd_noexec=1");
    return;
  }
  findings.add(Level::ok, "shared memory",
               "memfds are allowed; they count as the client's memory, /dev/shm isn't used");
}

void check_io_uring(const Machine& machine, Findings& findings) {
  const auto made = machine.try_io_uring();
  if (made) {
    findings.add(
        Level::ok, "io_uring",
        fmt::format("works, Linux {}", machine.read("/proc/sys/kernel/osrelease").value_or("of unknown version")));
    return;
  }
  const auto disabled = machine.read_number("/proc/sys/kernel/io_uring_disabled").value_or(0);
  std::string fix = "Linux 6.1 or newer, and in a container a seccomp profile that permits io_uring";
  if (disabled != 0) fix = "sysctl kernel.io_uring_disabled=0";
  findings.add(Level::error, "io_uring", fmt::format("no ring for SRPC's reactors: {}", made.error().message()), fix);
}

}  // namespace

void check_limits(const Machine& machine, bool rdma, Findings& findings) {
  const std::string limits = machine.read("/proc/self/limits").value_or("");
  check_io_uring(machine, findings);
  check_memlock(machine, limits, rdma, findings);
  check_descriptors(limits, findings);
  check_huge_pages(machine, findings);
  check_shared_memory(machine, findings);
}

}  // namespace cairn::srpc::doctor
