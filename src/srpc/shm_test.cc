// Shared memory: what the other process may do to it, and what happens when it dies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "srpc/channel.h"
#include "srpc/near_connector.h"
#include "srpc/reactor_placement.h"
#include "srpc/server.h"
#include "srpc/shm/byte_ring.h"
#include "srpc/shm/rendezvous.h"
#include "srpc/shm/shm_connector.h"
#include "srpc/shm/shm_listener.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"
#include "srpc/testing/shm_server.h"

namespace cairn::srpc::shm {
namespace {

using namespace srpc::testing;

Fd memfd(size_t bytes, int seals) {
  Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(Segment, IsSeenByBothSides) {
  auto created = Segment::create(8192);
  ASSERT_TRUE(created) << created.error().to_string();
  auto adopted = Segment::adopt(created->memfd);
  ASSERT_TRUE(adopted) << adopted.error().to_string();
  EXPECT_EQ(adopted->ring_bytes(), 8192u);
  for (const size_t ring : {0u, 1u}) {
    created->segment.bytes(ring)[5] = std::byte{static_cast<unsigned char>(7 + ring)};
    created->segment.control(ring).head.store(100 + ring);
    EXPECT_EQ(adopted->bytes(ring)[5], std::byte{static_cast<unsigned char>(7 + ring)});
    EXPECT_EQ(adopted->control(ring).head.load(), 100 + ring);
    EXPECT_EQ(adopted->bytes(ring).size(), 8192u);
  }
}

TEST(Segment, RefusesWhatCouldHurt) {
  const size_t right = 4096 + 2 * 8192;
  const struct {
    const char* name;
    Fd fd;
  } cases[] = {
      {"could shrink under us", memfd(right, F_SEAL_GROW)},
      {"empty", memfd(0, F_SEAL_SHRINK)},
      {"not a power of two", memfd(4096 + 2 * 8000, F_SEAL_SHRINK)},
      {"odd", memfd(right + 1, F_SEAL_SHRINK)},
      {"too large", memfd(size_t{1} << 30, F_SEAL_SHRINK)},
      {"no header", memfd(right, F_SEAL_SHRINK)},
      {"not a memfd", Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC))},
      {"not a file", Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))},
  };
  for (const auto& c : cases) EXPECT_EQ(Segment::adopt(c.fd).code(), Errc::protocol_error) << c.name;
}

class ByteRingTest : public ::testing::Test {
 protected:
  ByteRingTest()
      : segment(std::move(Segment::create(kMinRingBytes)->segment)),
        producer(segment.control(0), segment.bytes(0)),
        consumer(segment.control(0), segment.bytes(0)) {}
  Segment segment;
  RingProducer producer;
  RingConsumer consumer;
};

TEST_F(ByteRingTest, CarriesBytesInOrderWhateverThePieces) {
  SeededRng rng(1);
  uint8_t next_in = 0;
  uint8_t next_out = 0;
  uint64_t moved = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> a(1 + rng.below(300));
    std::vector<std::byte> b(1 + rng.below(6000));
    uint8_t number = next_in;
    for (auto* piece : {&a, &b}) {
      for (std::byte& byte : *piece) byte = std::byte{number++};
    }
    const iovec out[] = {vector_of(a), vector_of(b)};
    const size_t written = producer.write(out, *producer.room());
    next_in = static_cast<uint8_t>(next_in + written);
    const iovec in[] = {vector_of(a), vector_of(b)};
    const size_t read = consumer.read(in, *consumer.available());
    for (size_t k = 0; k < read; ++k) {
      const std::byte got = k < a.size() ? a[k] : b[k - a.size()];
      ASSERT_EQ(got, std::byte{next_out++});
    }
    moved += read;
  }
  EXPECT_GT(moved, 10'000'000u);
}

