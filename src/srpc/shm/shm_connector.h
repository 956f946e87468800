// Connects channels over shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reactor/address.h"
#include "srpc/shm/shm_poll_group.h"

namespace cairn::srpc::shm {

class ShmConnector final : public Connector {
 public:
  // Of each direction: twice this is pinned for each connection.
  static constexpr uint32_t kRingBytes = 128 * 1024;

  // `tcp`: the server's address. The poll group outlives the connector.
  ShmConnector(ShmPollGroup& group, const Address& tcp, uint32_t ring_bytes = kRingBytes)
      : group_(group), to_(tcp), ring_bytes_(ring_bytes), address_("shm:" + tcp.to_string()) {}

  // Errors: unavailable, when the server isn't on this machine or takes no shared memory.
  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return address_; }

 private:
  ShmPollGroup& group_;
  Address to_;
  uint32_t ring_bytes_;
  std::string address_;
};

}  // namespace cairn::srpc::shm
