// gRPC: the callback API on both sides, bytes without protobuf, TCP on loopback.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "peer.h"

namespace {

class EchoReactor final : public grpc::ServerGenericBidiReactor {
 public:
  EchoReactor() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      StartWriteAndFinish(&message_, {}, grpc::Status::OK);
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class EchoService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new EchoReactor;
  }
};

struct Client {
  explicit Client(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}

  // One call, and at its end the next.
  void call() {
    struct Call {
      grpc::ClientContext context;
      grpc::ByteBuffer reply;
      double began = peer::now();
    };
    auto* one = new Call;
    stub.UnaryCall(&one->context, "/echo/Echo", {}, &request, &one->reply, [this, one](const grpc::Status& status) {
      const double ended = peer::now();
      bool again = status.ok() && ended - outcome.start < plan.seconds;
      if (status.ok()) {
        const std::lock_guard guard(lock);
        outcome.latencies_s.push_back(ended - one->began);
      }
      delete one;
      if (again) {
        call();
      } else {
        --running;
      }
    });
  }

  grpc::GenericStub stub;
  peer::Plan plan;
  grpc::ByteBuffer request;
  peer::Outcome outcome;
  std::mutex lock;
  std::atomic<size_t> running{0};
};

}  // namespace

int main(int argc, char** argv) {
  const peer::Plan plan = peer::plan_of(argc, argv);
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  Client client(
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
  client.plan = plan;
  const grpc::Slice slice(std::string(plan.size, 'x'));
  client.request = grpc::ByteBuffer(&slice, 1);
  client.running = plan.depth;
  for (size_t i = 0; i < plan.depth; ++i) client.call();
  while (client.running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  client.outcome.print();
  server->Shutdown();
  return 0;
}
