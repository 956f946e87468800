// EngineModel: what a shard must hold, computed from the groups' logs alone.
//
// Each group's log is kept whole. The state is always the one after the first `applied` entries of each; a restart
// moves that to where the shard's log really ends.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/types.h"
#include "kv/ordered_store.h"
#include "scenarios/kv_model.h"
#include "scenarios/page_pattern.h"

namespace cairn::scenarios {

// An entry as the model sees it.
struct LogOp {
  engine::EntryKind kind = engine::EntryKind::noop;
  engine::ChunkId chunk{};
  uint32_t offset = 0;
  uint32_t length = 0;
  uint64_t version = 0;  // of a write's content
  uint64_t term = 0;
  std::string body{};                     // kv_batch
  std::vector<kv::Mutation> mutations{};  // what the body says
};

struct ChunkModel {
  uint32_t size = 0;
  uint64_t last_change = 0;
  engine::GroupId group;
  std::vector<PageVersion> pages;  // up to size; beyond: holes
};

// A read under way: what it may return, gathered while entries are applied. A page may be of any version that was
// current at some moment of the call.
struct OpenRead {
  engine::ChunkId chunk;
  uint32_t first_page = 0;
  std::vector<std::vector<PageVersion>> pages;
  std::vector<std::optional<uint32_t>> sizes;  // none: there was no such chunk
};

class EngineModel {
 public:
  explicit EngineModel(size_t groups, size_t kv_key_overhead);

  // A new last entry of the group's log; its index.
  uint64_t append(engine::GroupId group, LogOp op);
  // The entry takes effect; in index order.
  void apply(engine::GroupId group, uint64_t index);
  // After a restart the group's log ends at `last`: later entries never happened, earlier ones are in effect.
  void restart(engine::GroupId group, uint64_t last);

  uint64_t last(engine::GroupId group) const { return log(group).size(); }
  uint64_t applied(engine::GroupId group) const { return groups_[group.value].applied; }
  const LogOp& op(engine::GroupId group, uint64_t index) const { return log(group)[index - 1]; }
  const KvModel& kv(engine::GroupId group) const { return groups_[group.value].kv; }
  size_t group_count() const { return groups_.size(); }

  const std::map<engine::ChunkId, ChunkModel>& chunks() const { return chunks_; }
  PageVersion page(const ChunkModel& chunk, uint32_t page) const {
    return page < chunk.pages.size() ? chunk.pages[page] : PageVersion{};
  }

  std::list<OpenRead>::iterator begin_read(engine::ChunkId chunk, uint32_t offset, uint32_t length);
  void end_read(std::list<OpenRead>::iterator read) { reads_.erase(read); }

  // For tests of the checker: deletes have no effect in the model, or one write has none.
  void forget_deletes() { forget_deletes_ = true; }
  void forget_write_number(uint64_t version) { forgotten_version_ = version; }

 private:
  struct Group {
    explicit Group(size_t kv_key_overhead) : kv(kv_key_overhead) {}
    std::vector<LogOp> log;
    uint64_t applied = 0;
    KvModel kv;  // of the whole log; look at it at an index
  };

  const std::vector<LogOp>& log(engine::GroupId group) const { return groups_[group.value].log; }
  void take_effect(engine::GroupId group, uint64_t index, const LogOp& op);
  void note(OpenRead& read) const;
  void rebuild();

  std::vector<Group> groups_;
  std::map<engine::ChunkId, ChunkModel> chunks_;
  std::list<OpenRead> reads_;
  bool forget_deletes_ = false;
  uint64_t forgotten_version_ = 0;
};

}  // namespace cairn::scenarios
