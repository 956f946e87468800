// For tests that shall hold over all transports: a server and channels to it, on one thread or on two.
//
//   class Srpc : public AnyTransport {};
//   INSTANTIATE_TEST_SUITE_P(Transports, Srpc, kAllCarriers, &name_of);
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reactor/scope.h"
#include "srpc/channel.h"
#include "srpc/inproc/hub.h"
#include "srpc/rdma/testing/fake_verbs.h"
#include "srpc/server.h"
#include "srpc/shm/shm_connector.h"
#include "srpc/shm/shm_listener.h"
#include "srpc/tcp/tcp_connector.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/tcp/tls_connector.h"
#include "srpc/testing/host.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/methods.h"

namespace cairn::srpc::testing {

enum class Carrier {
  inproc,
  inproc_two_threads,
  tcp_one_thread,
  tcp_two_threads,
  shm_one_thread,
  shm_two_threads,
  tls_one_thread,
  tls_two_threads,
  rdma_one_thread,
  rdma_two_threads,
};

inline std::string name_of(const ::testing::TestParamInfo<Carrier>& info) {
  switch (info.param) {
    case Carrier::inproc:
      return "inproc";
    case Carrier::inproc_two_threads:
      return "inproc_two_threads";
    case Carrier::tcp_one_thread:
      return "tcp_one_thread";
    case Carrier::tcp_two_threads:
      return "tcp_two_threads";
    case Carrier::shm_one_thread:
      return "shm_one_thread";
    case Carrier::shm_two_threads:
      return "shm_two_threads";
    case Carrier::tls_one_thread:
      return "tls_one_thread";
    case Carrier::tls_two_threads:
      return "tls_two_threads";
    case Carrier::rdma_one_thread:
      return "rdma_one_thread";
    case Carrier::rdma_two_threads:
      return "rdma_two_threads";
  }
  return "";
}

class AnyTransport : public ::testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override { start({}); }

  void start(ServerOptions options, uint32_t max_hang = 2000) {
    client = make_host(0);
    if (two_threads()) other = make_host(1);
    host = other ? other.get() : client.get();
    options = with_keys(options);
    server = std::make_unique<Server>(*host->reactor, host->registry, host->pool, options);
    methods = std::make_unique<Methods>(*server, max_hang);
    if (in_process()) {
      hub = std::make_unique<inproc::Hub>(std::vector<Reactor*>{host->reactor});
      scope = std::make_unique<Scope>(*client->reactor);
      server_scope = std::make_unique<Scope>(*host->reactor);
      hub->open(0, *server, host->pool, *server_scope);
    } else if (over_shm()) {
      // Of this test alone: other processes of the machine may run it, too.
      address = *Address::parse("127.0.0.1", static_cast<uint16_t>(1 + getpid() % 65535));
      auto opened = shm::ShmListener::open(*host->shm, *server, address);
      ASSERT_TRUE(opened) << opened.error().to_string();
      shm_listener = std::move(*opened);
    } else {
      auto opened =
          tcp::TcpListener::open(*host->tcp, *server, Address::loopback(0), over_tls() ? Tls::required : Tls::off);
      ASSERT_TRUE(opened) << opened.error().to_string();
      listener = std::move(*opened);
      address = Address::loopback(listener->port());
    }
    if (other) {
      other->start_thread();
      client->start_thread();
    }
  }

  std::unique_ptr<Host> make_host(uint32_t index) {
    if (!over_rdma()) return std::make_unique<Host>(index);
    rdma::testing::FakeHost& verbs = fabric.add_host();
    verbs.add_device({.address = index == 0 ? "10.0.0.1" : "10.0.0.2"});
    return std::make_unique<Host>(index, Mode::automatic, size_t{48} << 20, 0, rdma::RdmaOptions{.verbs = &verbs});
  }

  void TearDown() override {
    for (auto& channel : channels) close(*channel);
    channels.clear();
    stop_server();
    scope.reset();
    server_scope.reset();
    hub.reset();
    other.reset();
    client.reset();  // asserts that all memory is back
    EXPECT_EQ(fabric.violations(), std::vector<std::string>());
  }

