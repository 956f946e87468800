// Cap'n Proto RPC: a server thread and a client thread with an event loop each, TCP on loopback.
#include <capnp/ez-rpc.h>
#include <kj/async.h>

#include <cstdint>
#include <future>
#include <thread>

#include "bench/peers/echo.capnp.h"
#include "peer.h"

namespace {

class EchoServer final : public Echo::Server {
  kj::Promise<void> echo(EchoContext context) override {
    context.getResults().setData(context.getParams().getData());
    return kj::READY_NOW;
  }
};

// Calls one after the other until the time is over.
kj::Promise<void> call_again(Echo::Client& echo, const peer::Plan& plan, kj::ArrayPtr<const kj::byte> payload,
                             peer::Outcome& outcome) {
  const double began = peer::now();
  auto request = echo.echoRequest();
  request.setData(payload);
  return request.send().then([&echo, &plan, payload, &outcome, began](auto&&) -> kj::Promise<void> {
    const double ended = peer::now();
    outcome.latencies_s.push_back(ended - began);
    if (ended - outcome.start >= plan.seconds) return kj::READY_NOW;
    return call_again(echo, plan, payload, outcome);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const peer::Plan plan = peer::plan_of(argc, argv);
  std::promise<unsigned> port;
  std::promise<void> done;
  std::thread server_thread([&] {
    capnp::EzRpcServer server(kj::heap<EchoServer>(), "127.0.0.1", 0);
    auto& scope = server.getWaitScope();
    port.set_value(server.getPort().wait(scope));
    // The loop ends with the process: there is no way into it from another thread that costs the calls nothing.
    kj::NEVER_DONE.wait(scope);
  });
  capnp::EzRpcClient client("127.0.0.1", port.get_future().get());
  auto echo = client.getMain<Echo>();
  const std::vector<kj::byte> payload(plan.size);
  peer::Outcome outcome;
  kj::Vector<kj::Promise<void>> calls;
  for (size_t i = 0; i < plan.depth; ++i) {
    calls.add(call_again(echo, plan, kj::arrayPtr(payload.data(), payload.size()), outcome));
  }
  kj::joinPromises(calls.releaseAsArray()).wait(client.getWaitScope());
  outcome.print();
  std::fflush(stdout);
  std::_Exit(0);
}
