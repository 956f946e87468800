// Somebody says anything to a server that takes TLS: bytes from nowhere, or what a client with the key says, changed on
// its way. Nothing of it is served unless it came unchanged.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "srpc/testing/byte_pipe.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/manual_loop.h"
#include "srpc/tls/tls_context.h"
#include "srpc/tls/tls_stream.h"

namespace {

using namespace cairn;
using namespace cairn::srpc;
using namespace cairn::srpc::testing;
using stream::Moved;

constexpr size_t kClient = 0;
constexpr size_t kServer = 1;
constexpr std::string_view kSaid = "what the client says";

struct Party final : stream::StreamEvents {
  explicit Party(std::unique_ptr<tls::TlsStream> s) : stream(std::move(s)) { stream->start(*this); }
  void on_receivable() override {
    while (!ended) {
      char into[300];
      iovec vectors[] = {{into, 7}, {into + 7, sizeof into - 7}};
      const Moved moved = stream->receive(vectors);
      if (moved.how == Moved::How::would_block) return;
      if (moved.how == Moved::How::some) {
        received.append(into, moved.bytes);
        continue;
      }
      ended = true;
      stream->set_receiving(false);
      if (moved.how == Moved::How::failed) ASSERT(!moved.error.empty());
    }
  }
  void on_sendable() override {
    if (to_send.empty()) return;
    iovec vector{to_send.data(), to_send.size()};
    if (stream->send({&vector, 1}).how == Moved::How::some) to_send.clear();
  }
  void on_flush() override {}

  std::unique_ptr<tls::TlsStream> stream;
  std::string to_send;
  std::string received;
  bool ended = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static Registry registry;
  static tls::TlsContext context(registry);
  static const KeyRing ring(keys_of({1, 2}));
  const bool raw = data[0] % 4 == 0;
  const Tls policy = data[0] % 8 < 4 ? Tls::required : Tls::allowed;
  const size_t piece = 1 + data[1];
  const std::span<const uint8_t> input(data + 2, size - 2);

  ManualLoop loop;
  BytePipe pipe;
  pipe.lanes[kClient].most_at_once = piece;
  Party server(std::make_unique<tls::TlsStream>(loop, pipe.end(kServer), context.server(ring, policy)));
  server.to_send = "what the server says";
  server.on_sendable();
  const auto run = [&] {
    for (int quiet = 0; quiet < 2;) {
      const bool moved = pipe.step();
      quiet = loop.step() || moved ? 0 : quiet + 1;
    }
  };
  if (raw) {
    auto client = pipe.end(kClient);
    std::span<const uint8_t> rest = input;
    while (!rest.empty()) {
      iovec vector{const_cast<uint8_t*>(rest.data()), rest.size()};
      const Moved moved = client->send({&vector, 1});
      rest = rest.subspan(moved.bytes);
    }
    run();
    client.reset();
    run();
    const bool looks_like_tls = !input.empty() && input[0] == 22;
    if (looks_like_tls || policy == Tls::required) ASSERT(server.received.empty());
    return 0;
  }
  // Three bytes each: where (two), and what is done to the byte there.
  bool changed = false;
  pipe.lanes[kClient].change = [&](size_t at, std::byte byte) {
    for (size_t i = 0; i + 3 <= input.size(); i += 3) {
      if ((size_t{input[i]} | size_t{input[i + 1]} << 8) % 1024 != at) continue;
      const std::byte now = byte ^ std::byte{input[i + 2]};
      changed = changed || now != byte;
      byte = now;
    }
    return byte;
  };
  Party client(std::make_unique<tls::TlsStream>(loop, pipe.end(kClient), context.client(ring)));
  client.to_send = kSaid;
  client.on_sendable();
  run();
  // The first byte tells TLS from what isn't.
  const bool plain = policy == Tls::allowed && !pipe.lanes[kClient].passed.empty() &&
                     pipe.lanes[kClient].change(0, std::byte{22}) != std::byte{22};
  if (!plain) ASSERT(kSaid.starts_with(server.received));
  if (!changed) ASSERT(server.received == kSaid && client.received == "what the server says");
  return 0;
}
