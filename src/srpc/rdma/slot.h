// Slots: the unit in which a stream's bytes travel. Each SEND is one slot: this header, then bytes of the stream.
//
// Credits. A side may have as many SENDs on their way as the other has receives posted. Who has posted one anew owes
// the credit, and pays with the next SEND of its own, or by a bare one when it owes half a window. Bytes never take the
// last credit: it is for bare ones. So credits can be paid even when both windows are used up, and a bare one's own
// credit always comes back: it was sent because the other had sent half a window before, and pays with what it sends
// next. (A window has four credits or more for that.)
#pragma once

#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "base/endian.h"

namespace cairn::srpc::rdma {

struct SlotHeader {
  static constexpr uint8_t kEnd = 1;  // the sender's last bytes are in this slot or were in one before

  Le16 bytes = 0;    // of the stream, behind the header
  Le16 credits = 0;  // that come back to the receiver
  uint8_t flags = 0;
  uint8_t zero[3] = {};
};
static_assert(sizeof(SlotHeader) == 8 && alignof(SlotHeader) == 1);

inline constexpr uint16_t kMinSlots = 4;
inline constexpr uint16_t kMaxSlots = 1024;
inline constexpr uint32_t kMinSlotBytes = 256;
inline constexpr uint32_t kMaxSlotBytes = 65536;

class Credits {
 public:
  // `posted`: receives of this side; `window`: of the other.
  Credits(uint16_t posted, uint16_t window) : posted_(posted), window_(window), left_(window) {
    ASSERT(posted >= kMinSlots && window >= kMinSlots);
  }

  bool bytes_may_go() const { return left_ >= 2; }
  bool bare_may_go() const { return left_ >= 1; }
  // A bare one should go if nothing else does.
  bool bare_is_due() const { return owed_ >= posted_ / 2; }
  // One SEND goes. Returns what it pays.
  uint16_t take() {
    ASSERT(left_ >= 1);
    --left_;
    return std::exchange(owed_, uint16_t{0});
  }
  // A receive was posted anew.
  void reposted() {
    ++owed_;
    ASSERT(owed_ <= posted_);
  }
  // The other side pays. False: more than it owes.
  bool paid(uint16_t credits) {
    if (credits > window_ - left_) return false;
    left_ = static_cast<uint16_t>(left_ + credits);
    return true;
  }
  uint16_t left() const { return left_; }
  uint16_t owed() const { return owed_; }

 private:
  uint16_t posted_;
  uint16_t window_;
  uint16_t left_;      // Invariant: left_ <= window_
  uint16_t owed_ = 0;  // Invariant: owed_ <= posted_
};

}  // namespace cairn::srpc::rdma