TEST_F(ByteRingTest, RingsOnlyWhoWaits) {
  const auto byte = std::byte{1};
  const iovec one = vector_of({&byte, 1});
  EXPECT_TRUE(consumer.wait_for_bytes());
  producer.write({&one, 1}, 1);
  EXPECT_TRUE(producer.must_ring());
  EXPECT_FALSE(producer.must_ring());       // once
  EXPECT_FALSE(consumer.wait_for_bytes());  // there is something
  consumer.stop_waiting();
  producer.write({&one, 1}, 1);
  EXPECT_FALSE(producer.must_ring());

  std::vector<std::byte> much(kMinRingBytes);
  const iovec all = vector_of(much);
  producer.write({&all, 1}, *producer.room());
  EXPECT_EQ(producer.room(), 0u);
  EXPECT_TRUE(producer.wait_for_room());
  consumer.read({&one, 1}, 1);
  EXPECT_TRUE(consumer.must_ring());
  EXPECT_FALSE(consumer.must_ring());
  EXPECT_FALSE(producer.wait_for_room());
}

TEST_F(ByteRingTest, NoticesPositionsThatMakeNoSense) {
  segment.control(0).head.store(kMinRingBytes + 1);
  EXPECT_EQ(consumer.available(), std::nullopt);
  segment.control(0).head.store(UINT64_MAX);
  EXPECT_EQ(consumer.available(), std::nullopt);
  segment.control(0).tail.store(1);
  EXPECT_EQ(producer.room(), std::nullopt);
}

// No wake-up is lost between two threads that sleep whenever they can.
TEST_F(ByteRingTest, NeverSleepsForEver) {
  constexpr uint64_t kBytes = 3'000'000;
  std::atomic<int> bell_of_consumer{0};
  std::atomic<int> bell_of_producer{0};
  const auto sleep = [](std::atomic<int>& bell) {
    bell.wait(0);
    bell.store(0);
  };
  const auto ring = [](std::atomic<int>& bell) {
    bell.store(1);
    bell.notify_one();
  };
  std::thread other([&] {
    SeededRng rng(2);
    std::vector<std::byte> piece(5000);
    for (uint64_t got = 0; got < kBytes;) {
      const iovec in{piece.data(), 1 + rng.below(piece.size())};
      const size_t n = consumer.read({&in, 1}, *consumer.available());
      got += n;
      if (consumer.must_ring()) ring(bell_of_producer);
      if (n == 0 && consumer.wait_for_bytes()) sleep(bell_of_consumer);
    }
  });
  SeededRng rng(3);
  std::vector<std::byte> piece(5000);
  for (uint64_t sent = 0; sent < kBytes;) {
    const iovec out{piece.data(), std::min<size_t>(1 + rng.below(piece.size()), kBytes - sent)};
    const size_t n = producer.write({&out, 1}, *producer.room());
    sent += n;
    if (producer.must_ring()) ring(bell_of_consumer);
    if (n == 0 && producer.wait_for_room()) sleep(bell_of_producer);
  }
  other.join();
}

Task<void> echo(Channel* channel, int calls, Errc* outcome) {
  for (int i = 0; i < calls; ++i) {
    auto reply = co_await channel->call<Echo>({.meta = {static_cast<uint64_t>(i), 0}});
    *outcome = reply.code();
    if (!reply) break;
    EXPECT_EQ(reply->meta.number, static_cast<uint64_t>(i) + 1);
  }
  co_await channel->close();
}

Errc call_over(Host& client, std::unique_ptr<Connector> connector, uint16_t poll_group = kAnyPollGroup,
               std::string* peer = nullptr) {
  Errc outcome = Errc::unknown;
  Channel channel(*client.reactor, client.metrics, std::move(connector),
                  {.poll_group = poll_group, .default_timeout = seconds(3), .connect_timeout = seconds(1)});
  client.run(&echo, &channel, 100, &outcome);
  if (peer != nullptr) *peer = channel.address();
  return outcome;
}

