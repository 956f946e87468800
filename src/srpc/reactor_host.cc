#include "srpc/reactor_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/log.h"
#include "srpc/near_connector.h"
#include "srpc/tcp/tls_connector.h"

namespace cairn::srpc {
namespace {

// For replies and what else must not wait for requests.
constexpr size_t kReservePart = 8;

}  // namespace

Result<std::unique_ptr<ReactorHost>> ReactorHost::create(const HostOptions& options) {
  std::unique_ptr<Rng> own_rng = options.rng == nullptr ? std::make_unique<SystemRng>() : nullptr;
  auto registry = std::make_unique<Registry>();
  TRY(auto reactor, Reactor::create({.index = options.index,
                                     .mode = options.mode,
                                     .wake_cost = options.wake_cost,
                                     .rng = options.rng == nullptr ? *own_rng : *options.rng,
                                     .registry = *registry}));
  TRY(auto arena, mem::Arena::create(options.memory, options.sharing));
  return std::unique_ptr<ReactorHost>(
      new ReactorHost(options, std::move(own_rng), std::move(registry), std::move(reactor), std::move(arena)));
}

ReactorHost::ReactorHost(const HostOptions& options, std::unique_ptr<Rng> own_rng, std::unique_ptr<Registry> registry,
                         std::unique_ptr<Reactor> reactor, mem::Arena arena)
    : own_rng_(std::move(own_rng)),
      registry_owner_(std::move(registry)),
      registry_(*registry_owner_),
      worker_(std::move(reactor)),
      arena_(std::move(arena)),
      pool_(worker_.reactor(), registry_, arena_.memory(), options.memory / kReservePart, options.request_bytes),
      mail_(worker_.reactor(), pool_),
      metrics_(registry_),
      tls_(registry_),
      tcp_(std::make_unique<tcp::TcpPollGroup>(worker_.reactor(), pool_)),
      shm_(std::make_unique<shm::ShmPollGroup>(worker_.reactor(), registry_, pool_, arena_)) {
  tcp_->use_tls(tls_);
  if (options.rdma) open_rdma(options);
}

void ReactorHost::open_rdma(const HostOptions& options) {
  const rdma::RdmaOptions& wanted = *options.rdma;
  ASSERT(wanted.verbs != nullptr);
  const std::span<std::byte> memory = arena_.memory();
  rdma::Rails rails = rdma::open_rails(*wanted.verbs, wanted.rails, {&memory, 1}, wanted.roles);
  devices_ = std::move(rails.devices);
  upgrades_ =
      std::make_unique<rdma::Upgrades>(reactor(), registry_, fmt::format("reactor {}", options.index), wanted.upgrades);
  tcp_->allow_upgrades(*upgrades_);
  // Said once for the process: its other reactors find the same.
  for (const std::string& problem : rails.problems) {
    if (options.index != 0 || !wanted.upgrades.expected) continue;
    LOG(warn, "srpc: {}: {}", devices_.empty() ? "TCP instead of RDMA" : "without one rail", problem);
  }
  if (devices_.empty()) return upgrades_->close(fmt::format("{}", fmt::join(rails.problems, "; ")));
  std::vector<rdma::Device*> devices;
  for (const auto& device : devices_) devices.push_back(device.get());
  rdma_ = std::make_unique<rdma::RdmaPollGroup>(reactor(), registry_, pool_, devices, wanted.queues);
  upgrades_->open(*rdma_);
}

ReactorHost::~ReactorHost() {
  stop();
  if (!closed_) run(&ReactorHost::close_transports, this);
}

std::unique_ptr<Connector> ReactorHost::connector(const Address& to, Way way, const KeyRing* tls_keys) {
  if (tls_keys != nullptr && way != Way::shm) {
    auto far = std::make_unique<tcp::TlsConnector>(*tcp_, *tls_keys, to);
    // No RDMA: it would leave the encryption.
    if (way != Way::near) return far;
    return std::make_unique<NearConnector>(*shm_, std::move(far), to);
  }
  switch (way) {
    case Way::near:
      return std::make_unique<NearConnector>(*shm_, *tcp_, to);
    case Way::tcp:
      return std::make_unique<tcp::TcpConnector>(*tcp_, to, tcp::Upgrade::no);
    case Way::rdma:
      return std::make_unique<tcp::TcpConnector>(*tcp_, to);
    case Way::shm:
      return std::make_unique<shm::ShmConnector>(*shm_, to);
  }
  ASSERT(false);
  return nullptr;
}

void ReactorHost::start(const std::string& name) {
  worker_.start(name);
  call([this] { pool_.bind_to_this_thread(); });
}

void ReactorHost::stop() {
  if (!threaded()) return;
  run(&ReactorHost::close_transports, this);
  worker_.stop();
  pool_.bind_to_this_thread();
}

Task<void> ReactorHost::close_transports() {
  closed_ = true;
  co_await tcp_->close();
  if (rdma_) co_await rdma_->close();
  co_await shm_->close();
}

}  // namespace cairn::srpc
