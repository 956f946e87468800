// Connects channels over TCP.
#pragma once

#include <memory>
#include <string>

#include "reactor/address.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::srpc::tcp {

// The poll group outlives the connector. Name resolution is the caller's: an address is tried as it is.
class TcpConnector final : public Connector {
 public:
  TcpConnector(TcpPollGroup& group, Address to) : group_(group), to_(to), address_(to.to_string()) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return address_; }

 private:
  TcpPollGroup& group_;
  Address to_;
  std::string address_;
};

}  // namespace cairn::srpc::tcp
