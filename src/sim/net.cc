#include "sim/net.h"

#include <utility>

#include "base/assert.h"
#include "sim/net_wire.h"
#include "srpc/stream/stream_endpoint.h"

namespace cairn::sim {

class NetConnector final : public srpc::Connector {
 public:
  NetConnector(Net& net, Net::Node from, Net::Node to)
      : net_(net), from_(from), to_(to), address_("sim:" + std::to_string(to)) {}

  Task<Result<std::unique_ptr<srpc::Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return address_; }

 private:
  struct Arrival {
    Net* net;
    Net::Node node;
    std::shared_ptr<NetWire> wire;
  };
  static void arrive(void* argument);

  Net& net_;
  Net::Node from_;
  Net::Node to_;
  std::string address_;
};

namespace {

std::unique_ptr<srpc::Endpoint> make_endpoint(const std::shared_ptr<NetWire>& wire, int side, SimLoop& loop,
                                              mem::Pool& pool, Scope& scope) {
  return std::make_unique<srpc::stream::StreamEndpoint>(
      srpc::stream::StreamEndpoint::Context{.loop = loop, .pool = pool, .scope = scope},
      std::make_unique<NetStream>(wire, side, loop, wire->one_sided() ? &pool : nullptr));
}

}  // namespace

Task<Result<std::unique_ptr<srpc::Endpoint>>> NetConnector::connect(CancelToken token) {
  const Net::Place place = net_.places_[from_];
  const NetFaults& faults = net_.faults_;
  CO_TRY(co_await place.loop->sleep(faults.delay_max, token));
  if (net_.is_cut(from_, to_)) {
    CO_TRY(co_await place.loop->sleep_until(Time::never(), token));
  }
  if (net_.places_[to_].server == nullptr) co_return Error(Errc::unavailable, "connect: Connection refused");
  const uint64_t number = net_.next_wire_++;
  auto wire = std::make_shared<NetWire>(net_, number, from_, to_);
  net_.wires_.emplace(number, wire);
  net_.simulator_.trace().event("net.connect", number, from_, to_);
  // The server's side begins on its own loop. Until then the wire has one end; closing it early is no harm.
  net_.places_[to_].loop->post(&arrive, new Arrival{&net_, to_, wire});
  co_return make_endpoint(wire, 0, *place.loop, *place.pool, *place.scope);
}

void NetConnector::arrive(void* argument) {
  const std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(argument));
  const Net::Place& place = arrival->net->places_[arrival->node];
  if (place.server == nullptr) return arrival->wire->lose();
  place.server->accept(make_endpoint(arrival->wire, 1, *place.loop, *place.pool, *place.scope));
}

Net::~Net() { ASSERT(wires_.empty()); }

Net::Node Net::add_node(SimLoop& loop, mem::Pool& pool, Scope& scope) {
  places_.push_back({&loop, &pool, &scope});
  return static_cast<Node>(places_.size() - 1);
}

void Net::listen(Node node, srpc::Server* server) { places_.at(node).server = server; }

std::unique_ptr<srpc::Connector> Net::connector(Node from, Node to) {
  return std::make_unique<NetConnector>(*this, from, to);
}

void Net::cut(Node a, Node b) {
  if (!cuts_.insert(std::minmax(a, b)).second) return;
  for (auto& [number, wire] : wires_) {
    if (auto w = wire.lock(); w && w->between(a, b)) w->cut_changed();
  }
}

void Net::heal(Node a, Node b) {
  if (cuts_.erase(std::minmax(a, b)) == 0) return;
  for (auto& [number, wire] : wires_) {
    if (auto w = wire.lock(); w && w->between(a, b)) w->cut_changed();
  }
}

void Net::silence(Node node) {
  for (auto& [number, wire] : wires_) {
    if (auto w = wire.lock(); w && w->touches(node)) {
      w->go_silent();
      w->cut_changed();
    }
  }
}

void Net::break_connections(Node node) {
  // Losing one only tells its ends; none goes here.
  for (auto& [number, wire] : wires_) {
    if (auto w = wire.lock(); w && w->touches(node)) w->lose();
  }
}

void Net::break_any() {
  if (wires_.empty()) return;
  auto at = wires_.begin();
  std::advance(at, static_cast<ptrdiff_t>(simulator_.rng().below(wires_.size())));
  if (auto w = at->second.lock()) w->lose();
}

}  // namespace cairn::sim
