// Payload that moves directly between the memory of two processes: that it does, what a client may name, and how long
// its memory stays its server's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "mem/arena.h"
#include "reactor/scope.h"
#include "srpc/channel.h"
#include "srpc/shm/peer_memory.h"
#include "srpc/shm/shm_connector.h"
#include "srpc/testing/shm_server.h"

namespace cairn::srpc::shm {
namespace {

using stream::RemotePiece;

constexpr size_t kMiB = size_t{1} << 20;

Fd sealed(size_t bytes, unsigned flags, int seals) {
  Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (fd) {
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

TEST(PeerMemory, RefusesWhatCouldHurt) {
  EXPECT_EQ(PeerMemory::adopt(sealed(kMiB, 0, F_SEAL_GROW)).code(), Errc::protocol_error);
  EXPECT_EQ(PeerMemory::adopt(sealed(0, 0, F_SEAL_SHRINK)).code(), Errc::protocol_error);
  EXPECT_EQ(PeerMemory::adopt(Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC))).code(), Errc::protocol_error);
  // Of huge pages: there may be none for a hole, and who reads it is killed. (Where the system has them at all.)
  if (const Fd huge = sealed(2 * kMiB, MFD_HUGETLB, F_SEAL_SHRINK)) {
    EXPECT_EQ(PeerMemory::adopt(huge).code(), Errc::protocol_error);
  }
}

TEST(PeerMemory, KnowsItsBounds) {
  auto memory = PeerMemory::adopt(sealed(kMiB, 0, F_SEAL_SHRINK));
  ASSERT_TRUE(memory) << memory.error().to_string();
  const auto contains = [&](uint64_t address, uint32_t bytes) {
    return (*memory)->contains({.address = address, .bytes = bytes, .key = 0});
  };
  EXPECT_TRUE(contains(0, kMiB));
  EXPECT_TRUE(contains(kMiB - 1, 1));
  EXPECT_FALSE(contains(0, kMiB + 1));
  EXPECT_FALSE(contains(kMiB, 1));
  EXPECT_FALSE(contains(kMiB - 1, 2));
  EXPECT_FALSE(contains(UINT64_MAX, 1));
  EXPECT_FALSE(contains(UINT64_MAX - 4095, 4096));
}

TEST(PeerMemories, MapOneClientOnce) {
  PeerMemories known;
  const Fd memfd = sealed(kMiB, 0, F_SEAL_SHRINK);
  auto first = *known.adopt(memfd);
  EXPECT_EQ(*known.adopt(memfd), first);
  EXPECT_NE(*known.adopt(sealed(kMiB, 0, F_SEAL_SHRINK)), first);
}

// One call of Echo with payload, and memory for the answer unless `own_memory` is false.
Task<void> echo_payload(Host* client, Channel* channel, size_t bytes, bool own_memory) {
  auto data = co_await make_payload(&client->pool, bytes);
  EXPECT_TRUE(data);
  CallOptions options;
  if (own_memory) options.reply_memory = *co_await client->pool.alloc_chain(bytes);
  const uint32_t crc = crc_of(*data);
  auto reply = co_await channel->call<Echo>({.meta = {1, 0}, .data = *std::move(data)}, options);
  EXPECT_TRUE(reply) << reply.error().to_string();
  if (!reply) co_return;
  EXPECT_EQ(reply->data.size(), bytes);
  EXPECT_EQ(crc_of(reply->data), crc);
}

class ShmDirect : public ShmServer {
 protected:
  std::unique_ptr<Channel> channel_of(Host& client) {
    return std::make_unique<Channel>(*client.reactor, client.metrics,
                                     std::make_unique<ShmConnector>(*client.shm, address));
  }
  void close(Host& client, Channel& channel) {
    client.run(+[](Channel* it) -> Task<void> { co_await it->close(); }, &channel);
  }
  uint64_t moved() { return metric("srpc_shm_moved_bytes_total"); }
};

TEST_F(ShmDirect, MovesPayloadOnceInEachDirection) {
  start();
  Host client(1);
  auto channel = channel_of(client);
  for (const size_t bytes : {size_t{4096}, size_t{5000}, 64 * size_t{1024}, kMiB, 3 * kMiB + 17}) {
    const uint64_t before = moved();
    client.run(&echo_payload, &client, channel.get(), bytes, true);
    EXPECT_EQ(moved() - before, 2 * bytes) << bytes;
    // Without memory of its own the answer goes through the ring.
    client.run(&echo_payload, &client, channel.get(), bytes, false);
    EXPECT_EQ(moved() - before, 3 * bytes) << bytes;
  }
  EXPECT_EQ(metric("mem_payload_bytes_copied_total"), 0u);
  EXPECT_EQ(client.pool.copied().value(), 0u);
  const uint64_t before = moved();
  client.run(&echo_payload, &client, channel.get(), size_t{4095}, true);
  EXPECT_EQ(moved(), before);  // small ones are with their header
  close(client, *channel);
}

TEST_F(ShmDirect, FallsBackToTheRings) {
  start();
  auto host_of_private_memory = *ReactorHost::create({.index = 1, .sharing = mem::Arena::Sharing::process});
  Channel channel(host_of_private_memory->reactor(), host_of_private_memory->metrics(),
                  std::make_unique<ShmConnector>(host_of_private_memory->shm(), address));
  host_of_private_memory->run(
      +[](ReactorHost* it, Channel* over) -> Task<void> {
        auto data = co_await make_payload(&it->pool(), kMiB);
        const uint32_t crc = crc_of(*data);
        auto reply = co_await over->call<Echo>({.meta = {1, 0}, .data = *std::move(data)});
        EXPECT_TRUE(reply);
        if (reply) EXPECT_EQ(crc_of(reply->data), crc);
        co_await over->close();
      },
      host_of_private_memory.get(), &channel);
  EXPECT_EQ(moved(), 0u);
}

// --- What a client may say ---

Bytes memory_block(std::vector<RemotePiece> data, std::vector<RemotePiece> reply) {
  Bytes block;
  const MemoryCounts counts{static_cast<uint8_t>(data.size()), static_cast<uint8_t>(reply.size()), {}};
  for (const auto* pieces : {&data, &reply}) {
    const auto bytes = std::as_bytes(std::span(*pieces));
    block.insert(block.end(), bytes.begin(), bytes.end());
  }
  const auto end = as_bytes(counts);
  block.insert(block.end(), end.begin(), end.end());
  return block;
}

Bytes direct_request(const Bytes& metadata, uint32_t data_bytes) {
  Header header;
  header.kind = Kind::request;
  header.method = Echo::kId;
  header.request_id = 1;
  header.names_memory = true;
  header.elsewhere = data_bytes > 0;
  header.unchecked = data_bytes > 0;
  header.metadata_bytes = static_cast<uint16_t>(metadata.size());
  header.data_bytes = data_bytes;
  Bytes out(header.prefix_bytes());
  encode_header(header, out);
  std::memcpy(out.data() + kHeaderBytes, metadata.data(), metadata.size());
  const Le32 crc = crc32c(metadata);
  std::memcpy(out.data() + kHeaderBytes + metadata.size(), &crc, sizeof crc);
  return out;
}

TEST_F(ShmDirect, ClosesWhoNamesWhatIsNotThere) {
  start();
  const Fd memory = sealed(kMiB, 0, F_SEAL_SHRINK);
  const Bytes meta(sizeof(EchoBody));
  const struct {
    const char* name;
    std::vector<RemotePiece> data;
    std::vector<RemotePiece> reply;
    uint32_t data_bytes;
    const char* reason;
  } cases[] = {
      {"behind the end", {{kMiB - 4095, 4096, 0}}, {}, 4096, "connection_lost"},
      {"around the end of all addresses", {{UINT64_MAX - 100, 4096, 0}}, {}, 4096, "connection_lost"},
      {"one good, one bad", {{0, 4096, 0}, {kMiB, 4096, 0}}, {}, 8192, "connection_lost"},
      {"a reply behind the end", {{0, 4096, 0}}, {{kMiB - 1, 4096, 0}}, 4096, "connection_lost"},
      {"less than the data", {{0, 4096, 0}}, {}, 8192, "bad_header"},
      {"more than the data", {{0, 8192, 0}}, {}, 4096, "bad_header"},
      {"empty pieces", {{0, 4096, 0}, {0, 0, 0}}, {}, 4096, "bad_header"},
      {"too many pieces", std::vector<RemotePiece>(65, RemotePiece{0, 64, 0}), {}, 65 * 64, "bad_header"},
      {"an enormous reply", {}, std::vector<RemotePiece>(64, RemotePiece{0, UINT32_MAX, 0}), 0, "bad_header"},
      {"pieces of nothing", {{0, 4096, 0}}, {}, 0, "bad_header"},
  };
  for (const auto& c : cases) {
    const uint64_t before = closed_for(c.reason);
    Raw raw = connect_raw(memory);
    raw.write(hello_message() + direct_request(meta + memory_block(c.data, c.reply), c.data_bytes));
    EXPECT_TRUE(eventually([&] { return server->connections() == 0; })) << c.name;
    EXPECT_EQ(closed_for(c.reason), before + 1) << c.name;
  }
  // A block that isn't there, or is longer than the metadata.
  for (const Bytes& metadata : {Bytes{}, Bytes(3), Bytes(20, std::byte{0xff})}) {
    Raw raw = connect_raw(memory);
    raw.write(hello_message() + direct_request(metadata, 4096));
    EXPECT_TRUE(all_gone());
  }
  // Where no memory is shared, none can be named.
  {
    const uint64_t before = closed_for("bad_sequence");
    Raw raw = connect_raw();
    raw.write(hello_message() + direct_request(meta + memory_block({{0, 4096, 0}}, {}), 4096));
    EXPECT_TRUE(all_gone());
    EXPECT_EQ(closed_for("bad_sequence"), before + 1);
  }
  // Nobody else was disturbed, and what is in bounds works.
  Raw raw = connect_raw(memory);
  raw.write(hello_message() +
            direct_request(meta + memory_block({{0, 4096, 0}}, {{65536, 100, 0}, {131072, 3996, 0}}), 4096));
  EXPECT_TRUE(eventually([&] { return methods->echoes > 0; }));
  EXPECT_TRUE(eventually([&] { return server->calls_running() == 0; }));
  EXPECT_EQ(host->call([&] { return server->connections(); }), 1u);
}

// A client that changes a payload while the server takes it harms nobody but itself.
TEST_F(ShmDirect, SeesOneStateOfThePayload) {
  start();
  const Fd memfd = sealed(kMiB, 0, F_SEAL_SHRINK);
  void* at = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  ASSERT_NE(at, MAP_FAILED);
  auto* bytes = static_cast<volatile uint8_t*>(at);
  bytes[0] = 1;
  Raw raw = connect_raw(memfd);
  const Bytes meta(sizeof(EchoBody));
  raw.write(hello_message() + direct_request(meta + memory_block({{0, 65536, 0}}, {{65536, 65536, 0}}), 65536));
  EXPECT_TRUE(eventually([&] { return methods->echoes == 1 && server->calls_running() == 0; }));
  EXPECT_EQ(bytes[65536], 1);
  bytes[0] = 2;
  EXPECT_EQ(bytes[65536], 1);
  munmap(at, kMiB);
}

// --- How long it is the server's ---

// The server of the first connection may still write to what was named there.
Task<void> call_twice(Host* client, Channel* channel) {
  auto memory = *co_await client->pool.alloc_chain(kMiB);
  const std::byte* named = memory.slices().front().data();
  auto data = co_await make_payload(&client->pool, kMiB);
  const uint32_t crc = crc_of(*data);
  CallOptions options;
  options.reply_memory = std::move(memory);
  auto reply = co_await channel->call<Again>({.meta = {1, 50'000}, .data = *std::move(data)}, options);
  EXPECT_TRUE(reply) << reply.error().to_string();
  if (!reply) co_return;
  EXPECT_EQ(crc_of(reply->data), crc);
  EXPECT_NE(reply->data.slices().front().data(), named);
}

TEST_F(ShmDirect, ARepeatedCallLandsElsewhere) {
  start();
  Host client(1);
  client.start_thread();
  auto channel = client.call([&] { return channel_of(client); });
  auto called = std::async(std::launch::async, [&] { client.run(&call_twice, &client, channel.get()); });
  EXPECT_TRUE(eventually([&] { return methods->echoes == 1; }));
  host->call([&] {
    server->close_connections({CloseReason::done, "for the test"});
    return 0;
  });
  called.get();
  EXPECT_EQ(host->call([&] { return methods->echoes; }), 2u);
  close(client, *channel);
  client.call([&] {
    channel.reset();
    return 0;
  });
  client.stop_thread();
}

Task<void> call_and_give_up(Host* client, Channel* channel, CancelSource* cancel) {
  CallOptions options{.cancel = *cancel};
  options.reply_memory = *co_await client->pool.alloc_chain(kMiB);
  auto data = co_await make_payload(&client->pool, kMiB);
  auto reply = co_await channel->call<Echo>({.meta = {1, 0}, .data = *std::move(data)}, options);
  EXPECT_EQ(reply.code(), Errc::cancelled);
}

TEST_F(ShmDirect, HoldsWhatItNamedUntilTheServerIsGone) {
  start();
  Host client(1);
  client.start_thread();
  const auto held = [&] { return client.call([&] { return client.pool.total_bytes() - client.pool.free_bytes(); }); };
  auto channel = client.call([&] { return channel_of(client); });
  client.run(+[](Channel* it) -> Task<void> { (void)co_await it->wait_connected(); }, channel.get());
  ASSERT_EQ(held(), 0u);

  // The server stands still, with the request before it.
  std::promise<void> go_on;
  std::promise<void> stands;
  auto standing = std::async(std::launch::async, [&] {
    host->call([&] {
      stands.set_value();
      go_on.get_future().wait();
      return 0;
    });
  });
  stands.get_future().wait();
  CancelSource cancel;
  auto called = std::async(std::launch::async, [&] { client.run(&call_and_give_up, &client, channel.get(), &cancel); });
  while (held() < 2 * kMiB) ::usleep(100);
  client.call([&] {
    cancel.cancel();
    return 0;
  });
  called.get();
  EXPECT_EQ(held(), 2 * kMiB);  // the call has ended, its memory isn't ours yet
  close(client, *channel);
  client.call([&] {
    channel.reset();
    return 0;
  });
  EXPECT_EQ(held(), 2 * kMiB);  // nor by the end of the connection at this end
  go_on.set_value();
  standing.get();
  for (int i = 0; i < 10'000 && held() > 0; ++i) ::usleep(1000);
  EXPECT_EQ(held(), 0u);
  client.stop_thread();
}

}  // namespace
}  // namespace cairn::srpc::shm
