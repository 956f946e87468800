// RdmaPollGroup: SRPC over RDMA on one reactor. A connection comes about over another one that works already:
//
//   client                                            server
//   prepare(client), local() ───────────────────────► prepare(server), connect(remote): receives, and may send
//   connect(remote) ◄─────────────────────── local()
//   first bytes ═══════════════ RDMA ═══════════════►
//
// Whoever connects last sends first: before that the other side isn't known to receive.
//
// A group has several rails (a port of a device each) in the order of preference. prepare() takes the first one that
// works. One whose port goes down is left alone until the port comes back; connections over it end when that takes
// longer than QueueOptions::port_grace, which is how their calls come to another rail, or to TCP.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/metrics.h"
#include "base/status.h"
#include "mem/pool.h"
#include "reactor/address.h"
#include "reactor/reactor.h"
#include "reactor/sync.h"
#include "reactor/task.h"
#include "reactor/timer.h"
#include "srpc/rdma/device.h"
#include "srpc/rdma/link.h"
#include "srpc/rdma/qp_address.h"
#include "srpc/rdma/queue_options.h"
#include "srpc/rdma/rail.h"
#include "srpc/rdma/rdma_metrics.h"
#include "srpc/rdma/rdma_stream.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::rdma {

// A queue pair that doesn't know its peer yet. Destroying it gives it up.
class PendingLink {
 public:
  virtual ~PendingLink() = default;

  // For the peer.
  virtual const QpAddress& local() const = 0;
  // For people: "mlx5_0 port 1, RoCEv2 10.0.0.7, MTU 4096".
  virtual const std::string& rail() const = 0;
  // Once. `peer` is the stream's peer(). The stream isn't started. Errors: those of check_remote(), and those of the
  // device, with its name, the call and what to do.
  virtual Result<std::unique_ptr<RdmaStream>> connect(const QpAddress& remote, std::string peer) = 0;
};

class RdmaPollGroup final : public stream::StreamGroup, private Rail::Events {
 public:
  // The devices outlive the group.
  RdmaPollGroup(Reactor& reactor, Registry& registry, mem::Pool& pool, const std::vector<Device*>& rails,
                QueueOptions options = {}, mem::Purpose requests = mem::Purpose::request);
  // After close(), or on no thread.
  ~RdmaPollGroup() override;
  // After the last stream was destroyed: waits until the devices have let go of everything.
  Task<void> close();

  // A queue pair that can receive. `local`: the address at which the existing connection meets this machine, so that
  // both sides choose ports that reach each other; without one, or where no rail has it, the first rail that works. The
  // error has one line for each rail that was tried.
  Result<std::unique_ptr<PendingLink>> prepare(Role role, const Address& local = {});
  std::unique_ptr<Endpoint> make_endpoint(std::unique_ptr<RdmaStream> stream) {
    return StreamGroup::make_endpoint(std::move(stream));
  }

  size_t poll(size_t budget) override;
  bool arm() override;

  RdmaMetrics& metrics() { return metrics_; }
  // Queue pairs of streams that are gone, whose device still holds memory.
  size_t dying() const { return dying_.size(); }

 private:
  friend class RdmaStream;
  class Pending;
  // A link without a stream.
  struct Dying {
    std::unique_ptr<Link> link;
    Fd socket;  // its end may not overtake what was sent before
    bool flushing = false;
    Time deadline;  // of the present step
  };

  Result<std::unique_ptr<PendingLink>> prepare_on(Rail& rail, Role role, const Address& local);
  void add_link(Link& link) { links_[link.number()] = &link; }
  void forget_link(const Link& link) { links_.erase(link.number()); }
  void on_completion(const WorkCompletion& completion) override;
  void on_rail_failed(Rail& rail, const std::string& why) override;

  void add_ready(RdmaStream& stream) { ready_.push_back(&stream); }
  void forget_ready(RdmaStream& stream);
  size_t serve_ready(bool drained);

  void bury(std::unique_ptr<Link> link, std::vector<mem::BufChain>&& kept, Fd socket);
  // Takes the dying further. Those that are through are destroyed.
  size_t help_dying();
  void end(Dying dying);
  static void on_dying(void* self) { (void)static_cast<RdmaPollGroup*>(self)->help_dying(); }

  QueueOptions options_;
  RdmaMetrics metrics_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::unordered_map<uint32_t, Link*> links_;  // by number
  uint32_t next_number_ = 1;
  std::vector<RdmaStream*> ready_;    // null: gone meanwhile
  std::vector<RdmaStream*> serving_;  // the same, while they are served
  std::vector<Dying> dying_;
  std::vector<std::unique_ptr<Link>> abandoned_;  // whose queue pairs couldn't be destroyed
  Timer dying_timer_;
  Event all_dead_;
};

}  // namespace cairn::srpc::rdma
