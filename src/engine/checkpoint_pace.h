// CheckpointPace: keeps a checkpoint and the writers who fill the journal meanwhile in step.
//
// A checkpoint frees its part of the journal only at its end. Writers that may fill the rest as fast as they can would
// then stand still until that end: a good median, and now and then a second without an answer. So while pages are going
// home writers are granted as much as the checkpoint will free, a quarter at once, for bursts, and the rest page by
// page; and the further they are ahead, the more of the device's queue the checkpoint takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cairn::engine {

class CheckpointPace {
 public:
  // What background work takes of the device's queue when nobody waits for it, and what it takes at most.
  static constexpr size_t kLeastWrites = 4;
  static constexpr size_t kMostWrites = 64;

  // `room`: bytes of the journal that writers could take now, of which they are to take `grant`; `pages` are to be
  // written home.
  void begin(uint64_t room, uint64_t grant, size_t pages) {
    room_ = room;
    grant_ = std::min(grant, room);
    pages_ = left_ = pages;
  }
  // True when that is worth telling those who wait: a commit for each page would be wasteful.
  bool pages_home(size_t pages) {
    const size_t before = left_;
    left_ -= std::min(pages, left_);
    return left_ == 0 || before / kTellPages != left_ / kTellPages;
  }
  // Nothing is held back any more.
  void end() { *this = {}; }

  // Bytes of the journal that writers must leave alone. Reaches 0 with the last page.
  uint64_t held_back() const {
    if (left_ == 0) return 0;
    return room_ - grant_ + (grant_ - grant_ / kAtOnce) / pages_ * left_;
  }

  // How many home writes may be under way, when writers could take `room` more bytes if nothing were held back.
  size_t writes(uint64_t room) const {
    if (left_ == 0) return kLeastWrites;
    // Between what is home by now and what has been given out: there they wait.
    const uint64_t taken = room < room_ ? room_ - room : 0;
    const uint64_t home = grant_ / pages_ * (pages_ - left_);
    const uint64_t given = room_ - held_back();
    if (taken >= given) return kMostWrites;
    if (taken <= home) return kLeastWrites;
    return kLeastWrites + (kMostWrites - kLeastWrites) * (taken - home) / (given - home);
  }

 private:
  static constexpr size_t kTellPages = 16;
  static constexpr uint64_t kAtOnce = 4;  // one part in so many is given out at once

  uint64_t room_ = 0;
  uint64_t grant_ = 0;
  size_t pages_ = 0;
  size_t left_ = 0;
};

}  // namespace cairn::engine