TEST_F(ShmServer, NearConnectorTakesSharedMemoryAndFallsBack) {
  start();
  Host client(1);
  EXPECT_EQ(call_over(client, std::make_unique<NearConnector>(*client.shm, *client.tcp, address)), Errc::ok);
  const auto shm_in = [&] { return host->call([&] { return server->connections(); }); };
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; })) << shm_in();
  // Without the listener there is still TCP.
  host->run(+[](ShmListener* it) -> Task<void> { co_await it->close(); }, listener.get());
  EXPECT_EQ(call_over(client, std::make_unique<ShmConnector>(*client.shm, address)), Errc::timed_out);
  EXPECT_EQ(call_over(client, std::make_unique<NearConnector>(*client.shm, *client.tcp, address)), Errc::ok);
}

TEST_F(ShmServer, IsFoundByAnyAddressOfItsMachineOnly) {
  EXPECT_TRUE(is_of_this_machine(Address::loopback(1)));
  EXPECT_TRUE(is_of_this_machine(*Address::parse("127.5.5.5", 1)));
  EXPECT_FALSE(is_of_this_machine(*Address::parse("192.0.2.1", 1)));
  EXPECT_FALSE(is_of_this_machine(*Address::parse("2001:db8::1", 1)));
  EXPECT_EQ(meeting_name(*Address::parse("10.0.0.7", 7400)), "srpc:10.0.0.7:7400");
  EXPECT_EQ(meeting_name(*Address::parse("0.0.0.0", 7400)), meeting_name(*Address::parse("::", 7400)));
  // A name is taken once, until its owner goes.
  auto first = listen_at("srpc:test:" + std::to_string(getpid()));
  ASSERT_TRUE(first);
  EXPECT_EQ(listen_at("srpc:test:" + std::to_string(getpid())).code(), Errc::busy);
  first->reset();
  EXPECT_TRUE(listen_at("srpc:test:" + std::to_string(getpid())));
}

TEST_F(ShmServer, SurvivesStrangersAtTheDoor) {
  start();
  const auto knock = [&] {
    auto socket = connect_to(meeting_name(address));
    EXPECT_TRUE(socket);
    return *std::move(socket);
  };
  {
    const Fd silent = knock();  // says nothing and goes
  }
  const Fd waits = knock();  // says nothing
  const Fd talks = knock();
  EXPECT_EQ(::send(talks.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  const Fd no_fd = knock();
  EXPECT_EQ(::send(no_fd.get(), "srpcshm1", 8, MSG_NOSIGNAL), 8);
  for (const Fd* refused : {&talks, &no_fd}) {
    char byte = 0;
    pollfd poll{refused->get(), POLLIN, 0};
    EXPECT_EQ(::poll(&poll, 1, 5000), 1);
    EXPECT_LE(::recv(refused->get(), &byte, 1, MSG_DONTWAIT), 0);
  }
  // More descriptors than are wanted: none of them stays open in the server.
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const Fd read_end(pipe_ends[0]);
  Fd write_end(pipe_ends[1]);
  {
    const Fd many = knock();
    const int sent[] = {write_end.get(), write_end.get(), write_end.get()};
    char hello[] = "srpcshm1";
    iovec vector{hello, 8};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof sent)] = {};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof sent);
    std::memcpy(CMSG_DATA(rights), sent, sizeof sent);
    EXPECT_EQ(::sendmsg(many.get(), &message, MSG_NOSIGNAL), 8);
    char byte = 0;
    pollfd poll{many.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&poll, 1, 5000), 1);
    EXPECT_LE(::recv(many.get(), &byte, 1, MSG_DONTWAIT), 0);
  }
  write_end.reset();
  // The pipe has ended when nobody holds its other end any more.
  pollfd ended{read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 5000), 1);
  Host client(1);
  EXPECT_EQ(call_over(client, std::make_unique<ShmConnector>(*client.shm, address)), Errc::ok);
}

