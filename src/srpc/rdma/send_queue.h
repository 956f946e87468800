// SendQueue: what is posted to a queue pair's send queue and has not completed, in order. Only every few requests one
// is signaled: a queue pair completes in order, so its completion retires those before it, too.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma {

class SendQueue {
 public:
  // Told of each request that is over, oldest first. May post.
  class Retired {
   public:
    virtual void on_retired(SendRequest::Kind kind, bool ok) = 0;

   protected:
    ~Retired() = default;
  };

  // `signal_every`: at most half of whatever limit holds for any kind of request, so that one who waits for a limit
  // always hears of a completion.
  SendQueue(uint32_t depth, uint32_t signal_every, Retired& retired)
      : depth_(depth), kinds_(std::bit_ceil(depth)), signal_every_(signal_every), retired_(retired) {
    ASSERT(depth >= 2 && depth <= kSequences / 2 && signal_every >= 1);
  }

  bool full() const { return outstanding() == depth_; }
  bool empty() const { return next_ == oldest_; }
  uint32_t outstanding() const { return (next_ - oldest_) % kSequences; }

  // `request.signaled` says whether its completion must be told. Its id becomes `id_base` and a sequence number.
  VerbResult<void> post(VerbsQp& qp, SendRequest request, uint64_t id_base) {
    ASSERT(!full());
    if (request.signaled || ++unsignaled_ >= signal_every_) {
      request.signaled = true;
      unsignaled_ = 0;
    }
    request.id = id_base | next_;
    kinds_[next_ % kinds_.size()] = request.kind;
    if (auto posted = qp.post(request); !posted) return posted;
    next_ = (next_ + 1) % kSequences;
    return {};
  }

  // A completion came. False when nothing of that number is under way.
  bool complete(uint32_t sequence, bool ok) {
    const uint32_t count = (sequence - oldest_) % kSequences + 1;
    if (count > outstanding()) return false;
    for (uint32_t i = 0; i < count; ++i) retire_oldest(ok);
    return true;
  }
  // Nothing more will complete: the queue pair is gone.
  void abandon() {
    while (!empty()) retire_oldest(false);
  }

 private:
  static constexpr uint32_t kSequences = uint32_t{1} << 31;

  void retire_oldest(bool ok) {
    const auto kind = kinds_[oldest_ % kinds_.size()];
    oldest_ = (oldest_ + 1) % kSequences;
    retired_.on_retired(kind, ok);
  }

  uint32_t depth_;
  std::vector<SendRequest::Kind> kinds_;  // a ring, whose size divides kSequences
  uint32_t signal_every_;
  Retired& retired_;
  uint32_t unsignaled_ = 0;
  uint32_t next_ = 0;
  uint32_t oldest_ = 0;
};

}  // namespace cairn::srpc::rdma
