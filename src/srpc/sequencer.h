// Sequencer: a channel's side of calls that are executed once (message.h, kSequenced). Numbers them, knows which are
// under way, and where one may be sent again: to the same poll group of the same life of the server, which alone knows
// whether it has executed it.
#pragma once

#include <cstdint>

#include "base/id.h"
#include "base/time.h"
#include "reactor/loop.h"
#include "srpc/extensions.h"
#include "srpc/wire.h"

namespace cairn::srpc::detail {

class PendingCall;

// In each call; used for those with a sequence.
struct SequencedCall {
  uint64_t number = 0;  // 0: not sent yet, or to a server that doesn't know sequences
  std::array<uint8_t, 16> server{};
  uint16_t poll_group = 0;
  Time sent;                          // for the first time
  SequencedCall* previous = nullptr;  // in the order of their numbers
  SequencedCall* next = nullptr;
};

class Sequencer {
 public:
  explicit Sequencer(Loop& loop) : loop_(loop) {}
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  // It is sent on a connection that was agreed upon so; the first time it gets its number.
  Sequence stamp(SequencedCall& call, const HelloReplyBody& connection);
  static bool may_repeat_on(const SequencedCall& call, const HelloReplyBody& connection) {
    return (connection.features & kFeatureSequences) != 0 && connection.server_id == call.server &&
           connection.poll_group == call.poll_group;
  }
  // It has ended, however it did.
  void finished(SequencedCall& call);
  // Of those under way the first one that was sent; null: none.
  const SequencedCall* oldest() const { return head_; }

 private:
  Loop& loop_;
  Id128 channel_;  // drawn with the first number
  uint64_t next_ = 1;
  // Invariant: numbers grow from head to tail, all of them below next_.
  SequencedCall* head_ = nullptr;
  SequencedCall* tail_ = nullptr;
};

}  // namespace cairn::srpc::detail
