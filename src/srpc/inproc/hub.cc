#include "srpc/inproc/hub.h"

#include <utility>

#include "base/assert.h"
#include "srpc/inproc/local_endpoint.h"

namespace cairn::srpc::inproc {

class HubConnector final : public Connector {
 public:
  HubConnector(Hub& hub, const CrossEndpoint::Context& from, uint16_t poll_group)
      : hub_(hub), from_(from), poll_group_(poll_group), address_("inproc:" + std::to_string(poll_group)) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken) override {
    Hub::Slot& slot = hub_.slots_[poll_group_];
    if (slot.reactor == &from_.reactor) co_return connect_locally(slot);
    auto link = std::make_shared<CrossLink>();
    link->side(0).reactor = &from_.reactor;
    link->side(1).reactor = slot.reactor;
    auto ours = std::make_unique<CrossEndpoint>(from_, link, 0, address_);
    // Before anything that is sent on it.
    (new Arrival(slot, std::move(link), "inproc:" + std::to_string(from_.reactor.index())))->send();
    co_return std::unique_ptr<Endpoint>(std::move(ours));
  }
  const std::string& address() const override { return address_; }

 private:
  // Tells the server's thread of a new connection.
  struct Arrival final : RemoteWork {
    Arrival(Hub::Slot& at, std::shared_ptr<CrossLink> on, std::string from)
        : RemoteWork(&arrive), slot(at), link(std::move(on)), peer(std::move(from)) {}
    void send() { slot.reactor->enqueue(*this); }
    static void arrive(RemoteWork& work) {
      const std::unique_ptr<Arrival> self(&static_cast<Arrival&>(work));
      // Without a server nobody is at this end, and the parcels that follow say so.
      Hub::Slot& slot = self->slot;
      if (slot.server == nullptr) {
        (new Parcel(self->link, 0, Parcel::What::close))->send();
        return;
      }
      slot.server->accept(std::make_unique<CrossEndpoint>(
          CrossEndpoint::Context{.reactor = *slot.reactor, .pool = *slot.pool, .scope = *slot.scope},
          std::move(self->link), 1, std::move(self->peer)));
    }
    Hub::Slot& slot;
    std::shared_ptr<CrossLink> link;
    std::string peer;
  };

  Result<std::unique_ptr<Endpoint>> connect_locally(Hub::Slot& slot) {
    if (slot.server == nullptr) return Error(Errc::unavailable, "nobody serves this poll group");
    auto [ours, theirs] = LocalEndpoint::make_pair(from_.reactor, address_);
    slot.server->accept(std::move(theirs));
    return std::unique_ptr<Endpoint>(std::move(ours));
  }

  Hub& hub_;
  CrossEndpoint::Context from_;
  uint16_t poll_group_;
  std::string address_;
};

Hub::Hub(const std::vector<Reactor*>& reactors) {
  for (Reactor* reactor : reactors) slots_.push_back({.reactor = reactor});
}

void Hub::open(uint16_t poll_group, Server& server, mem::Pool& pool, Scope& scope) {
  Slot& slot = slots_.at(poll_group);
  slot.server = &server;
  slot.pool = &pool;
  slot.scope = &scope;
}

void Hub::close(uint16_t poll_group) { slots_.at(poll_group).server = nullptr; }

std::unique_ptr<Connector> Hub::connector(const CrossEndpoint::Context& from, uint16_t poll_group) {
  ASSERT(poll_group < slots_.size());
  return std::make_unique<HubConnector>(*this, from, poll_group);
}

}  // namespace cairn::srpc::inproc
