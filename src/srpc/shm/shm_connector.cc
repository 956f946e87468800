#include "srpc/shm/shm_connector.h"

#include <utility>

#include "srpc/shm/rendezvous.h"

namespace cairn::srpc::shm {
namespace {

// A server that listens on all addresses has one name for them.
Result<Fd> find_server(const Address& to) {
  if (!is_of_this_machine(to)) return Error(Errc::unavailable, to.to_string() + " isn't on this machine");
  auto socket = connect_to(meeting_name(to));
  if (socket) return socket;
  for (const char* all : {"0.0.0.0", "::"}) {
    TRY(const Address any, Address::parse(all, to.port()));
    if (auto found = connect_to(meeting_name(any))) return found;
  }
  return socket;
}

}  // namespace

Task<Result<std::unique_ptr<Endpoint>>> ShmConnector::connect(CancelToken token) {
  CO_TRY(Fd socket, find_server(to_));
  std::string peer = peer_of(socket);
  CO_TRY(auto met, co_await introduce(group_.reactor(), std::move(socket), group_.shared_memfd(), ring_bytes_, token));
  co_return group_.make_endpoint({.socket = std::move(met.socket),
                                  .segment = std::move(met.segment),
                                  .side = stream::Role::client,
                                  .peer = std::move(peer),
                                  .shares_memory = met.shares_memory});
}

}  // namespace cairn::srpc::shm
