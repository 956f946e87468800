// A client that sends any sequence of well-formed messages: hellos, requests with any metadata, cancels, all in any
// order. The server answers or closes; nothing leaks. A server with a key, whose challenge the client doesn't even
// read, executes nothing.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "mem/pool.h"
#include "srpc/server.h"
#include "srpc/stream/stream_endpoint.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/manual_loop.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace {

using namespace cairn;
using namespace cairn::srpc;
using namespace cairn::srpc::testing;

constexpr size_t kMemory = size_t{2} << 20;

// Gives the script to the server, in pieces, and swallows what it answers.
class Script final : public stream::ByteStream {
 public:
  Script(Loop& loop, Bytes bytes)
      : bytes_(std::move(bytes)), flush_(loop, &on_flush, this), more_(loop, &on_more, this) {}
  void start(stream::StreamEvents& events) override {
    events_ = &events;
    more_.post();
  }
  stream::Moved receive(std::span<iovec> vectors) override {
    if (at_ == bytes_.size()) return {stream::Moved::How::end};
    const size_t n = std::min({vectors[0].iov_len, bytes_.size() - at_, size_t{700}});
    std::memcpy(vectors[0].iov_base, &bytes_[at_], n);
    at_ += n;
    more_.post();
    return {stream::Moved::How::some, n, {}, true};
  }
  stream::Moved send(std::span<iovec> vectors) override { return {stream::Moved::How::some, vectors[0].iov_len}; }
  void set_receiving(bool wanted) override {
    receiving_ = wanted;
    if (wanted) more_.post();
  }
  void want_flush() override { flush_.post(); }
  void shutdown_send() override {}
  const std::string& peer() const override { return peer_; }

 private:
  static void on_flush(void* self) { static_cast<Script*>(self)->events_->on_flush(); }
  static void on_more(void* self) {
    auto& script = *static_cast<Script*>(self);
    if (script.receiving_) script.events_->on_receivable();
  }

  Bytes bytes_;
  size_t at_ = 0;
  bool receiving_ = true;
  std::string peer_ = "script";
  stream::StreamEvents* events_ = nullptr;
  Posted flush_;
  Posted more_;
};

// Every step: kind, method, id, sizes of metadata and data, then the metadata.
Bytes script_of(std::span<const uint8_t> input) {
  Bytes script;
  while (input.size() >= 6) {
    Header header;
    header.kind = static_cast<Kind>(1 + input[0] % kLastKind);
    header.extensions = input[0] / kLastKind % 4;
    header.method = MethodId(static_cast<uint16_t>(0x0100 + input[1] % 12));
    header.request_id = input[2];
    header.time_us = input[3] % 16 == 0 ? 0 : input[3] * 100U;
    header.credits = input[4] % 3;
    const size_t metadata = std::min<size_t>(input[4], input.size() - 6);
    const size_t data = header.kind == Kind::request || header.kind == Kind::reply ? size_t{input[5]} * input[5] : 0;
    const Bytes content(data, std::byte{input[5]});
    script = std::move(script) + encode_message(header, std::as_bytes(std::span(input.data() + 6, metadata)), content);
    input = input.subspan(6 + metadata);
    if (script.size() > 200'000) break;
  }
  return script;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  testing::ManualLoop loop;
  Registry registry;
  Scope scope(loop);
  const std::unique_ptr<std::byte[]> storage(new std::byte[kMemory + mem::kPage]);
  const auto at = (reinterpret_cast<uintptr_t>(storage.get()) + mem::kPage - 1) / mem::kPage * mem::kPage;
  mem::Pool pool(loop, registry, std::span(reinterpret_cast<std::byte*>(at), kMemory), 0);
  {
    const bool with_key = data[0] / 4 % 2 == 1;
    const KeyRing ring(keys_of({1}));
    Server server(loop, registry, pool,
                  {.server_id = {{1}},
                   .credits = 5,
                   .max_calls = 7,
                   .byte_credits = 1 << 20,
                   .max_data = 1 << 20,
                   .sequences = {.answers = 3, .channel_bytes = 8192},
                   .keys = with_key ? &ring : nullptr});
    Methods methods(server, 3);
    Bytes script = script_of(std::span(data + 1, size - 1));
    // Mostly past the hello.
    if (data[0] % 4 != 0) {
      const uint64_t features = data[0] / 8 % 2 == 1 ? kFeatures : 0;
      script = (with_key ? encode_message({.kind = Kind::hello}, hello_with_key())
                         : hello_message(kAnyPollGroup, features)) +
               script;
    }
    server.accept(std::make_unique<stream::StreamEndpoint>(
        stream::StreamEndpoint::Context{.loop = loop, .pool = pool, .scope = scope},
        std::make_unique<Script>(loop, std::move(script))));
    (void)loop.run_until([&] { return server.connections() == 0; }, 100'000);
    loop.run(+[](Server* s) -> Task<void> { co_await s->drain(s->loop().now()); }, &server);
    ASSERT(server.calls_running() == 0 && methods.hanging == 0);
    if (with_key) ASSERT(methods.echoes == 0 && methods.hung == 0 && methods.adds == 0);
  }
  loop.run(+[](Scope* s) -> Task<void> { co_await s->close(); }, &scope);
  loop.run_for(seconds(1));
  ASSERT(pool.free_bytes() == pool.total_bytes());
  return 0;
}
