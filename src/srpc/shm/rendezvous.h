// Where processes of one machine meet: a UNIX socket in the abstract namespace, named after the TCP address that the
// server listens on. The client makes the segment and passes its memfd; the server answers with one byte. Afterwards
// the socket stays open as the bell and as the sign of life: it ends when the other process does.
//
// A client whose arena is shared memory passes that, too, and the server may then move payload directly between that
// and its own memory. Servers do it for clients of their own user and root only: memory that runs out in one process
// would end the other.
//
// The abstract namespace belongs to the network namespace, as the TCP port does: who meets here could meet there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "reactor/address.h"
#include "reactor/cancel.h"
#include "reactor/reactor.h"
#include "reactor/task.h"
#include "srpc/shm/peer_memory.h"
#include "srpc/shm/segment.h"

namespace cairn::srpc::shm {

// "srpc:127.0.0.1:7400"; of an address that means all of a machine's, "srpc:*:7400".
std::string meeting_name(const Address& tcp);
// The address is one of this machine's, in this network namespace.
bool is_of_this_machine(const Address& address);

// A listening socket. Errors: busy (the name is taken).
Result<Fd> listen_at(const std::string& name);
// A connected one. Errors: unavailable (nobody listens, or somebody who isn't this user nor root).
Result<Fd> connect_to(const std::string& name);
// The process at the other end: "shm:1234", its pid.
std::string peer_of(const Fd& socket);

struct Met {
  Fd socket;
  Segment segment;
  // At a server: the client's memory, if it shares it and may be trusted with that. At a client: the server has it.
  std::shared_ptr<PeerMemory> peer_memory = {};
  bool shares_memory = false;
};
// The client's part, and the server's. `memory` is the memfd of the client's arena, or none. Errors: unavailable,
// protocol_error, the token's reason.
Task<Result<Met>> introduce(Reactor& reactor, Fd socket, const Fd& memory, uint32_t ring_bytes, CancelToken token);
Task<Result<Met>> receive_introduction(Reactor& reactor, PeerMemories& known, Fd socket, CancelToken token);

}  // namespace cairn::srpc::shm
