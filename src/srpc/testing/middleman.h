// For tests: a server and a channel on one thread whose time is simulated, and somebody between them who sees every
// message whole and may send what he likes in its place.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "mem/pool.h"
#include "reactor/scope.h"
#include "srpc/channel.h"
#include "srpc/posted.h"
#include "srpc/server.h"
#include "srpc/stream/stream_endpoint.h"
#include "srpc/testing/manual_loop.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc::testing {

enum class From : uint8_t { client, server };

struct Passing {
  From from;
  Header header;
  Bytes metadata;
  Bytes bytes;  // all of it, as it is on the wire

  // The same with another body, its checksums right.
  Bytes with(std::span<const std::byte> body) const { return encode_message(header, body); }
};
// What goes on to the other side. Without one, everything.
using Middleman = std::function<Bytes(const Passing&)>;

// A connection: what one end sends is what the other one receives, once the middleman has seen it.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  Wire(Loop& loop, Middleman middleman) : loop_(loop), middleman_(std::move(middleman)) {}
  std::unique_ptr<stream::ByteStream> end(From side) { return std::make_unique<End>(shared_from_this(), side); }

 private:
  class End final : public stream::ByteStream {
   public:
    End(std::shared_ptr<Wire> wire, From side)
        : wire_(std::move(wire)),
          side_(side),
          flush_(wire_->loop_, &on_flush, this),
          more_(wire_->loop_, &on_more, this) {
      wire_->ends_[static_cast<size_t>(side)] = this;
    }
    ~End() override {
      wire_->ends_[static_cast<size_t>(side_)] = nullptr;
      shutdown_send();
    }
    void start(stream::StreamEvents& events) override {
      events_ = &events;
      more_.post();
    }
    stream::Moved receive(std::span<iovec> vectors) override {
      if (inbox_.empty()) return {ended_ ? stream::Moved::How::end : stream::Moved::How::would_block};
      const size_t n = std::min(vectors[0].iov_len, inbox_.size());
      std::memcpy(vectors[0].iov_base, inbox_.data(), n);
      inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<ptrdiff_t>(n));
      return {stream::Moved::How::some, n, {}, true};
    }
    stream::Moved send(std::span<iovec> vectors) override {
      size_t sent = 0;
      for (const iovec& piece : vectors) {
        const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
        outbox_.insert(outbox_.end(), bytes, bytes + piece.iov_len);
        sent += piece.iov_len;
      }
      pass_on();
      return {stream::Moved::How::some, sent};
    }
    void set_receiving(bool wanted) override {
      receiving_ = wanted;
      if (wanted) more_.post();
    }
    void want_flush() override { flush_.post(); }
    void shutdown_send() override {
      if (End* other = this->other()) other->arrive({}, true);
    }
    const std::string& peer() const override { return peer_; }

   private:
    End* other() const { return wire_->ends_[1 - static_cast<size_t>(side_)]; }
    void pass_on() {
      while (outbox_.size() >= kHeaderBytes) {
        const auto header = decode_header(std::span<const std::byte, kHeaderBytes>(outbox_.data(), kHeaderBytes), 255);
        ASSERT(header.has_value());
        if (outbox_.size() < header->message_bytes()) return;
        const auto end = outbox_.begin() + static_cast<ptrdiff_t>(header->message_bytes());
        const auto metadata = outbox_.begin() + kHeaderBytes;
        const Passing passing{side_, *header, Bytes(metadata, metadata + header->metadata_bytes),
                              Bytes(outbox_.begin(), end)};
        outbox_.erase(outbox_.begin(), end);
        const Bytes bytes = wire_->middleman_ ? wire_->middleman_(passing) : passing.bytes;
        if (other() != nullptr) other()->arrive(bytes, false);
      }
    }
    void arrive(const Bytes& bytes, bool end) {
      inbox_.insert(inbox_.end(), bytes.begin(), bytes.end());
      ended_ = ended_ || end;
      more_.post();
    }
    static void on_flush(void* self) { static_cast<End*>(self)->events_->on_flush(); }
    static void on_more(void* self) {
      auto& end = *static_cast<End*>(self);
      if (end.receiving_ && end.events_ != nullptr) end.events_->on_receivable();
    }

    std::shared_ptr<Wire> wire_;
    const From side_;
    stream::StreamEvents* events_ = nullptr;
    Bytes inbox_;
    Bytes outbox_;  // less than a message
    bool ended_ = false;
    bool receiving_ = true;
    std::string peer_ = "wire";
    Posted flush_;
    Posted more_;
  };

  Loop& loop_;
  Middleman middleman_;
  std::array<End*, 2> ends_{};
};

