// Rail: what one poll group has on one device: completion queues and their channel, slots, and an ear for news of the
// port. Made when the first connection wants it, so that a device that can't be used now may be tried again later.
//
// Sleeping without losing a completion: an event comes for completions that are added after the queue was armed. So:
// take the events, arm, then look; what is found then keeps the reactor awake.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/reactor.h"
#include "reactor/timer.h"
#include "srpc/rdma/device.h"
#include "srpc/rdma/rdma_metrics.h"
#include "srpc/rdma/slot_memory.h"
#include "srpc/rdma/verbs.h"
#include "srpc/stream/socket_poll.h"

namespace cairn::srpc::rdma {

class Rail final : private stream::SocketPoll::Events {
 public:
  class Events {
   public:
    virtual void on_completion(const WorkCompletion& completion) = 0;
    // Nothing that is connected over it works any more.
    virtual void on_rail_failed(Rail& rail, const std::string& why) = 0;

   protected:
    ~Events() = default;
  };

  // A completion queue, and how much of it is spoken for.
  struct Queue {
    std::unique_ptr<VerbsCq> cq;
    uint32_t depth = 0;
    uint32_t reserved = 0;
    bool armed = false;
    bool broken = false;  // nothing can be learned from it any more
  };

  Rail(Reactor& reactor, RdmaMetrics& metrics, const Device& device, Events& events, size_t block_bytes,
       Duration port_grace);
  ~Rail();
  // On the reactor's thread, when nothing uses it any more: it hears and is asked nothing from now on.
  void close();

  const Device& device() const { return device_; }

  // Whether it may be tried now; an error says why not. Asks the device.
  struct Choice {
    Port port;
    GidChoice gid;
  };
  Result<Choice> choose(const Address& local);
  // Errors: those of the device.
  VerbResult<void> open();
  // A queue with room for so many completions; they are reserved.
  VerbResult<Queue*> reserve(uint32_t completions);
  static void release(Queue& queue, uint32_t completions) { queue.reserved -= completions; }
  VerbResult<SlotMemory*> slots(Role role);

  // Hands on what has completed, `budget` completions at most. `drained`: nothing was left.
  size_t poll(size_t budget, bool& drained);
  // False: something came meanwhile.
  bool arm();

 private:
  // News of the port come through an opening of the device that is this rail's own.
  struct Ear final : stream::SocketPoll::Events {
    explicit Ear(Rail& r) : rail(r) {}
    void on_poll_in(bool) override { rail.hear_news(); }
    void on_poll_out() override {}
    Rail& rail;
  };

  void on_poll_in(bool) override { take_events(); }
  void on_poll_out() override {}
  void take_events();
  void hear_news();
  void port_went_down();
  void port_came_back();
  static void on_grace(void* self);
  void fail(const std::string& why);
  VerbResult<void> make_queue(uint32_t at_least);

  Reactor& reactor_;
  RdmaMetrics& metrics_;
  const Device& device_;
  Events& events_;
  size_t block_bytes_;
  Duration port_grace_;

  std::unique_ptr<VerbsDevice> news_;
  Ear ear_;
  stream::SocketPoll* news_poll_ = nullptr;
  std::unique_ptr<VerbsChannel> channel_;
  stream::SocketPoll* channel_poll_ = nullptr;
  std::vector<std::unique_ptr<Queue>> queues_;  // destroyed before the channel
  std::unique_ptr<SlotMemory> slots_[2];
  Timer grace_;
  bool up_ = false;       // as far as is known
  bool removed_ = false;  // the device itself
};

}  // namespace cairn::srpc::rdma
