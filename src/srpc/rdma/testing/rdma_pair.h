// For tests: a client and a server with a fake device each, on one reactor, and streams between them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "srpc/rdma/rdma_poll_group.h"
#include "srpc/rdma/testing/fake_verbs.h"
#include "srpc/testing/host.h"

namespace cairn::srpc::rdma::testing {

// Reads what comes and writes what it is told to, as far as it goes.
class Talker final : public stream::StreamEvents {
 public:
  explicit Talker(std::unique_ptr<RdmaStream> s) : stream(std::move(s)) {}
  void start() { stream->start(*this); }

  void say(std::span<const std::byte> bytes) {
    to_send.insert(to_send.end(), bytes.begin(), bytes.end());
    on_sendable();
  }
  void say(std::string_view text) { say(std::as_bytes(std::span(text))); }
  std::string text() const { return {reinterpret_cast<const char*>(heard.data()), heard.size()}; }

  void on_receivable() override {
    while (stream != nullptr && !ended && !failed) {
      std::array<std::byte, 1000> bytes;
      std::array<iovec, 2> vectors = {iovec{bytes.data(), 300}, iovec{bytes.data() + 300, 700}};
      const stream::Moved moved = stream->receive(vectors);
      if (moved.how == stream::Moved::How::would_block) return;
      if (moved.how == stream::Moved::How::end) ended = true;
      if (moved.how == stream::Moved::How::failed) failed = moved.error;
      if (moved.how == stream::Moved::How::some)
        heard.insert(heard.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(moved.bytes));
    }
  }
  void on_sendable() override {
    while (stream != nullptr && !to_send.empty() && !send_failed) {
      std::array<iovec, 2> vectors;
      const size_t half = to_send.size() / 2;
      vectors[0] = {to_send.data(), to_send.size() - half};
      vectors[1] = {to_send.data() + to_send.size() - half, half};
      const stream::Moved moved = stream->send(vectors);
      if (moved.how == stream::Moved::How::would_block) return;
      if (moved.how == stream::Moved::How::failed) send_failed = moved.error;
      if (moved.how == stream::Moved::How::some) {
        to_send.erase(to_send.begin(), to_send.begin() + static_cast<ptrdiff_t>(moved.bytes));
      }
    }
  }
  void on_flush() override { on_sendable(); }

  std::unique_ptr<RdmaStream> stream;
  std::vector<std::byte> to_send;
  std::vector<std::byte> heard;
  bool ended = false;
  std::optional<std::string> failed;
  std::optional<std::string> send_failed;
};

struct RdmaSide {
  RdmaSide(FakeFabric& fabric, srpc::testing::Host& on, Role r, FakeDeviceSpec spec)
      : role(r), host(on), verbs(fabric.add_host()) {
    devices.push_back(&verbs.add_device(std::move(spec)));
  }
  // Rails are opened at the first call.
  Result<void> open(QueueOptions options = {}) {
    const std::span<std::byte> memory = host.pool.memory();
    rails = open_rails(verbs, {}, {&memory, 1}, {.client = role == Role::client, .server = role == Role::server});
    if (!rails.problems.empty()) return Error(Errc::unavailable, rails.problems.front());
    make_group(options);
    return {};
  }
  void make_group(QueueOptions options = {}) {
    std::vector<Device*> all;
    for (auto& device : rails.devices) all.push_back(device.get());
    used = true;
    group = std::make_unique<RdmaPollGroup>(*host.reactor, registry, host.pool, all, options);
  }
  void close() {
    if (group != nullptr) host.run(+[](RdmaPollGroup* it) -> Task<void> { co_await it->close(); }, group.get());
    group.reset();
    rails.devices.clear();
  }
  uint64_t metric(const std::string& name) const {
    const std::string text = "\n" + Registry::expose({{&registry, ""}});
    const size_t at = text.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size() + 2));
  }

  Role role;
  srpc::testing::Host& host;
  FakeHost& verbs;
  std::vector<FakeDevice*> devices;
  Registry registry;
  Rails rails;
  std::unique_ptr<RdmaPollGroup> group;
  bool used = false;
};

