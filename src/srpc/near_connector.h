// NearConnector: over shared memory where the server is on this machine and takes it, else over TCP. Decided anew at
// each connect, so a server that moves, or comes back with or without shared memory, is found either way.
#pragma once

#include <memory>
#include <string>

#include "srpc/shm/shm_connector.h"
#include "srpc/tcp/tcp_connector.h"

namespace cairn::srpc {

class NearConnector final : public Connector {
 public:
  // The poll groups outlive the connector.
  NearConnector(shm::ShmPollGroup& shm, tcp::TcpPollGroup& tcp, const Address& to) : shm_(shm, to), tcp_(tcp, to) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return tcp_.address(); }

 private:
  shm::ShmConnector shm_;
  tcp::TcpConnector tcp_;
};

}  // namespace cairn::srpc
