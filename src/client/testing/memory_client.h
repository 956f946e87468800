// MemoryClient: a whole cluster in plain memory behind the Client interface, for tests of what stands above.
//
// Fault model. Every call takes a random time before and after its effect, so calls that run side by side take effect
// in any order. On demand: any call may be refused without effect or lose its answer after it took effect; the space
// may run out; a bit may rot; at power_off() calls under way end with Errc::closed, with or without their effect, and
// later ones without. What was acknowledged is never lost: that is the business of the layers this stands for. Leases
// are forgotten at power_on().
//
// Deterministic: time and chance come from the loop.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/client.h"
#include "mem/pool.h"
#include "reactor/loop.h"

namespace cairn::client {

class MemoryClient final : public Client {
 public:
  enum class Operation : uint8_t {
    chunk_write,
    chunk_read,
    chunk_delete,
    chunk_list,
    kv_get,
    kv_scan,
    kv_batch,
    lease
  };
  enum class Fault : uint8_t {
    none,
    refuse,      // Errc::unavailable, no effect
    lose_call,   // Errc::closed, no effect
    lose_reply,  // Errc::closed, with its effect
  };

  struct Options {
    uint32_t groups = 16;
    Duration latency_max = microseconds(100);
    uint64_t capacity = UINT64_MAX;  // bytes of chunks, in whole pages
  };

  MemoryClient(Loop& loop, mem::Pool& pool, Options options);
  MemoryClient(Loop& loop, mem::Pool& pool) : MemoryClient(loop, pool, Options{}) {}

  engine::GroupId group_of_chunk(engine::ChunkId chunk) const override;
  engine::GroupId group_of_key(Id128 salt) const override;
  engine::GroupId system_group() const override { return engine::GroupId(0); }
  std::vector<engine::GroupId> all_groups() const override;

  Task<Result<void>> chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data,
                                 CallContext context) override;
  Task<Result<mem::BufChain>> chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                         CallContext context) override;
  Task<Result<void>> chunk_delete(engine::ChunkId chunk, CallContext context) override;
  Task<Result<std::vector<engine::ChunkId>>> chunk_list(engine::GroupId group, engine::ChunkId after, size_t limit,
                                                        CallContext context) override;
  Task<Result<std::optional<std::string>>> kv_get(engine::GroupId group, std::string key, CallContext context) override;
  Task<Result<kv::ScanResult>> kv_scan(engine::GroupId group, kv::ScanOptions options, CallContext context) override;
  Task<Result<void>> kv_batch(engine::GroupId group, kv::Batch batch, mem::Purpose purpose,
                              CallContext context) override;
  Task<Result<void>> lease_renew(engine::GroupId group, Id128 what, Duration ttl, CallContext context) override;
  Task<Result<LeaseCheck>> lease_check(engine::GroupId group, std::vector<Id128> what, CallContext context) override;

  void power_off() { ++power_losses_, powered_ = false; }
  void power_on();
  bool powered() const { return powered_; }
  // Asked before each call. Empty: no faults.
  void set_fault_hook(std::function<Fault(Operation)> hook) { fault_hook_ = std::move(hook); }
  void set_capacity(uint64_t bytes) { options_.capacity = bytes; }
  // Reads of the chunk answer Errc::corrupt from now on.
  void damage(engine::ChunkId chunk) { chunks_.at(chunk).damaged = true; }

  // To look behind the interface.
  using Map = std::map<std::string, std::string, std::less<>>;
  const Map& contents(engine::GroupId group) const { return groups_[group.value].map; }
  std::vector<engine::ChunkId> chunks() const;
  uint64_t used_bytes() const { return used_; }
  uint64_t calls(Operation operation) const { return calls_[static_cast<size_t>(operation)]; }

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    bool damaged = false;
  };
  struct Group {
    Map map;
    std::map<Id128, Time> leases;
  };
  // Around every call's effect: before() is an error when there is to be none, after() when the answer is lost.
  struct Passage {
    uint64_t power_losses = 0;
    Fault fault = Fault::none;
  };
  Task<Result<void>> before(Operation operation, Passage& passage, CallContext context);
  Task<Result<void>> after(Passage passage);
  Task<void> take_time();
  static bool holds(const Map& map, const kv::Condition& condition);

  Loop& loop_;
  mem::Pool& pool_;
  Options options_;
  std::vector<Group> groups_;
  std::map<engine::ChunkId, Chunk> chunks_;
  uint64_t used_ = 0;
  bool powered_ = true;
  uint64_t power_losses_ = 0;
  Time powered_since_;
  std::function<Fault(Operation)> fault_hook_;
  std::array<uint64_t, 8> calls_{};
};

}  // namespace cairn::client