class RdmaPair : public ::testing::Test {
 protected:
  explicit RdmaPair(Mode mode = Mode::automatic)
      : host(0, mode, size_t{16} << 20),
        client(fabric, host, Role::client, {.name = "fake0", .address = "10.0.0.1"}),
        server(fabric, host, Role::server, {.name = "fake0", .address = "10.0.0.2"}) {}

  void TearDown() override {
    talkers.clear();
    client.close();
    server.close();
    for (const std::string& what : fabric.violations()) ADD_FAILURE() << what;
    EXPECT_EQ(client.verbs.objects().total(), 0);
    EXPECT_EQ(server.verbs.objects().total(), 0);
    for (RdmaSide* side : {&client, &server}) {
      if (!side->used) continue;
      EXPECT_EQ(side->metric("srpc_rdma_queue_pairs"), 0U);
      EXPECT_EQ(side->metric("srpc_rdma_memory_regions"), 0U);
      EXPECT_EQ(side->metric("srpc_rdma_registered_bytes"), 0U);
    }
  }

  void open(QueueOptions options = {}) {
    for (RdmaSide* side : {&client, &server}) {
      const auto opened = side->open(options);
      ASSERT_TRUE(opened) << opened.error().to_string();
    }
  }
  struct Connected {
    Talker* client = nullptr;
    Talker* server = nullptr;
  };
  // As the two sides do it. The error says which of them.
  Result<Connected> try_connect() {
    return host.call([this]() -> Result<Connected> {
      TRY(auto ours, client.group->prepare(Role::client));
      TRY(auto theirs, server.group->prepare(Role::server));
      TRY(auto server_stream, theirs->connect(ours->local(), "the client"));
      TRY(auto client_stream, ours->connect(theirs->local(), "the server"));
      return Connected{add(std::move(client_stream)), add(std::move(server_stream))};
    });
  }
  Connected connect() {
    auto connected = try_connect();
    EXPECT_TRUE(connected) << connected.error().to_string();
    return *connected;
  }
  Talker* add(std::unique_ptr<RdmaStream> stream) {
    talkers.push_back(std::make_unique<Talker>(std::move(stream)));
    talkers.back()->start();
    return talkers.back().get();
  }
  // Runs the reactor until it holds; false: it doesn't for a long time.
  bool until(std::function<bool()> condition) {
    return host.run(
        +[](Reactor* reactor, std::function<bool()> holds) -> Task<bool> {
          const Time end = reactor->now() + seconds(20);
          while (!holds()) {
            if (reactor->now() > end) co_return false;
            (void)co_await reactor->sleep(microseconds(20));
          }
          co_return true;
        },
        host.reactor, std::move(condition));
  }
  // Rounds enough for everything that isn't held up.
  void settle() {
    host.run(
        +[](Reactor* reactor) -> Task<void> {
          for (int i = 0; i < 50; ++i) co_await reactor->yield();
        },
        host.reactor);
  }
  template <typename Function>
  auto call(Function function) {
    return host.call(std::move(function));
  }
  mem::BufChain memory(size_t bytes, unsigned char seed) {
    mem::BufChain chain;
    for (size_t left = bytes; left > 0;) {
      auto buf = host.pool.try_alloc(std::min(left, mem::kMaxBlock));
      EXPECT_TRUE(buf);
      for (std::byte& byte : buf->writable_bytes()) byte = std::byte{seed++};
      left -= buf->size();
      chain.append(*std::move(buf));
    }
    return chain;
  }

  FakeFabric fabric;
  srpc::testing::Host host;
  RdmaSide client;
  RdmaSide server;
  std::vector<std::unique_ptr<Talker>> talkers;
};

}  // namespace cairn::srpc::rdma::testing