// One server, its methods, and as many channels to it as wanted.
class Bench {
 public:
  // `seed` of all nonces.
  explicit Bench(ServerOptions options = {}, Middleman between = {}, uint64_t seed = 1)
      : loop(seed),
        middleman(std::move(between)),
        scope(loop),
        storage(new std::byte[kMemory + mem::kPage]),
        pool(loop, registry, aligned(storage.get()), 0),
        metrics(registry),
        server(loop, registry, pool, options),
        methods(server) {}
  ~Bench() {
    for (auto& channel : channels) loop.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, channel.get());
    channels.clear();
    loop.run(+[](Server* s) -> Task<void> { co_await s->drain(s->loop().now()); }, &server);
    loop.run(+[](Scope* s) -> Task<void> { co_await s->close(); }, &scope);
    loop.run_for(seconds(1));
    ASSERT(pool.free_bytes() == pool.total_bytes());
  }

  std::unique_ptr<Endpoint> accept() {
    auto wire = std::make_shared<Wire>(loop, middleman);
    const stream::StreamEndpoint::Context context{.loop = loop, .pool = pool, .scope = scope};
    server.accept(std::make_unique<stream::StreamEndpoint>(context, wire->end(From::server)));
    return std::make_unique<stream::StreamEndpoint>(context, wire->end(From::client));
  }
  // `once`: one attempt in the time that a test gives it.
  Channel& make_channel(ChannelOptions options = {}, bool once = true) {
    if (once) options.backoff_min = options.backoff_max = seconds(3600);
    channels.push_back(std::make_unique<Channel>(loop, metrics, std::make_unique<WireConnector>(*this), options));
    return *channels.back();
  }
  Result<Message<EchoBody>> echo(Channel& channel) {
    return loop.run(
        +[](Channel* c) -> Task<Result<Message<EchoBody>>> {
          co_return co_await c->call<Echo>({.meta = {1, 0}}, {.deadline = c->loop().now() + seconds(60)});
        },
        &channel);
  }
  bool connects(ChannelOptions options) { return echo(make_channel(options)).has_value(); }
  uint64_t closed_by_server(CloseReason reason) {
    return registry
        .counter("srpc_server_connections_closed_total", "",
                 "reason=\"" + std::string(close_reason_name(reason)) + "\"")
        .value();
  }
  uint64_t closed_by_client(CloseReason reason) const { return metrics.closed[static_cast<size_t>(reason)]->value(); }

  ManualLoop loop;
  Middleman middleman;  // of connections from now on
  Registry registry;
  Scope scope;
  const std::unique_ptr<std::byte[]> storage;
  mem::Pool pool;
  ChannelMetrics metrics;
  Server server;
  Methods methods;
  std::vector<std::unique_ptr<Channel>> channels;

 private:
  static constexpr size_t kMemory = size_t{2} << 20;
  static std::span<std::byte> aligned(std::byte* address) {
    const auto at = (reinterpret_cast<uintptr_t>(address) + mem::kPage - 1) / mem::kPage * mem::kPage;
    return {reinterpret_cast<std::byte*>(at), kMemory};
  }
  struct WireConnector final : Connector {
    explicit WireConnector(Bench& b) : bench(b) {}
    Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken) override { co_return bench.accept(); }
    const std::string& address() const override { return name; }
    Bench& bench;
    std::string name = "wire";
  };
};

}  // namespace cairn::srpc::testing
