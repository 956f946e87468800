// ShmListener: accepts connections over shared memory on one reactor and gives them to its server. One poll group of a
// process opens it, beside the TCP listeners; the hello moves connections to the others (placement.h).
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "reactor/address.h"
#include "reactor/fd_watch.h"
#include "reactor/scope.h"
#include "srpc/server.h"
#include "srpc/shm/peer_memory.h"
#include "srpc/shm/shm_poll_group.h"

namespace cairn::srpc::shm {

class ShmListener {
 public:
  // `tcp`: where the process listens for TCP, after which the meeting place is named. Group and server outlive it.
  static Result<std::unique_ptr<ShmListener>> open(ShmPollGroup& group, Server& server, const Address& tcp);
  ShmListener(const ShmListener&) = delete;
  ShmListener& operator=(const ShmListener&) = delete;

  // Before it is destroyed, and before the server is drained.
  Task<void> close();

 private:
  ShmListener(ShmPollGroup& group, Server& server, Fd socket);
  Task<void> accept();
  Task<void> meet(Fd socket);

  ShmPollGroup& group_;
  Server& server_;
  Fd socket_;
  PeerMemories memories_;
  Scope scope_;
};

}  // namespace cairn::srpc::shm
