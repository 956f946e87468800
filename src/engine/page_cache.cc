#include "engine/page_cache.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::engine {
namespace {

constexpr uint8_t kMaxHits = 3;
constexpr uint64_t kSmallShare = 10;  // the small queue's part of the limit: one tenth

Unit unit_of(HomePage home) { return Unit(static_cast<uint32_t>(home.value / kPagesPerUnit)); }
uint8_t page_of(HomePage home) { return static_cast<uint8_t>(home.value % kPagesPerUnit); }

}  // namespace

PageCache::Node* PageCache::find(Unit unit) {
  const auto found = nodes_.find(unit);
  return found == nodes_.end() ? nullptr : &found->second;
}

mem::Buf PageCache::find_page(HomePage home) {
  Node* node = find(unit_of(home));
  if (node == nullptr) return {};
  const uint8_t number = page_of(home);
  mem::Buf hit;
  if (node->whole.size() >= (size_t{number} + 1) * kPageBytes) {
    hit = node->whole.slice(size_t{number} * kPageBytes, kPageBytes);
  } else {
    const auto page = std::ranges::find(node->pages, number, &Page::number);
    if (page != node->pages.end()) hit = page->buf;
  }
  if (hit) node->hits = std::min<uint8_t>(node->hits + 1, kMaxHits);
  return hit;
}

mem::Buf PageCache::find_unit(Unit unit, uint32_t pages) {
  Node* node = find(unit);
  if (node == nullptr || node->whole.size() < size_t{pages} * kPageBytes) return {};
  node->hits = std::min<uint8_t>(node->hits + 1, kMaxHits);
  return node->whole.slice(0, size_t{pages} * kPageBytes);
}

PageCache::Node& PageCache::find_or_make(Unit unit) {
  auto [at, fresh] = nodes_.try_emplace(unit);
  Node& node = at->second;
  if (fresh) {
    node.unit = unit;
    node.in_main = ghosts_.erase(unit) > 0;
    (node.in_main ? main_ : small_).push_front(node);
  }
  return node;
}

void PageCache::drop_pages(Node& node, size_t from, size_t to) {
  const auto gone =
      std::ranges::remove_if(node.pages, [&](const Page& page) { return page.number >= from && page.number < to; });
  node.pages.erase(gone.begin(), gone.end());
}

void PageCache::account(Node& node, uint64_t before) {
  bytes_ = bytes_ - before + node.bytes();
  if (!node.in_main) small_bytes_ = small_bytes_ - before + node.bytes();
  gauge_.set(static_cast<int64_t>(bytes_));
}

void PageCache::insert_page(HomePage home, mem::Buf page) {
  ASSERT(page.size() == kPageBytes);
  if (limit_ < kPageBytes) return;
  Node& node = find_or_make(unit_of(home));
  const uint64_t before = node.bytes();
  const uint8_t number = page_of(home);
  if (node.whole.size() > size_t{number} * kPageBytes) node.whole = {};
  const auto old = std::ranges::find(node.pages, number, &Page::number);
  if (old != node.pages.end()) {
    old->buf = std::move(page);
  } else {
    node.pages.push_back({number, std::move(page)});
  }
  account(node, before);
  make_room();
}

void PageCache::insert_unit(Unit unit, mem::Buf pages) {
  ASSERT(pages.size() > 0 && pages.size() <= kUnitBytes && pages.size() % kPageBytes == 0);
  if (limit_ < pages.size()) return;
  Node& node = find_or_make(unit);
  const uint64_t before = node.bytes();
  const size_t count = pages.size() / kPageBytes;
  node.whole = std::move(pages);
  drop_pages(node, 0, count);
  account(node, before);
  make_room();
}

void PageCache::erase_page(HomePage home) {
  Node* node = find(unit_of(home));
  if (node == nullptr) return;
  const uint64_t before = node->bytes();
  const uint8_t number = page_of(home);
  // The rest of a whole unit goes with it: splitting it up would pin all its memory for less.
  if (node->whole.size() > size_t{number} * kPageBytes) node->whole = {};
  drop_pages(*node, number, number + 1u);
  account(*node, before);
  if (node->bytes() == 0) remove(*node);
}

void PageCache::erase_unit(Unit unit) {
  if (Node* node = find(unit); node != nullptr) remove(*node);
  ghosts_.erase(unit);
}

void PageCache::remove(Node& node) {
  const uint64_t before = node.bytes();
  node.whole = {};
  node.pages.clear();
  account(node, before);
  Queue& queue = node.in_main ? main_ : small_;
  queue.erase(queue.iterator_to(node));
  nodes_.erase(Unit(node.unit));
}

void PageCache::remember(Unit unit) {
  ghosts_.insert(unit);
  ghost_order_.push_back(unit);
  // As many as there are units here.
  while (ghost_order_.size() > nodes_.size() + 64) {
    ghosts_.erase(ghost_order_.front());
    ghost_order_.pop_front();
  }
}

// One step: something is evicted, moved to the main queue, or sent round again with a hit less. Ends because hits run
// out.
void PageCache::evict_one() {
  if (!small_.empty() && (small_bytes_ * kSmallShare > limit_ || main_.empty())) {
    Node& node = small_.back();
    if (node.hits == 0) {
      const Unit unit = node.unit;
      remove(node);
      remember(unit);
      return;
    }
    small_.erase(small_.iterator_to(node));
    small_bytes_ -= node.bytes();
    node.in_main = true;
    node.hits = 0;
    main_.push_front(node);
    return;
  }
  if (main_.empty()) return;
  Node& node = main_.back();
  if (node.hits == 0) return remove(node);
  --node.hits;
  main_.erase(main_.iterator_to(node));
  main_.push_front(node);
}

void PageCache::make_room() {
  while (bytes_ > limit_) evict_one();
}

bool PageCache::evict(uint64_t bytes) {
  if (nodes_.empty()) return false;
  const uint64_t goal = bytes_ > bytes ? bytes_ - bytes : 0;
  while (bytes_ > goal) evict_one();
  return true;
}

void PageCache::clear() {
  while (!nodes_.empty()) remove(small_.empty() ? main_.back() : small_.back());
}

}  // namespace cairn::engine
