// One shard on a file or block device, driven by DEPTH coroutines on one reactor. Prints one JSON document.
//
//   engine_bench FILE read|write BLOCK_BYTES DEPTH SECONDS [SPAN_MIB]
//
// FILE is formatted when it is blank. Chunks of SPAN_MIB (1024) are written first, those that are missing; then each
// coroutine reads or overwrites a random aligned block of them, durably. The cache is off, so that every read reaches
// the device, and every byte is checked against its checksum, as always. FILE.map holds the chunk map.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/device.h"
#include "engine/disk_file.h"
#include "engine/shard.h"
#include "engine/uring_device.h"
#include "kv/rocks_store.h"
#include "mem/arena.h"
#include "reactor/offload.h"
#include "reactor/reactor.h"
#include "reactor/scope.h"

namespace cairn::engine {
namespace {

// What a node gives a shard by default.
constexpr size_t kDirtyBytes = size_t{96} << 20;
constexpr size_t kArenaBytes = size_t{512} << 20;
constexpr GroupId kGroup{1};

struct Plan {
  std::string file;
  bool write = false;
  uint32_t block_bytes = 4096;
  size_t depth = 1;
  double seconds = 1;
  uint64_t span_bytes = uint64_t{1} << 30;

  uint64_t chunks() const { return span_bytes / kChunkBytes; }
};

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "engine_bench: {}\n", what);
  std::exit(1);
}