TEST_F(ShmServer, ClosesWhoWritesNonsense) {
  start();
  {
    Raw raw = connect_raw();
    raw.segment.control(0).head.store(1'000'000);
    (void)::send(raw.socket.get(), "!", 1, MSG_NOSIGNAL);
    EXPECT_TRUE(all_gone());
  }
  {
    Raw raw = connect_raw();
    raw.write(hello_message());
    EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
    // The room for replies makes no sense: found out when one is sent.
    raw.segment.control(1).tail.store(UINT64_MAX / 2);
    Header ping;
    ping.kind = srpc::Kind::ping;
    raw.write(encode_message(ping));
    EXPECT_TRUE(all_gone());
  }
  {
    Raw raw = connect_raw();
    Bytes garbage(5000, std::byte{0xee});
    raw.write(garbage);
    EXPECT_TRUE(all_gone());
  }
  // Bells for nothing cost nothing but that.
  Raw raw = connect_raw();
  raw.write(hello_message());
  EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
  for (int i = 0; i < 10'000; ++i) (void)::send(raw.socket.get(), "!!!!!!!!", 8, MSG_NOSIGNAL | MSG_DONTWAIT);
  Host client(1);
  EXPECT_EQ(call_over(client, std::make_unique<ShmConnector>(*client.shm, address)), Errc::ok);
  EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
}

// The memory of one who was killed stays readable, and what it had said is still heard.
TEST_F(ShmServer, NoticesThatAProcessWasKilled) {
  start();
  for (int round = 0; round < 5; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      // No thread of the parent is here, and its reactor isn't touched.
      Host client(1, Mode::economy, size_t{16} << 20);
      client.run(
          +[](Host* it, Address to, int tell) -> Task<void> {
            Channel channel(*it->reactor, it->metrics, std::make_unique<ShmConnector>(*it->shm, to));
            Scope scope(*it->reactor);
            const auto hang = +[](Channel* c) -> Task<void> { (void)co_await c->call<Hang>({}); };
            (void)co_await channel.wait_connected();
            for (int i = 0; i < 10; ++i) scope.spawn(hang, &channel);
            (void)co_await channel.call<Echo>({.meta = {1, 0}});
            (void)!::write(tell, "x", 1);
            co_await scope.join();
          },
          &client, address, ready[1]);
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_TRUE(eventually([&] { return methods->hanging == 10; }));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(all_gone()) << round;
    ::close(ready[0]);
    ::close(ready[1]);
  }
}

// Between two threads that poll. Now and then one of them loses its core for longer than the other is willing to look:
// it is enough that most calls need nothing.
TEST_F(ShmServer, MakesNoSystemCallsWhileBothPoll) {
  start(Mode::performance);
  Host client(1, Mode::performance);
  client.start_thread();
  const auto system_calls = [](Host& of) {
    return of.call([&of] {
      const std::string text = Registry::expose({{&of.registry, ""}});
      uint64_t sum = 0;
      for (const std::string name : {"\nreactor_io_uring_enters_total ", "\nsrpc_shm_bells_total "}) {
        const size_t at = text.find(name);
        EXPECT_NE(at, std::string::npos) << name;
        sum += std::stoull(text.substr(at + name.size()));
      }
      return sum;
    });
  };
  const auto call = +[](Channel* c, uint64_t calls) -> Task<void> {
    (void)co_await c->wait_connected();
    for (uint64_t i = 0; i < calls; ++i) EXPECT_TRUE(co_await c->call<Echo>({.meta = {i, 0}}));
  };
  Channel* channel = client.call([&] {
    return new Channel(*client.reactor, client.metrics, std::make_unique<ShmConnector>(*client.shm, address));
  });
  constexpr uint64_t kCalls = 500;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 50 && least > kCalls / 10; ++i) {
    const uint64_t before = system_calls(client) + system_calls(*host);
    client.run(call, channel, kCalls);
    least = std::min(least, system_calls(client) + system_calls(*host) - before);
  }
  EXPECT_LE(least, kCalls / 10);  // the hops of this test
  client.run(+[](Channel* c) -> Task<void> { co_await c->close(); }, channel);
  client.call([&] {
    delete channel;
    return 0;
  });
  client.stop_thread();
}

}  // namespace
}  // namespace cairn::srpc::shm
