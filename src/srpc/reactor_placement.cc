#include "srpc/reactor_placement.h"

namespace cairn::srpc {

ReactorPlacement::ReactorPlacement(const std::vector<Reactor*>& reactors) {
  for (Reactor* reactor : reactors) slots_.push_back({.reactor = reactor});
}

void ReactorPlacement::open(uint16_t poll_group, Server& server, std::vector<PollGroup*> transports) {
  Slot& slot = slots_.at(poll_group);
  slot.server = &server;
  slot.transports = std::move(transports);
}

void ReactorPlacement::close(uint16_t poll_group) {
  Slot& slot = slots_.at(poll_group);
  slot.server = nullptr;
  slot.transports.clear();
}

void ReactorPlacement::place(uint16_t poll_group, std::unique_ptr<DetachedEndpoint> connection,
                             const Introduction& introduction) {
  ASSERT(poll_group < slots_.size());
  Slot& slot = slots_[poll_group];
  slot.reactor->post_from_any_thread(
      [&slot, moved = std::move(connection), introduction] { arrive(slot, *moved, introduction); });
}

void ReactorPlacement::arrive(Slot& slot, DetachedEndpoint& connection, const Introduction& introduction) {
  for (PollGroup* transport : slot.transports) {
    if (auto endpoint = connection.attach(*transport)) return slot.server->adopt(std::move(endpoint), introduction);
  }
}

}  // namespace cairn::srpc
