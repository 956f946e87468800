// Echo: the smallest whole program over SRPC.
//
//   echo serve [HOST:PORT]          a server; Ctrl-C stops it
//   echo say TEXT [HOST:PORT]       a client
#include <srpc/channel.h>
#include <srpc/reactor_host.h>
#include <srpc/server_process.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <reactor/stop_signals.h>

using namespace cairn;

// A method is a type that both sides include. Request and reply are structs of fixed layout, whose bytes travel as they
// are; what varies in length, such as this text, goes into the message's tail.
struct EchoCount {
  Le32 times;
};
struct Echo {
  static constexpr srpc::MethodId kId{1};
  static constexpr std::string_view kName = "echo";
  using Request = EchoCount;
  using Reply = EchoCount;
};

// A handler is a coroutine. It runs on its poll group's thread, for many calls at a time, and needs no locks.
Task<Result<srpc::Message<EchoCount>>> answer(srpc::CallContext&, srpc::Message<EchoCount> request) {
  if (request.tail.empty()) co_return Error(Errc::invalid_argument, "nothing to say");
  srpc::Message<EchoCount> reply;
  reply.meta = request.meta;
  for (uint32_t i = 0; i < request.meta.times; ++i) reply.tail += request.tail;
  co_return reply;
}

int serve(const Address& at) {
  StopSignals signals;  // before there are threads
  auto process = srpc::ServerProcess::start({.at = at}, [](srpc::Server& server, srpc::ReactorHost&) {
    server.register_method<Echo>(&answer, {.max_tail = 1000});
    return nullptr;  // no state to keep
  });
  if (!process) {
    std::fprintf(stderr, "echo: %s\n", process.error().to_string().c_str());
    return 1;
  }
  std::printf("serving at %s\n", (*process)->address().to_string().c_str());
  std::fflush(stdout);
  signals.wait();
  (*process)->stop(seconds(5));
  return 0;
}

// The client's side: a coroutine, too.
Task<Result<std::string>> say(srpc::ReactorHost* host, Address to, std::string text) {
  srpc::Channel channel(host->reactor(), host->metrics(), host->connector(to));
  auto reply = co_await channel.call<Echo>({.meta = {2}, .tail = std::move(text)},
                                           {.deadline = host->reactor().now() + seconds(2)});
  co_await channel.close();  // always, before it goes
  if (!reply) co_return std::move(reply).error();
  co_return std::move(reply->tail);
}

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const bool client = what == "say" && argc > 2;
  const int where = client ? 3 : 2;
  const auto address = Address::parse(argc > where ? argv[where] : "127.0.0.1:7420");
  if (!address || (what != "serve" && !client)) {
    std::fprintf(stderr, "usage: echo serve [HOST:PORT] | echo say TEXT [HOST:PORT]\n");
    return 2;
  }
  if (what == "serve") return serve(*address);

  auto host = srpc::ReactorHost::create();
  if (!host) {
    std::fprintf(stderr, "echo: %s\n", host.error().to_string().c_str());
    return 1;
  }
  const auto said = (*host)->run(&say, host->get(), *address, std::string(argv[2]));
  if (!said) {
    std::fprintf(stderr, "echo: %s\n", said.error().to_string().c_str());
    return 1;
  }
  std::printf("%s\n", said->c_str());
  return 0;
}
