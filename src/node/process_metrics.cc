#include "node/process_metrics.h"

#include <dirent.h>
#include <unistd.h>

#include <charconv>

#include "node/files.h"

namespace cairn::node {
namespace {

int64_t resident_bytes() {
  const auto statm = read_small_file("/proc/self/statm");
  if (!statm) return 0;
  const size_t space = statm->find(' ');
  if (space == std::string::npos) return 0;
  int64_t pages = 0;
  std::from_chars(statm->data() + space + 1, statm->data() + statm->size(), pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

int64_t open_files() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int64_t count = -3;  // ".", ".." and the directory itself
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

}  // namespace

ProcessMetrics::ProcessMetrics(const std::string& labels)
    : uptime_(registry_.gauge("node_uptime_seconds", "Since the start")),
      ready_(registry_.gauge("node_ready", "1 while the node serves")),
      resident_(registry_.gauge("node_resident_memory_bytes", "Memory of the process")),
      open_files_(registry_.gauge("node_open_files", "Files and sockets of the process")),
      store_memory_(registry_.gauge("node_store_memory_bytes", "Ordered store: caches and memory tables")),
      store_disk_(registry_.gauge("node_store_disk_bytes", "Ordered store: on disk")) {
  registry_.gauge("node_info", "1, with what this node is as labels", labels).set(1);
}

const Registry& ProcessMetrics::update(const Values& values) {
  uptime_.set(static_cast<int64_t>(values.uptime_seconds));
  ready_.set(values.ready ? 1 : 0);
  resident_.set(resident_bytes());
  open_files_.set(open_files());
  store_memory_.set(static_cast<int64_t>(values.store_memory_bytes));
  store_disk_.set(static_cast<int64_t>(values.store_disk_bytes));
  return registry_;
}

}  // namespace cairn::node
