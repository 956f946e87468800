// OneSidedQueue: the transfers of a server's queue pair, in the order in which they were begun. Each is one READ or
// WRITE for each run of bytes that is contiguous at both ends.
//
//   ops_:  [ posted, under way | posted, under way | partly posted | waits | waits ]
//            oldest, the next to end                 next_op_ stands here
//
// READs have a limit of their own: a device that has as many under way as the two sides have agreed on stops its send
// queue at the next one, and with it every reply behind. A queue pair completes in order, so transfers do, too.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "srpc/rdma/send_queue.h"
#include "srpc/rdma/verbs.h"
#include "srpc/stream/one_sided.h"

namespace cairn::srpc::rdma {

class Device;

class OneSidedQueue {
 public:
  struct Limits {
    uint32_t depth = 64;             // READs and WRITEs under way
    uint32_t reads = 16;             // READs among them
    uint64_t max_message_bytes = 0;  // of one
  };
  // What posts, and whether more may be posted at all.
  class Poster {
   public:
    // False: the connection has failed.
    virtual bool post(const SendRequest& request) = 0;

   protected:
    ~Poster() = default;
  };

  OneSidedQueue(const Device& device, Limits limits, Poster& poster)
      : device_(device), limits_(limits), poster_(poster) {}
  OneSidedQueue(const OneSidedQueue&) = delete;
  OneSidedQueue& operator=(const OneSidedQueue&) = delete;

  // False: its memory isn't known to the device, so it ends at once, with done(false).
  bool begin(std::unique_ptr<stream::Transfer> transfer);
  // Posts what the limits allow.
  void post_more();
  // The oldest request under way is over.
  void on_retired(SendRequest::Kind kind, bool ok);
  // Nothing more is posted. All end with done(false), in order, those under way and those behind them when these are
  // retired.
  void fail();

  // Some transfer to the client isn't posted yet: what the stream sends now would overtake it.
  bool holds_push() const { return pushes_waiting_ > 0; }
  bool idle() const { return ops_.empty(); }

 private:
  struct Run {
    std::span<std::byte> local;
    uint32_t local_key;
    uint64_t remote_address;
    uint32_t remote_key;
  };
  struct Op {
    std::unique_ptr<stream::Transfer> transfer;
    std::vector<Run> runs;
    size_t posted = 0;   // of the runs
    size_t retired = 0;  // Invariant: retired <= posted
    bool ok = true;

    bool is_pull() const { return transfer->direction == stream::Transfer::Direction::pull; }
    bool all_posted() const { return posted == runs.size(); }
    bool over() const { return all_posted() && retired == posted; }
  };

  bool plan(Op& op) const;
  void set_posted(Op& op);
  void end_finished();

  const Device& device_;
  Limits limits_;
  Poster& poster_;
  std::deque<std::unique_ptr<Op>> ops_;
  size_t next_op_ = 0;  // in ops_: the first that isn't posted completely
  uint32_t under_way_ = 0;
  uint32_t reads_under_way_ = 0;
  size_t pushes_waiting_ = 0;
  bool failed_ = false;
};

}  // namespace cairn::srpc::rdma
