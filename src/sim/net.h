// Net: a simulated network, which carries SRPC between simulated reactors.
//
// It gives StreamEndpoint a byte stream as TCP would, so that the code which is tested is the code that runs: framing,
// flow control, partial sends and receives, the end of a stream.
//
// Faults, and why the system must survive them:
//   delay          each piece of a stream arrives after a random time, in order within the stream; so streams overtake
//                  each other, and messages arrive in pieces
//   full buffers   a direction holds few bytes: senders block in the middle of messages
//   lost           a connection breaks at any byte; what was under way arrives in part
//   cut            nothing passes between two nodes, in both directions, until healed; TCP would go on trying
//   silence        a node lost its power: its connections stay open at the other end, and nobody answers
//   refused        nobody listens
// Excluded: damaged bytes (TCP's and our checksums; the reader's own tests damage them), duplicated or reordered bytes
// inside a stream (TCP).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "mem/pool.h"
#include "reactor/scope.h"
#include "sim/simulator.h"
#include "srpc/server.h"
#include "srpc/transport.h"

namespace cairn::sim {

struct NetFaults {
  Duration delay_min = microseconds(5);
  Duration delay_max = microseconds(100);
  size_t buffer_bytes = 64 * 1024;  // of one direction: under way and not received
  size_t piece_bytes = 16 * 1024;   // the largest piece that is sent or received at a time
  uint32_t loss_ppm = 0;            // for each piece: the connection is lost with it
  bool one_sided = false;  // not a fault: the servers of connections made from now on move payload (net_moves.h)
};

class NetWire;

class Net {
 public:
  using Node = uint32_t;

  explicit Net(Simulator& simulator) : simulator_(simulator) {}
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;
  // All endpoints are gone.
  ~Net();

  void set_faults(const NetFaults& faults) { faults_ = faults; }
  const NetFaults& faults() const { return faults_; }

  // Makes a reactor known; all that is handed in outlives its endpoints.
  Node add_node(SimLoop& loop, mem::Pool& pool, Scope& scope);
  // Connections to the node go to the server, until it is nullptr.
  void listen(Node node, srpc::Server* server);
  // From a node to a node.
  std::unique_ptr<srpc::Connector> connector(Node from, Node to);

  void cut(Node a, Node b);
  void heal(Node a, Node b);
  bool is_cut(Node a, Node b) const { return cuts_.contains(std::minmax(a, b)); }
  // All its present connections are dead from now on, and the other ends don't know.
  void silence(Node node);
  // Breaks all its connections, as the kernel does when it kills a process.
  void break_connections(Node node);
  // Breaks one of all, if there is one.
  void break_any();
  size_t connections() const { return wires_.size(); }
  // Payload that servers have moved.
  uint64_t pulls() const { return pulls_; }
  uint64_t pushes() const { return pushes_; }

 private:
  friend class NetConnector;
  friend class NetStream;
  friend class NetWire;

  struct Place {
    SimLoop* loop;
    mem::Pool* pool;
    Scope* scope;
    srpc::Server* server = nullptr;
  };

  Simulator& simulator_;
  NetFaults faults_;
  std::vector<Place> places_;
  std::set<std::pair<Node, Node>> cuts_;
  std::map<uint64_t, std::weak_ptr<NetWire>> wires_;  // by number: walked in that order
  uint64_t next_wire_ = 1;
  uint64_t pulls_ = 0;
  uint64_t pushes_ = 0;
};

}  // namespace cairn::sim
