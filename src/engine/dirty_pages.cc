#include "engine/dirty_pages.h"

#include <utility>

#include "base/assert.h"

namespace cairn::engine {

void DirtyPages::put(HomePage home, DirtyPage page) {
  ASSERT(page.buf.empty() || page.buf.size() == kPageBytes);
  memory_bytes_ += page.buf.size();
  if (!page.buf.empty()) by_age_.push_back({home, page.lsn});
  auto [at, fresh] = current_.try_emplace(home);
  if (!fresh) forget_memory(at->second);
  at->second = std::move(page);
  if (memory_bytes_ > memory_limit_) shed(memory_bytes_ - memory_limit_);
  // A page that is overwritten again and again leaves a trail of ages.
  if (by_age_.size() > 2 * pages() + 1024) {
    std::erase_if(by_age_, [this](const Aged& aged) {
      const DirtyPage* page = find(aged.home);
      return page == nullptr || page->lsn != aged.lsn;
    });
  }
}

void DirtyPages::drop(HomePage home) {
  const auto found = current_.find(home);
  if (found == current_.end()) return;
  forget_memory(found->second);
  current_.erase(found);
}

void DirtyPages::drop_unit(Unit unit) {
  auto at = current_.lower_bound(home_page(unit, 0));
  while (at != current_.end() && at->first < home_page(unit, kPagesPerUnit)) {
    forget_memory(at->second);
    at = current_.erase(at);
  }
}

const DirtyPage* DirtyPages::find(HomePage home) const {
  for (const Layer* layer : {&current_, &flushing_}) {
    const auto found = layer->find(home);
    if (found != layer->end()) return &found->second;
  }
  return nullptr;
}

bool DirtyPages::none_of(Unit unit) const {
  for (const Layer* layer : {&current_, &flushing_}) {
    const auto at = layer->lower_bound(home_page(unit, 0));
    if (at != layer->end() && at->first < home_page(unit, kPagesPerUnit)) return false;
  }
  return true;
}

void DirtyPages::begin_flush() {
  ASSERT(!flushing_under_way_ && flushing_.empty());
  flushing_under_way_ = true;
  flushing_ = std::exchange(current_, {});
}

DirtyPages::Layer DirtyPages::end_flush() {
  ASSERT(flushing_under_way_);
  flushing_under_way_ = false;
  for (const auto& [home, page] : flushing_) forget_memory(page);
  return std::exchange(flushing_, {});
}

void DirtyPages::abort_flush() {
  ASSERT(flushing_under_way_);
  flushing_under_way_ = false;
  current_.merge(flushing_);  // what is newer stays
  for (const auto& [home, page] : flushing_) forget_memory(page);
  flushing_.clear();
}

uint64_t DirtyPages::shed(uint64_t bytes) {
  uint64_t freed = 0;
  while (freed < bytes && !by_age_.empty()) {
    const Aged aged = by_age_.front();
    by_age_.pop_front();
    for (Layer* layer : {&flushing_, &current_}) {
      const auto found = layer->find(aged.home);
      if (found == layer->end() || found->second.lsn != aged.lsn) continue;
      freed += found->second.buf.size();
      forget_memory(found->second);
      found->second.buf = {};
    }
  }
  return freed;
}

}  // namespace cairn::engine
