#include "srpc/reactor_host.h"

#include "base/assert.h"
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
}

ReactorHost::~ReactorHost() {
  stop();
  if (!closed_) run(&ReactorHost::close_transports, this);
}

std::unique_ptr<Connector> ReactorHost::connector(const Address& to, Way way, const KeyRing* tls_keys) {
  if (tls_keys != nullptr && way != Way::shm) {
    auto far = std::make_unique<tcp::TlsConnector>(*tcp_, *tls_keys, to);
    if (way == Way::tcp) return far;
    return std::make_unique<NearConnector>(*shm_, std::move(far), to);
  }
  switch (way) {
    case Way::near:
      return std::make_unique<NearConnector>(*shm_, *tcp_, to);
    case Way::tcp:
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
  co_await shm_->close();
}

}  // namespace cairn::srpc
