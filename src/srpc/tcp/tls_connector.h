// Connects channels over TCP with TLS. A connection that doesn't come about so doesn't come about at all: there is no
// way back to plain TCP.
#pragma once

#include <memory>
#include <string>

#include "reactor/address.h"
#include "srpc/key_ring.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::srpc::tcp {

// Poll group and keys outlive the connector and its connections; the poll group has a TlsContext. The keys are those of
// the channel: TLS proves its first one, and the channel proves it once more inside.
class TlsConnector final : public Connector {
 public:
  TlsConnector(TcpPollGroup& group, const KeyRing& keys, Address to)
      : group_(group), keys_(keys), to_(to), address_(to.to_string()) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) override;
  const std::string& address() const override { return address_; }

 private:
  TcpPollGroup& group_;
  const KeyRing& keys_;
  Address to_;
  std::string address_;
};

}  // namespace cairn::srpc::tcp