template <typename T>
T check(Result<T> result, const char* what) {
  if (!result) fail(fmt::format("{}: {}", what, result.error().to_string()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

ChunkId chunk_id(uint64_t number) {
  ChunkId id;
  id.bytes[0] = 1;
  for (size_t i = 0; i < 4; ++i) id.bytes[15 - i] = static_cast<uint8_t>(number >> (8 * i));
  return id;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

class Bench {
 public:
  Bench(Plan plan, Reactor& reactor, mem::Pool& pool, Shard& shard)
      : plan_(std::move(plan)), reactor_(reactor), pool_(pool), shard_(shard) {}

  Task<void> run() {
    for (const Entry& entry : shard_.recovered()) shard_.apply(entry);
    shard_.forget_recovered();
    next_index_ = shard_.last_index(kGroup) + 1;
    co_await prepare();
    check(co_await shard_.checkpoint(), "checkpoint");
    // What was prepared is in memory no more: the cache is off, and the pool's blocks are back.
    Scope scope(reactor_);
    const double cpu = cpu_seconds();
    const Time begin = clock_.now();
    end_ = begin + nanoseconds(static_cast<int64_t>(plan_.seconds * 1e9));
    for (size_t i = 0; i < plan_.depth; ++i) scope.spawn(&Bench::worker, this, uint64_t{i});
    co_await scope.join();
    elapsed_ = (clock_.now() - begin).seconds();
    cpu_ = cpu_seconds() - cpu;
  }

  void print() {
    std::ranges::sort(latencies_ns_);
    const auto percentile = [this](double part) {
      if (latencies_ns_.empty()) return 0.0;
      return latencies_ns_[static_cast<size_t>(part * static_cast<double>(latencies_ns_.size() - 1))] / 1e3;
    };
    const auto count = static_cast<double>(latencies_ns_.size());
    fmt::print(
        R"({{"iops": {:.1f}, "mb_per_s": {:.2f}, "p50_us": {:.1f}, "p99_us": {:.1f}, "cpu_us_per_op": {:.2f}, "copied_bytes": {}}})"
        "\n",
        count / elapsed_, count * plan_.block_bytes / elapsed_ / 1e6, percentile(0.5), percentile(0.99),
        cpu_ / std::max(count, 1.0) * 1e6, pool_.copied().value());
  }

 private:
  Task<void> write(ChunkId chunk, uint32_t offset, uint32_t length) {
    Entry entry;
    entry.group = kGroup;
    entry.term = Term(1);
    entry.kind = EntryKind::chunk_write;
    entry.chunk = chunk;
    entry.offset = offset;
    entry.length = length;
    entry.payload = check(co_await pool_.alloc_chain(length), "alloc");
    auto permit = check(co_await shard_.admit(entry, mem::Purpose::client), "admit");
    entry.index = next_index_;
    ++next_index_;
    const Index index = entry.index;
    check(co_await shard_.append(std::move(entry), std::move(permit)), "append");
    shard_.apply(kGroup, index);
  }

  Task<void> prepare() {
    for (uint64_t i = 0; i < plan_.chunks(); ++i) {
      const auto stat = shard_.stat(chunk_id(i));
      if (!stat || stat->size != kChunkBytes) co_await write(chunk_id(i), 0, kChunkBytes);
    }
  }

  Task<void> worker(uint64_t number) {
    SeededRng rng(number + 1);
    const uint64_t blocks = kChunkBytes / plan_.block_bytes;
    for (Time begin = clock_.now(); begin < end_;) {
      const ChunkId chunk = chunk_id(rng.below(plan_.chunks()));
      const auto offset = static_cast<uint32_t>(rng.below(blocks) * plan_.block_bytes);
      if (plan_.write) {
        co_await write(chunk, offset, plan_.block_bytes);
      } else {
        const auto data = check(co_await shard_.read(chunk, offset, plan_.block_bytes), "read");
        if (data.size() != plan_.block_bytes) fail("a short read");
      }
      const Time end = clock_.now();
      latencies_ns_.push_back(static_cast<uint32_t>((end - begin).ns));
      begin = end;
    }
  }

  const Plan plan_;
  Reactor& reactor_;
  mem::Pool& pool_;
  Shard& shard_;
  SystemClock clock_;
  Index next_index_{};
  Time end_;
  double elapsed_ = 0;
  double cpu_ = 0;
  std::vector<uint32_t> latencies_ns_;
};

Task<DeviceInfo> open_or_format(DeviceContext context, Rng& rng) {
  auto opened = co_await open_device(context);
  if (opened.code() != Errc::not_found) co_return check(std::move(opened), "open");
  co_return check(co_await format_device(context, {.cluster = {}, .shards = 1, .force = false}, rng), "format");
}

Task<int> run(const Plan& plan, Reactor& reactor, Registry& registry, UringDevice& device, kv::OrderedStore& store,
              mem::Arena& arena, Rng& rng) {
  mem::Pool pool(reactor, registry, arena.memory(), size_t{64} << 20);
  const DeviceInfo info = co_await open_or_format({device, pool}, rng);
  const Shard::Context context{reactor, registry, pool, device, store};
  auto shard =
      check(co_await Shard::open(context, info.extent(0), {.cache_bytes = 0, .dirty_bytes = kDirtyBytes}), "shard");
  check(shard->health(), "shard");
  Bench bench(plan, reactor, pool, *shard);
  co_await bench.run();
  co_await shard->close();
  bench.print();
  co_return 0;
}

int main(const Plan& plan) {
  SystemRng rng;
  Registry registry;
  auto arena = check(mem::Arena::create(kArenaBytes), "arena");
  auto reactor =
      check(Reactor::create({.index = 0, .mode = Mode::automatic, .wake_cost = {}, .rng = rng, .registry = registry}),
            "reactor");
  auto file = check(DiskFile::open(plan.file), "device");
  UringDevice device(*reactor, file, registry);
  OffloadPool helpers("helper", 1);
  const auto rocks = check(kv::RocksStore::open({.path = plan.file + ".map"}), "store");
  const auto view = rocks->view("s0/", helpers, *reactor, registry, "shard=\"0\"");
  return reactor->run_task([&] { return run(plan, *reactor, registry, device, *view, arena, rng); });
}

}  // namespace
}  // namespace cairn::engine

int main(int argc, char** argv) {
  if (argc < 6 || (std::string(argv[2]) != "read" && std::string(argv[2]) != "write")) {
    cairn::engine::fail("usage: engine_bench FILE read|write BLOCK_BYTES DEPTH SECONDS [SPAN_MIB]");
  }
  cairn::engine::Plan plan;
  plan.file = argv[1];
  plan.write = std::string(argv[2]) == "write";
  plan.block_bytes = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  plan.depth = std::strtoul(argv[4], nullptr, 10);
  plan.seconds = std::strtod(argv[5], nullptr);
  if (argc > 6) plan.span_bytes = std::strtoull(argv[6], nullptr, 10) << 20;
  if (plan.block_bytes == 0 || plan.block_bytes % 4096 != 0 || plan.block_bytes > cairn::engine::kChunkBytes ||
      plan.depth == 0 || plan.span_bytes < cairn::engine::kChunkBytes) {
    cairn::engine::fail("a block is a multiple of 4096 bytes and at most 4 MiB, the depth at least 1, the span 4 MiB");
  }
  return cairn::engine::main(plan);
}
