// Small writes that are applied but not yet at their home: the journal has them, memory usually, too.
//
// Two layers, as in a log-structured tree: `begin_flush` turns what has gathered into a layer that a checkpoint writes
// home while new writes gather above it. A page is looked up in both, the newer one first.
//
// Only meaningful together with the chunk map: what is found here counts only while the map says that the page is
// present at that home. So a page whose unit was given up needs no care in the layer below: it is never asked for, and
// the unit isn't used again before the checkpoint under way has ended.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "engine/geometry.h"
#include "engine/types.h"
#include "mem/buf.h"

namespace cairn::engine {

struct DirtyPage {
  Lsn lsn{};  // where it lies in the journal
  uint32_t crc = 0;
  mem::Buf buf;  // one page, or empty: to be read from the journal
};

class DirtyPages {
 public:
  using Layer = std::map<HomePage, DirtyPage>;  // ordered: neighbours are written home together

  // At most `memory_limit` bytes of pages are kept in memory; the oldest give way.
  explicit DirtyPages(uint64_t memory_limit) : memory_limit_(memory_limit) {}

  void put(HomePage home, DirtyPage page);
  // The unit or page was superseded; it need not be written home.
  void drop(HomePage home);
  void drop_unit(Unit unit);

  // Null when the page is at its home. Valid until the next change.
  const DirtyPage* find(HomePage home) const;
  // True when no page of the unit is here, which is the usual case for large reads.
  bool none_of(Unit unit) const;

  bool flushing() const { return flushing_under_way_; }
  const Layer& flush_layer() const { return flushing_; }
  bool has_new() const { return !current_.empty(); }
  size_t pages() const { return current_.size() + flushing_.size(); }
  uint64_t memory_bytes() const { return memory_bytes_; }
  uint64_t memory_limit() const { return memory_limit_; }

  void begin_flush();
  // The layer is at home.
  Layer end_flush();
  // The checkpoint failed: its layer goes back under the current one.
  void abort_flush();

  // Gives up memory (not pages) until `bytes` are free or none is left; returns what was freed.
  uint64_t shed(uint64_t bytes);

 private:
  struct Aged {
    HomePage home{};
    Lsn lsn{};
  };
  void forget_memory(const DirtyPage& page) { memory_bytes_ -= page.buf.size(); }

  const uint64_t memory_limit_;
  uint64_t memory_bytes_ = 0;
  bool flushing_under_way_ = false;
  Layer current_;
  Layer flushing_;
  std::deque<Aged> by_age_;  // of pages in memory; may name ones that are gone
};

}  // namespace cairn::engine
