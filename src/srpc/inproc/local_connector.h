// Connects channels to a server on the same loop.
#pragma once

#include <memory>
#include <string>

#include "srpc/inproc/local_endpoint.h"
#include "srpc/server.h"

namespace cairn::srpc::inproc {

// The server outlives the connector.
class LocalConnector final : public Connector {
 public:
  explicit LocalConnector(Server& server)
      : server_(server), address_("inproc:" + std::to_string(server.options().poll_group)) {}

  Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken) override {
    auto [ours, theirs] = LocalEndpoint::make_pair(server_.loop(), address_);
    server_.accept(std::move(theirs));
    co_return std::unique_ptr<Endpoint>(std::move(ours));
  }
  const std::string& address() const override { return address_; }

 private:
  Server& server_;
  std::string address_;
};

}  // namespace cairn::srpc::inproc
