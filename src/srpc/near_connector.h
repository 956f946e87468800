// NearConnector: over shared memory where the server is on this machine and takes it, else by another way, which is
// TCP's. Decided anew at each connect, so a server that moves, or comes back with or without shared memory, is found
// either way.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "srpc/shm/shm_connector.h"
#include "srpc/tcp/tcp_connector.h"

namespace cairn::srpc {

class NearConnector final : public Connector {
 public:
  // The poll groups outlive the connector.
  NearConnector(shm::ShmPollGroup& shm, tcp::TcpPollGroup& tcp, const Address& to)
      : NearConnector(shm, std::make_unique<tcp::TcpConnector>(tcp, to), to) {}
  // `far` leads to the same address.
  NearConnector(shm::ShmPollGroup& shm, std::unique_ptr<Connector> far, const Address& to)
      : shm_(shm, to), far_(std::move(far)) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return far_->address(); }

 private:
  shm::ShmConnector shm_;
  std::unique_ptr<Connector> far_;
};

}  // namespace cairn::srpc
