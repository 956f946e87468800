// Connects channels over TCP.
#pragma once

#include <memory>
#include <string>

#include "reactor/address.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::srpc::tcp {

// Whether connections go over to RDMA where the poll group and the server can.
enum class Upgrade : uint8_t { no, if_possible };

// The poll group outlives the connector. Name resolution is the caller's: an address is tried as it is.
class TcpConnector final : public Connector {
 public:
  TcpConnector(TcpPollGroup& group, Address to, Upgrade upgrade = Upgrade::if_possible);

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return address_; }

 private:
  TcpPollGroup& group_;
  Address to_;
  std::string address_;
  std::shared_ptr<rdma::UpgradeHistory> history_;  // null: no upgrades
};

}  // namespace cairn::srpc::tcp
