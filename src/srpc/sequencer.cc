#include "srpc/sequencer.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::srpc::detail {

Sequence Sequencer::stamp(SequencedCall& call, const HelloReplyBody& connection) {
  uint32_t age_ms = 0;
  if (call.number == 0) {
    while (channel_.is_zero()) channel_ = Id128::random(loop_.rng());
    call.number = next_++;
    call.server = connection.server_id;
    call.poll_group = connection.poll_group;
    call.sent = loop_.now();
    call.previous = tail_;
    (tail_ == nullptr ? head_ : tail_->next) = &call;
    tail_ = &call;
  } else {
    ASSERT(may_repeat_on(call, connection));
    age_ms = static_cast<uint32_t>(std::clamp<int64_t>((loop_.now() - call.sent).ms() + 1, 1, UINT32_MAX));
  }
  ASSERT(head_ != nullptr && head_->number <= call.number && call.number < next_);
  return {channel_, call.number, head_->number, age_ms};
}

void Sequencer::finished(SequencedCall& call) {
  if (call.number == 0) return;
  (call.previous == nullptr ? head_ : call.previous->next) = call.next;
  (call.next == nullptr ? tail_ : call.next->previous) = call.previous;
  call.number = 0;
}

}  // namespace cairn::srpc::detail
