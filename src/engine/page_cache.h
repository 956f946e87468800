// PageCache: verified pages of the data area, in arena memory, given out by reference.
//
// Kept by unit: a unit that was read or written whole is one Buf, single pages stand by themselves. Replacement is
// S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023): newcomers wait in a small queue
// and reach the main one only when they are asked for again, so that one long scan displaces nothing that is in use.
//
//   insert ─▶ small (1/10) ──asked for again──▶ main ──▶ evicted (asked for since: round again)
//                  └─ not ─▶ evicted, its number remembered in `ghosts`: coming back soon, it goes to main
//
// What is here of a mapped unit is what the chunk map says: whoever supersedes a page or takes a unit into use erases
// it here. (Of units that are not mapped anything may be here.)
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "engine/geometry.h"
#include "engine/metrics.h"
#include "mem/buf.h"

namespace cairn::engine {

class PageCache {
 public:
  PageCache(uint64_t limit_bytes, Gauge& bytes_gauge) : limit_(limit_bytes), gauge_(bytes_gauge) {}
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;
  ~PageCache() { clear(); }

  // Empty when it isn't here.
  mem::Buf find_page(HomePage home);
  // The unit's first `pages` pages in one piece.
  mem::Buf find_unit(Unit unit, uint32_t pages);

  // One page; or the unit's first pages in one piece. Replaces what was here.
  void insert_page(HomePage home, mem::Buf page);
  void insert_unit(Unit unit, mem::Buf pages);
  void erase_page(HomePage home);
  void erase_unit(Unit unit);

  // Evicts what is beyond it.
  void set_limit(uint64_t limit_bytes) {
    limit_ = limit_bytes;
    make_room();
  }
  // Evicts about `bytes`; false when it is empty.
  bool evict(uint64_t bytes);
  void clear();

  uint64_t bytes() const { return bytes_; }

 private:
  struct Page {
    uint8_t number = 0;
    mem::Buf buf;
  };
  struct Node : boost::intrusive::list_base_hook<> {
    Unit unit{};
    uint8_t hits = 0;  // up to 3
    bool in_main = false;
    mem::Buf whole;
    boost::container::small_vector<Page, 1> pages;  // none of them in `whole`

    uint64_t bytes() const { return whole.size() + pages.size() * kPageBytes; }
  };
  using Queue = boost::intrusive::list<Node>;

  Node* find(Unit unit);
  Node& find_or_make(Unit unit);
  static void drop_pages(Node& node, size_t from, size_t to);
  void account(Node& node, uint64_t before);
  void remove(Node& node);
  void remember(Unit unit);
  void evict_one();
  void make_room();

  uint64_t limit_;
  Gauge& gauge_;
  uint64_t bytes_ = 0;
  uint64_t small_bytes_ = 0;
  std::unordered_map<Unit, Node> nodes_;  // never iterated
  Queue small_;                           // newest in front
  Queue main_;
  // Evicted from the small queue; `ghost_order_` may name ones that came back meanwhile.
  std::unordered_set<Unit> ghosts_;
  std::deque<Unit> ghost_order_;
};

}  // namespace cairn::engine
