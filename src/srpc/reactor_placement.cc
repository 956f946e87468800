#include "srpc/reactor_placement.h"

namespace cairn::srpc {

ReactorPlacement::ReactorPlacement(const std::vector<Reactor*>& reactors) {
  for (Reactor* reactor : reactors) slots_.emplace_back(reactor);
}

void ReactorPlacement::open(uint16_t poll_group, Server& server, std::vector<PollGroup*> transports) {
  Slot& slot = slots_.at(poll_group);
  slot.server = &server;
  slot.transports = std::move(transports);
  publish(poll_group, 0);
}

void ReactorPlacement::close(uint16_t poll_group) {
  Slot& slot = slots_.at(poll_group);
  slot.server = nullptr;
  slot.transports.clear();
  publish(poll_group, kTakesNone);
}

uint16_t ReactorPlacement::choose(uint16_t own) {
  uint16_t& turn = slots_[own].turn;
  const size_t first = turn++ % slots_.size();
  uint16_t chosen = kAnyPollGroup;
  uint64_t fewest = kTakesNone;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const size_t at = (first + i) % slots_.size();
    const Slot& slot = slots_[at];
    const uint32_t connections = slot.connections.load(std::memory_order_relaxed);
    if (connections == kTakesNone) continue;
    const uint64_t all = uint64_t{connections} + slot.coming.load(std::memory_order_relaxed);
    if (all < fewest) {
      fewest = all;
      chosen = static_cast<uint16_t>(at);
    }
  }
  return chosen;
}

void ReactorPlacement::publish(uint16_t poll_group, uint32_t connections) {
  slots_[poll_group].connections.store(connections, std::memory_order_relaxed);
}

void ReactorPlacement::place(uint16_t poll_group, std::unique_ptr<DetachedEndpoint> connection,
                             const Introduction& introduction) {
  ASSERT(poll_group < slots_.size());
  Slot& slot = slots_[poll_group];
  slot.coming.fetch_add(1, std::memory_order_relaxed);
  slot.reactor->post_from_any_thread(
      [&slot, moved = std::move(connection), introduction] { arrive(slot, *moved, introduction); });
}

void ReactorPlacement::arrive(Slot& slot, DetachedEndpoint& connection, const Introduction& introduction) {
  for (PollGroup* transport : slot.transports) {
    auto endpoint = connection.attach(*transport);
    if (endpoint == nullptr) continue;
    slot.server->adopt(std::move(endpoint), introduction);
    break;
  }
  // When it is counted as a connection, or will never be one.
  slot.coming.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace cairn::srpc
