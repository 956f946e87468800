#include "srpc/reactor_placement.h"

namespace cairn::srpc {

ReactorPlacement::ReactorPlacement(const std::vector<Reactor*>& reactors) {
  for (Reactor* reactor : reactors) slots_.push_back({.reactor = reactor});
}

void ReactorPlacement::open(uint16_t poll_group, Server& server, PollGroup& transport) {
  Slot& slot = slots_.at(poll_group);
  slot.server = &server;
  slot.transport = &transport;
}

void ReactorPlacement::close(uint16_t poll_group) {
  Slot& slot = slots_.at(poll_group);
  slot.server = nullptr;
  slot.transport = nullptr;
}

void ReactorPlacement::place(uint16_t poll_group, std::unique_ptr<DetachedEndpoint> connection,
                             const HelloBody& hello) {
  ASSERT(poll_group < slots_.size());
  Slot& slot = slots_[poll_group];
  slot.reactor->post_from_any_thread([&slot, moved = std::move(connection), hello] { arrive(slot, *moved, hello); });
}

void ReactorPlacement::arrive(Slot& slot, DetachedEndpoint& connection, const HelloBody& hello) {
  if (slot.server != nullptr) slot.server->adopt(connection.attach(*slot.transport), hello);
}

}  // namespace cairn::srpc
