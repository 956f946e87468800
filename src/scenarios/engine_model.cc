#include "scenarios/engine_model.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::scenarios {

using engine::EntryKind;
using engine::kPageBytes;

EngineModel::EngineModel(size_t groups, size_t kv_key_overhead) {
  for (size_t i = 0; i < groups; ++i) groups_.emplace_back(kv_key_overhead);
}

uint64_t EngineModel::append(engine::GroupId group, LogOp op) {
  Group& g = groups_[group.value];
  const uint64_t index = g.kv.append(op.mutations);
  g.log.push_back(std::move(op));
  ASSERT(index == g.log.size());
  return index;
}

void EngineModel::apply(engine::GroupId group, uint64_t index) {
  Group& g = groups_[group.value];
  ASSERT(index == g.applied + 1 && index <= g.log.size());
  g.applied = index;
  const LogOp& op = g.log[index - 1];
  take_effect(group, index, op);
  for (OpenRead& read : reads_) {
    if (read.chunk == op.chunk) note(read);
  }
}

void EngineModel::take_effect(engine::GroupId group, uint64_t index, const LogOp& op) {
  switch (op.kind) {
    case EntryKind::noop:
    case EntryKind::kv_batch:
      return;
    case EntryKind::chunk_delete:
      if (!forget_deletes_) chunks_.erase(op.chunk);
      return;
    case EntryKind::chunk_discard: {
      const auto found = chunks_.find(op.chunk);
      if (found == chunks_.end()) return;
      ChunkModel& chunk = found->second;
      const size_t end = std::min<size_t>((op.offset + op.length) / kPageBytes, chunk.pages.size());
      for (size_t page = op.offset / kPageBytes; page < end; ++page) chunk.pages[page] = {};
      chunk.last_change = index;
      return;
    }
    case EntryKind::chunk_write: {
      if (op.version == forgotten_version_) return;
      ChunkModel& chunk = chunks_[op.chunk];
      chunk.group = group;
      chunk.last_change = index;
      chunk.size = std::max(chunk.size, op.offset + op.length);
      chunk.pages.resize((chunk.size + kPageBytes - 1) / kPageBytes);
      for (uint32_t at = 0; at < op.length; at += kPageBytes) {
        chunk.pages[(op.offset + at) / kPageBytes] = {.version = op.version,
                                                      .valid = std::min(kPageBytes, op.length - at)};
      }
      return;
    }
  }
}

void EngineModel::restart(engine::GroupId group, uint64_t last) {
  Group& g = groups_[group.value];
  ASSERT(last <= g.log.size() && reads_.empty());
  const bool back = last < g.applied;
  g.log.resize(last);
  g.kv.cut(last);
  if (back) {
    g.applied = last;
    rebuild();
  } else {
    while (g.applied < last) apply(group, g.applied + 1);
  }
}

void EngineModel::rebuild() {
  chunks_.clear();
  for (size_t i = 0; i < groups_.size(); ++i) {
    // Chunks belong to one group each, so the order between groups doesn't matter.
    for (uint64_t index = 1; index <= groups_[i].applied; ++index) {
      take_effect(engine::GroupId(static_cast<uint32_t>(i)), index, groups_[i].log[index - 1]);
    }
  }
}

std::list<OpenRead>::iterator EngineModel::begin_read(engine::ChunkId chunk, uint32_t offset, uint32_t length) {
  OpenRead read{.chunk = chunk, .first_page = offset / kPageBytes, .pages = {}, .sizes = {}};
  const uint32_t end_page = (offset + length + kPageBytes - 1) / kPageBytes;
  read.pages.resize(end_page - read.first_page);
  note(read);
  return reads_.insert(reads_.end(), std::move(read));
}

void EngineModel::note(OpenRead& read) const {
  const auto found = chunks_.find(read.chunk);
  if (found == chunks_.end()) {
    read.sizes.emplace_back(std::nullopt);
    return;
  }
  read.sizes.emplace_back(found->second.size);
  for (size_t i = 0; i < read.pages.size(); ++i) {
    const PageVersion version = page(found->second, read.first_page + static_cast<uint32_t>(i));
    auto& versions = read.pages[i];
    if (versions.empty() || versions.back() != version) versions.push_back(version);
  }
}

}  // namespace cairn::scenarios
