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
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "mem/pool.h"
#include "reactor/address.h"
#include "reactor/reactor.h"
#include "reactor/task.h"
#include "srpc/rdma/device.h"
#include "srpc/rdma/qp_address.h"
#include "srpc/rdma/rdma_stream.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::rdma {

// Of each connection.
struct QueueOptions {
  uint16_t slots = 32;            // receives posted, 4 or more
  uint32_t slot_bytes = 4096;     // of each, header included; 256 to 65536
  uint16_t one_sided_depth = 64;  // READs and WRITEs in the send queue
  uint16_t read_depth = 16;       // READs among them, where the devices can do as many
  uint32_t inline_bytes = 188;    // sent without the device reading our memory, where it can do that
  Duration port_grace = milliseconds(300);
  Duration drain = milliseconds(250);  // for what was sent before the end to arrive
};

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

class RdmaPollGroup final : public stream::StreamGroup {
 public:
  // The devices outlive the group.
  RdmaPollGroup(Reactor& reactor, Registry& registry, mem::Pool& pool, std::vector<Device*> rails,
                QueueOptions options = {}, mem::Purpose requests = mem::Purpose::request);
  // After close(), or without ever having had a connection.
  ~RdmaPollGroup() override;
  // After the last stream was destroyed: waits until the devices have let go of everything.
  Task<void> close();

  // A queue pair that can receive. `local`: the address at which the existing connection meets this machine, so that
  // both sides choose ports that reach each other; invalid or of another network: the first rail that works. Errors
  // are one line for each rail that was tried; unavailable when there are none.
  Result<std::unique_ptr<PendingLink>> prepare(Role role, const Address& local = {});
  std::unique_ptr<Endpoint> make_endpoint(std::unique_ptr<RdmaStream> stream);
};

}  // namespace cairn::srpc::rdma
