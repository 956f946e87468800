#include "srpc/server_process.h"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "base/log.h"
#include "srpc/shm/shm_listener.h"
#include "srpc/tcp/tcp_listener.h"

namespace cairn::srpc {

struct ServerProcess::Group {
  Group(std::unique_ptr<ReactorHost> group_host, const ServerOptions& options)
      : host(std::move(group_host)), server(host->reactor(), host->registry(), host->pool(), options) {}

  // These on the group's thread.
  Task<Result<void>> listen(ReactorPlacement* placement, Address at, bool shared_memory, Tls tls);
  Task<void> hand_over(Duration grace) { co_await server.hand_over(server.loop().now() + grace); }
  Task<void> close(ReactorPlacement* placement, Duration grace);

  uint16_t index() const { return server.options().poll_group; }

  std::unique_ptr<ReactorHost> host;
  Server server;
  std::shared_ptr<void> service;
  std::unique_ptr<tcp::TcpListener> tcp_listener;
  std::unique_ptr<shm::ShmListener> shm_listener;
};

Task<Result<void>> ServerProcess::Group::listen(ReactorPlacement* placement, Address at, bool shared_memory, Tls tls) {
  placement->open(index(), server, host->transports());
  server.set_placement(placement);
  CO_TRY(tcp_listener, tcp::TcpListener::open(host->tcp(), server, at, tls));
  // One for the process: the hello moves connections to the other groups.
  if (index() != 0 || !shared_memory) co_return Result<void>();
  auto opened = shm::ShmListener::open(host->shm(), server, at);
  if (opened) {
    shm_listener = *std::move(opened);
  } else {
    LOG(warn, "srpc: clients of this machine come over TCP: {}", opened.error().to_string());
  }
  co_return Result<void>();
}

Task<void> ServerProcess::Group::close(ReactorPlacement* placement, Duration grace) {
  if (shm_listener) co_await shm_listener->close();
  if (tcp_listener) co_await tcp_listener->close();
  shm_listener.reset();
  tcp_listener.reset();
  placement->close(index());
  co_await server.drain(server.loop().now() + grace);
  service.reset();
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const ServerProcessOptions& options,
                                                            const MakeService& make_service) {
  std::unique_ptr<ServerProcess> self(new ServerProcess());
  TRY(self->open(options, make_service));
  return self;
}

Result<void> ServerProcess::open(const ServerProcessOptions& options, const MakeService& make_service) {
  auto port = HeldPort::take(options.at);
  if (!port) return std::move(port).error().with_context(fmt::format("can't listen on {}", options.at.to_string()));
  port_ = *std::move(port);
  ServerOptions server_options = options.server;
  server_options.poll_groups = options.poll_groups;
  SystemRng rng;
  server_options.server_id = Id128::random(rng);
  std::vector<Reactor*> reactors;
  for (uint16_t i = 0; i < options.poll_groups; ++i) {
    TRY(auto host,
        ReactorHost::create({.index = i, .mode = options.mode, .memory = options.memory, .rdma = options.rdma}));
    server_options.poll_group = i;
    groups_.push_back(std::make_unique<Group>(std::move(host), server_options));
    Group& group = *groups_.back();
    group.service = make_service(group.server, *group.host);
    reactors.push_back(&group.host->reactor());
  }
  placement_ = std::make_unique<ReactorPlacement>(reactors);
  for (auto& group : groups_) group->host->start(fmt::format("srpc-{}", group->index()));
  for (auto& group : groups_) {
    TRY(group->host->run(&Group::listen, group.get(), placement_.get(), address(), options.shared_memory, options.tls));
  }
  return {};
}

ServerProcess::~ServerProcess() { stop({}); }

ReactorHost& ServerProcess::host(size_t poll_group) { return *groups_[poll_group]->host; }

void ServerProcess::drain(size_t poll_group, Duration grace) {
  groups_[poll_group]->host->run(&Group::hand_over, groups_[poll_group].get(), grace);
}

void ServerProcess::stop(Duration grace) {
  // Side by side, and all before the first thread ends: one group may still hand a connection to another.
  std::vector<std::future<void>> closing;
  for (auto& group : groups_) {
    if (group->host->threaded())
      closing.push_back(group->host->begin(&Group::close, group.get(), placement_.get(), grace));
  }
  for (auto& closed : closing) closed.get();
  for (auto& group : groups_) group->host->stop();
}

}  // namespace cairn::srpc