  void stop_server() {
    if (!server) return;
    host->run(&stop, this);
    host->call([this] {
      listener.reset();
      shm_listener.reset();
      server.reset();
      methods.reset();
      return 0;
    });
  }
  static Task<void> stop(AnyTransport* self) {
    if (self->listener) co_await self->listener->close();
    if (self->shm_listener) co_await self->shm_listener->close();
    if (self->hub) self->hub->close(0);
    co_await self->server->drain(self->host->reactor->now() + milliseconds(200));
  }
  static Task<void> close_channel(Channel* channel) { co_await channel->close(); }

  std::unique_ptr<Connector> connector(const KeyRing* keys = nullptr) {
    if (in_process()) return hub->connector({*client->reactor, client->pool, *scope}, 0);
    if (over_shm()) return std::make_unique<shm::ShmConnector>(*client->shm, address);
    if (over_tls())
      return std::make_unique<tcp::TlsConnector>(*client->tcp, keys == nullptr ? own_keys : *keys, address);
    return std::make_unique<tcp::TcpConnector>(*client->tcp, address);
  }
  // TLS goes by keys: there those who name none have one that the two sides share.
  template <typename Options>
  Options with_keys(Options options = {}) {
    if (over_tls() && options.keys == nullptr) options.keys = &own_keys;
    return options;
  }
  Channel& make_channel(ChannelOptions options = {}) {
    options = with_keys(options);
    Channel& channel = client->call([&]() -> std::reference_wrapper<Channel> {
      channels.push_back(
          std::make_unique<Channel>(*client->reactor, client->metrics, connector(options.keys), options));
      return *channels.back();
    });
    if (over_rdma()) client->run(&go_over, &channel);
    return channel;
  }
  // RDMA begins as TCP. What happens while it changes is upgrade_test's.
  static Task<void> go_over(Channel* channel) {
    while (co_await channel->wait_attempt() && channel->transport() != "rdma") {
      (void)co_await channel->loop().sleep(microseconds(100), {});
    }
  }
  void close(Channel& channel) { client->run(&close_channel, &channel); }

  static bool in_process() { return GetParam() == Carrier::inproc || GetParam() == Carrier::inproc_two_threads; }
  static bool over_shm() { return GetParam() == Carrier::shm_one_thread || GetParam() == Carrier::shm_two_threads; }
  static bool over_rdma() { return GetParam() == Carrier::rdma_one_thread || GetParam() == Carrier::rdma_two_threads; }
  static bool two_threads() {
    return GetParam() == Carrier::inproc_two_threads || GetParam() == Carrier::tcp_two_threads ||
           GetParam() == Carrier::shm_two_threads || GetParam() == Carrier::tls_two_threads ||
           GetParam() == Carrier::rdma_two_threads;
  }
  static bool over_tls() { return GetParam() == Carrier::tls_one_thread || GetParam() == Carrier::tls_two_threads; }
  uint64_t copied() { return client->pool.copied().value() + (other ? other->pool.copied().value() : 0); }

  const KeyRing own_keys{{key_of(200)}};
  rdma::testing::FakeFabric fabric;
  std::unique_ptr<Host> client;
  std::unique_ptr<Host> other;
  Host* host = nullptr;  // the server's
  std::unique_ptr<Server> server;
  std::unique_ptr<Methods> methods;
  std::unique_ptr<tcp::TcpListener> listener;
  std::unique_ptr<shm::ShmListener> shm_listener;
  Address address;
  std::unique_ptr<inproc::Hub> hub;
  std::unique_ptr<Scope> scope;         // on the client's reactor
  std::unique_ptr<Scope> server_scope;  // on the server's
  std::vector<std::unique_ptr<Channel>> channels;
};

inline const auto kAllCarriers =
    ::testing::Values(Carrier::inproc, Carrier::inproc_two_threads, Carrier::tcp_one_thread, Carrier::tcp_two_threads,
                      Carrier::shm_one_thread, Carrier::shm_two_threads, Carrier::tls_one_thread,
                      Carrier::tls_two_threads, Carrier::rdma_one_thread, Carrier::rdma_two_threads);

}  // namespace cairn::srpc::testing
