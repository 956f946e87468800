// A shard on a FaultDevice and a MemoryStore, with a group or two on top, as the replica's host would drive it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "engine/shard.h"
#include "engine/testing/fault_device.h"
#include "engine/testing/test_loop.h"
#include "kv/memory_store.h"
#include "mem/arena.h"
#include "mem/copy.h"
#include "mem/pool.h"

namespace cairn::engine::test {

inline constexpr uint64_t kMegabyte = uint64_t{1} << 20;

class Rig {
 public:
  struct Options {
    uint64_t seed = 1;
    uint64_t shard_bytes = 40 * kMegabyte;
    uint64_t journal_bytes = 16 * kMegabyte;  // of them
    uint64_t pool_bytes = 64 * kMegabyte;
    ShardOptions shard{};
  };

  Rig() : Rig(Options{}) {}
  explicit Rig(Options its_options)
      : options(its_options),
        rng(its_options.seed),
        loop(its_options.seed),
        arena(*mem::Arena::create(its_options.pool_bytes)),
        pool(std::make_unique<mem::Pool>(loop, pool_registry, arena.memory(), 8 * kMegabyte)),
        contents(std::make_shared<std::vector<std::byte>>(its_options.shard_bytes)),
        store(std::make_unique<kv::MemoryStore>(loop, kv::MemoryStore::Latency{microseconds(50), microseconds(300)})) {
    extent = {.device = Id128::random(rng),
              .shard = 3,
              .offset = 0,
              .length = options.shard_bytes,
              .journal_bytes = options.journal_bytes};
    plug_in();
  }
  ~Rig() {
    if (shard) close();
  }

  Shard::Context context() { return {loop, *registry, *pool, *device, *store}; }
  void plug_in() { device = std::make_unique<FaultDevice>(loop, rng, contents); }

  void format() {
    const auto formatted = loop.run(&Shard::format, context(), extent);
    ASSERT_TRUE(formatted) << formatted.error().to_string();
  }
  Result<void> try_open() {
    registry = std::make_unique<Registry>();  // series of the shard before would stand twice
    auto opened = loop.run(&Shard::open, context(), extent, options.shard);
    if (!opened) return std::move(opened).error();
    shard = *std::move(opened);
    return {};
  }
  // Opens and applies what was recovered, as a group with one replica does.
  void open() {
    const auto opened = try_open();
    ASSERT_TRUE(opened) << opened.error().to_string();
    if (!shard->health()) return;
    for (const Entry& entry : shard->recovered()) {
      if (entry.kind == EntryKind::kv_batch) apply_kv(entry);
      shard->apply(entry);
    }
    shard->forget_recovered();
    next_index.clear();
  }
  void close() {
    loop.run([](Shard* it) { return it->close(); }, shard.get());
    shard.reset();
  }
  void start() {
    format();
    open();
  }
  // The power goes; what is under way ends with errors. open() next.
  void crash() {
    device->power_off();
    store->power_off(rng);
    close();
    loop.run_until([&] { return device->under_way() == 0; });
    store->power_on();
    plug_in();
  }
  void reopen() {
    close();
    open();
  }

  Index take_index(GroupId group) {
    auto [at, fresh] = next_index.try_emplace(group, shard->last_index(group) + 1);
    const Index index = at->second;
    ++at->second;
    return index;
  }

  // Admission, append, apply.
  static Task<Result<void>> propose(Rig* rig, Entry entry, mem::Purpose purpose) {
    CO_TRY(auto permit, co_await rig->shard->admit(entry, purpose));
    const GroupId group = entry.group;
    entry.index = rig->take_index(group);
    const Index index = entry.index;
    Entry for_kv;
    if (entry.kind == EntryKind::kv_batch) {
      for_kv.group = group;
      for_kv.index = index;
      for_kv.body = entry.body;
    }
    CO_TRY(co_await rig->shard->append(std::move(entry), std::move(permit)));
    if (for_kv.group == group && !for_kv.body.empty()) rig->apply_kv(for_kv);
    rig->shard->apply(group, index);
    co_return Result<void>{};
  }
  Result<void> run(Entry entry, mem::Purpose purpose = mem::Purpose::client) {
    return loop.run(&Rig::propose, this, std::move(entry), purpose);
  }

  // "key=value" is the whole language of this test's key-value machine.
  void apply_kv(const Entry& entry) {
    const size_t equals = entry.body.find('=');
    const kv::Mutation mutations[] = {{"kv/" + entry.body.substr(0, equals), entry.body.substr(equals + 1)},
                                      shard->applied_mark(entry.group, entry.index)};
    ASSERT_TRUE(store->write(mutations));
  }

  mem::BufChain payload(std::span<const std::byte> bytes) {
    mem::BufChain chain;
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), mem::kMaxBlock);
      mem::Buf buf = *pool->try_alloc(n, mem::Purpose::internal);
      std::memcpy(buf.writable(), bytes.data(), n);
      chain.append(std::move(buf));
      bytes = bytes.subspan(n);
    }
    return chain;
  }
  Entry write_entry(ChunkId chunk, uint32_t offset, std::span<const std::byte> bytes, GroupId group = GroupId(1)) {
    Entry entry;
    entry.group = group;
    entry.term = Term(1);
    entry.kind = EntryKind::chunk_write;
    entry.chunk = chunk;
    entry.offset = offset;
    entry.length = static_cast<uint32_t>(bytes.size());
    entry.payload = payload(bytes);
    return entry;
  }
  static Entry simple_entry(EntryKind kind, ChunkId chunk, uint32_t offset = 0, uint32_t length = 0,
                            GroupId group = GroupId(1)) {
    Entry entry;
    entry.group = group;
    entry.term = Term(1);
    entry.kind = kind;
    entry.chunk = chunk;
    entry.offset = offset;
    entry.length = length;
    return entry;
  }
  Result<void> write(ChunkId chunk, uint32_t offset, std::span<const std::byte> bytes) {
    return run(write_entry(chunk, offset, bytes));
  }
  Result<void> remove(ChunkId chunk) { return run(simple_entry(EntryKind::chunk_delete, chunk)); }
  Result<void> checkpoint() {
    return loop.run([](Shard* it) { return it->checkpoint(); }, shard.get());
  }
  Result<std::vector<std::byte>> read(ChunkId chunk, uint32_t offset = 0, uint32_t length = kChunkBytes) {
    auto chain = loop.run([](Shard* it, ChunkId id, uint32_t at, uint32_t size) { return it->read(id, at, size); },
                          shard.get(), chunk, offset, length);
    if (!chain) return std::move(chain).error();
    std::vector<std::byte> bytes(chain->size());
    chain->copy_metadata_to(bytes);
    return bytes;
  }

  Options options;
  SeededRng rng;
  StepLoop loop;
  mem::Arena arena;
  Registry pool_registry;
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<Registry> registry = std::make_unique<Registry>();  // the shard's
  std::shared_ptr<std::vector<std::byte>> contents;
  std::unique_ptr<FaultDevice> device;
  std::unique_ptr<kv::MemoryStore> store;
  ShardExtent extent;
  std::unique_ptr<Shard> shard;
  std::map<GroupId, Index> next_index;
};

inline std::vector<std::byte> pattern(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  SeededRng(seed).fill(bytes);
  return bytes;
}
inline ChunkId chunk_id(uint64_t number) {
  ChunkId id;
  for (int i = 0; i < 8; ++i) id.bytes[15 - i] = static_cast<uint8_t>(number >> (8 * i));
  id.bytes[0] = 1;
  return id;
}

}  // namespace cairn::engine::test
