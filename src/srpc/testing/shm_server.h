// For tests of shared memory: a server on a thread of its own that listens for it and for TCP, and a client by hand.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "srpc/server.h"
#include "srpc/shm/byte_ring.h"
#include "srpc/shm/rendezvous.h"
#include "srpc/shm/shm_listener.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc::shm {

using namespace srpc::testing;

inline iovec vector_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

class ShmServer : public ::testing::Test {
 protected:
  void start(Mode mode = Mode::automatic, ServerOptions options = {}) {
    host = std::make_unique<Host>(0, mode);
    server = std::make_unique<Server>(*host->reactor, host->registry, host->pool, options);
    methods = std::make_unique<Methods>(*server);
    tcp_listener = std::move(*tcp::TcpListener::open(*host->tcp, *server, Address::loopback(0)));
    address = Address::loopback(tcp_listener->port());
    auto opened = ShmListener::open(*host->shm, *server, address);
    ASSERT_TRUE(opened) << opened.error().to_string();
    listener = std::move(*opened);
    host->start_thread();
  }
  void TearDown() override {
    if (!host) return;
    host->run(&stop, this);
    host->call([this] {
      listener.reset();
      tcp_listener.reset();
      server.reset();
      return 0;
    });
    host.reset();  // asserts that all memory is back
  }
  static Task<void> stop(ShmServer* self) {
    co_await self->listener->close();
    co_await self->tcp_listener->close();
    co_await self->server->drain(self->host->reactor->now() + milliseconds(100));
  }
  template <typename Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 10'000; ++i) {
      if (host->call(condition)) return true;
      ::usleep(1000);
    }
    return false;
  }
  bool all_gone() {
    return eventually([&] { return server->connections() == 0 && server->calls_running() == 0; });
  }
  uint64_t metric(std::string_view series) {
    return host->call([&] {
      const std::string text = Registry::expose({{&host->registry, ""}});
      const std::string name = "\n" + std::string(series) + " ";
      const size_t at = text.find(name);
      return at == std::string::npos ? uint64_t{0} : std::stoull(text.substr(at + name.size()));
    });
  }
  uint64_t closed_for(std::string_view reason) {
    return metric("srpc_server_connections_closed_total{reason=\"" + std::string(reason) + "\"}");
  }

  // A client that speaks by hand.
  struct Raw {
    Fd socket;
    Segment segment;
    std::unique_ptr<RingProducer> out;
    void write(const Bytes& bytes) {
      const iovec vector = vector_of(bytes);
      out->write({&vector, 1}, *out->room());
      if (out->must_ring()) (void)::send(socket.get(), "!", 1, MSG_NOSIGNAL);
    }
  };
  // With `memory`, which is the memfd of an arena, it shares that.
  Raw connect_raw(const Fd& memory = {}) {
    Host client(7, Mode::economy, size_t{4} << 20);
    Raw raw;
    client.run(
        +[](Host* host, Address to, const Fd* memory, Raw* into) -> Task<void> {
          auto socket = connect_to(meeting_name(to));
          EXPECT_TRUE(socket);
          auto met = co_await introduce(*host->reactor, *std::move(socket), *memory, 65536, {});
          EXPECT_TRUE(met);
          EXPECT_EQ(met->shares_memory, static_cast<bool>(*memory));
          into->socket = std::move(met->socket);
          into->segment = std::move(met->segment);
        },
        &client, address, &memory, &raw);
    raw.out = std::make_unique<RingProducer>(raw.segment.control(0), raw.segment.bytes(0));
    return raw;
  }

  std::unique_ptr<Host> host;
  std::unique_ptr<Server> server;
  std::unique_ptr<Methods> methods;
  std::unique_ptr<tcp::TcpListener> tcp_listener;
  std::unique_ptr<ShmListener> listener;
  Address address;
};

}  // namespace cairn::srpc::shm
