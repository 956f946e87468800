// ServerProcess: a whole server behind one port: N poll groups, each a ReactorHost on its own thread with a Server,
// reached over TCP and RDMA and, by clients of the same machine, over shared memory.
//
//   TRY(auto process, srpc::ServerProcess::start({.at = Address::loopback(7400), .poll_groups = 2},
//       [](srpc::Server& server, srpc::ReactorHost&) {
//         auto store = std::make_shared<Store>();             // one for each poll group: nothing is shared
//         server.register_method<Put>(*store, &Store::put);
//         return store;
//       }));
//   signals.wait();                                         // reactor/stop_signals.h
//   process->stop(seconds(5));
//
// For programs that are nothing but an SRPC server. One that does more puts Server, listeners and ReactorPlacement
// together itself, as this class does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "reactor/address.h"
#include "reactor/held_port.h"
#include "srpc/reactor_host.h"
#include "srpc/reactor_placement.h"
#include "srpc/server.h"
#include "srpc/tls/tls_policy.h"

namespace cairn::srpc {

struct ServerProcessOptions {
  Address at = Address::loopback(7400);  // port 0: any free one
  uint16_t poll_groups = 1;
  Mode mode = Mode::automatic;
  size_t memory = size_t{64} << 20;  // of each poll group
  bool shared_memory = true;
  Tls tls = Tls::off;  // of TCP; anything else needs server.keys
  std::optional<rdma::RdmaOptions> rdma = {};
  // Its poll_group, poll_groups and server_id are set here.
  ServerOptions server = {};
};

class ServerProcess {
 public:
  // Called once for each poll group before anything is accepted, on the calling thread: registers the methods, and
  // gives what they belong to, if anything. That goes when the last call has ended, on the poll group's thread, so it
  // may hold memory of the host's pool.
  using MakeService = std::function<std::shared_ptr<void>(Server&, ReactorHost&)>;
  // Returns when everything listens. Errors: busy (the port is in use,
  // or not that much memory), invalid_argument (TLS without keys), and what the address brings.
  static Result<std::unique_ptr<ServerProcess>> start(const ServerProcessOptions& options,
                                                      const MakeService& make_service);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  // Stops at once if it wasn't stopped before.
  ~ServerProcess();

  // With the port that was had.
  const Address& address() const { return port_.address(); }
  size_t poll_groups() const { return groups_.size(); }
  ReactorHost& host(size_t poll_group);

  // Stops one poll group while the others go on (Server::hand_over), and returns when it serves nobody any more. Its
  // thread stays, and what its listener accepts is given to the others. Not while another thread stops the process.
  void drain(size_t poll_group, Duration grace);

  // Takes no new connections and calls, waits until those under way are answered, `grace` at most, and ends the
  // threads.
  void stop(Duration grace);

 private:
  struct Group;

  ServerProcess() = default;
  Result<void> open(const ServerProcessOptions& options, const MakeService& make_service);

  // In the order in which they come up.
  HeldPort port_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::unique_ptr<ReactorPlacement> placement_;
};

}  // namespace cairn::srpc
