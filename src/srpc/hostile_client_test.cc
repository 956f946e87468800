// What clients may do to a server, by mistake or on purpose, and that it ends with the right reason, costs a bounded
// amount and disturbs nobody else.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "srpc/server.h"
#include "srpc/tcp/tcp_listener.h"
#include "srpc/testing/host.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/methods.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

class HostileClient : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}, size_t memory = size_t{48} << 20) {
    host = std::make_unique<Host>(0, Mode::automatic, memory);
    server = std::make_unique<Server>(*host->reactor, host->registry, host->pool, options);
    methods = std::make_unique<Methods>(*server);
    listener = std::move(*tcp::TcpListener::open(*host->tcp, *server, Address::loopback(0)));
    port = listener->port();
    host->start_thread();
  }
  void TearDown() override {
    host->run(&stop, this);
    host->call([this] {
      listener.reset();
      server.reset();
      return 0;
    });
    host.reset();  // asserts that all memory is back
  }
  static Task<void> stop(HostileClient* self) {
    co_await self->listener->close();
    co_await self->server->drain(self->host->reactor->now() + milliseconds(100));
  }

  RawPeer connect() { return RawPeer::connect(port); }
  // Past the hello.
  RawPeer connect_and_greet() {
    RawPeer peer = connect();
    EXPECT_TRUE(peer.send(hello_message()));
    auto reply = peer.receive();
    EXPECT_TRUE(reply && reply->header.kind == Kind::hello_reply);
    return peer;
  }
  static Bytes note(uint64_t id, uint32_t delay_us = 0) {
    EchoBody body;
    body.delay_us = delay_us;
    return encode_message({.kind = Kind::notice, .method = Note::kId, .request_id = id}, as_bytes(body));
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
    return eventually([this] { return server->connections() == 0 && server->calls_running() == 0; });
  }
  // An honest client gets its answer.
  bool serves() {
    RawPeer peer = connect_and_greet();
    if (!peer.send(echo_request(1))) return false;
    const auto reply = peer.receive();
    return reply && reply->header.kind == Kind::reply && reply->header.status == 0;
  }
  static Bytes echo_request(uint64_t id, size_t data = 0) {
    return encode_message({.kind = Kind::request, .method = Echo::kId, .request_id = id}, as_bytes(EchoBody{}),
                          Bytes(data));
  }

  std::unique_ptr<Host> host;
  std::unique_ptr<Server> server;
  std::unique_ptr<Methods> methods;
  std::unique_ptr<tcp::TcpListener> listener;
  uint16_t port = 0;
};

TEST_F(HostileClient, SaysNothing) {
  start({.hello_timeout = milliseconds(50)});
  RawPeer silent = connect();
  std::string text;
  EXPECT_EQ(silent.goodbye(&text), CloseReason::hello_timeout);
  EXPECT_NE(text.find("no hello within"), std::string::npos);
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(all_gone());
}

TEST_F(HostileClient, SaysAByteNowAndThen) {
  start({.hello_timeout = milliseconds(100)});
  RawPeer slow = connect();
  const Bytes hello = hello_message();
  // Progress doesn't prolong it.
  size_t sent = 0;
  while (sent < hello.size() - 1 && slow.send({&hello[sent], 1})) {
    ++sent;
    ::usleep(5000);
  }
  EXPECT_EQ(slow.goodbye(), CloseReason::hello_timeout);
  EXPECT_TRUE(all_gone());
}

TEST_F(HostileClient, IsServedEvenInSingleBytes) {
  start();
  RawPeer peer = connect();
  const Bytes all = hello_message() + echo_request(5, 300) + echo_request(6, 5000);
  const size_t hello = hello_message().size();
  ASSERT_TRUE(peer.send(std::span(all).first(hello)));
  ASSERT_TRUE(peer.receive());
  for (size_t i = hello; i < all.size(); ++i) ASSERT_TRUE(peer.send({&all[i], 1}));
  for (const uint64_t id : {5, 6}) {
    const auto reply = peer.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.request_id, id);
    EXPECT_EQ(reply->header.status, 0U);
  }
}

TEST_F(HostileClient, DiesAtEveryByte) {
  start();
  const Bytes hello = hello_message();
  const Bytes request = echo_request(1, 4096 + 100);
  for (size_t n = 0; n <= hello.size(); n += 3) {
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(std::span(hello).first(n)));
    n % 2 == 0 ? peer.reset() : peer.close();
  }
  for (size_t n = 0; n <= request.size(); n += n < 400 ? 7 : 501) {
    RawPeer peer = connect_and_greet();
    ASSERT_TRUE(peer.send(std::span(request).first(n)));
    n % 2 == 0 ? peer.reset() : peer.close();
  }
  EXPECT_TRUE(all_gone());
  EXPECT_TRUE(serves());
}

TEST_F(HostileClient, DiesAtEveryByteOfItsProof) {
  const KeyRing ring(keys_of({1}));
  start({.keys = &ring});
  const Bytes body = hello_with_key();
  const Bytes hello = encode_message({.kind = Kind::hello}, body);
  for (size_t n = 0; n <= hello.size(); n += 3) {
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(std::span(hello).first(n)));
    n % 2 == 0 ? peer.reset() : peer.close();
  }
  const size_t proof_bytes = kHeaderBytes + sizeof(ProofBody) + 4;
  for (size_t n = 0; n <= proof_bytes; ++n) {
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(hello));
    const auto challenge = peer.receive();
    ASSERT_TRUE(challenge && challenge->header.kind == Kind::challenge);
    const Bytes proof = encode_message({.kind = Kind::proof}, client_proof(key_of(1), body, challenge->metadata));
    ASSERT_EQ(proof.size(), proof_bytes);
    ASSERT_TRUE(peer.send(std::span(proof).first(n)));
    if (n == proof_bytes) {
      // Whole, it opens the door.
      const auto reply = peer.receive();
      ASSERT_TRUE(reply && reply->header.kind == Kind::hello_reply);
      ASSERT_TRUE(peer.send(echo_request(1)));
      EXPECT_TRUE(peer.receive());
    }
    n % 2 == 0 ? peer.reset() : peer.close();
  }
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(host->call([this] { return methods->echoes; }), 1U);
}

TEST_F(HostileClient, GuessesTheKeyWithoutEnd) {
  const KeyRing ring(keys_of({1}));
  start({.keys = &ring});
  for (int i = 0; i < 200; ++i) {
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(encode_message({.kind = Kind::hello}, hello_with_key()) +
                          encode_message({.kind = Kind::proof}, Bytes(32, std::byte(i)))));
    EXPECT_EQ(peer.goodbye(), CloseReason::not_authenticated);
    EXPECT_TRUE(peer.ends());
  }
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(host->call([this] { return host->pool.free_bytes(); }), host->pool.total_bytes());
}

TEST_F(HostileClient, BreaksTheProtocol) {
  start();
  struct Case {
    const char* what;
    bool greeted;
    Bytes bytes;
    CloseReason reason;
  };
  const auto bytes_of = [](std::string_view text) {
    const auto span = std::as_bytes(std::span(text));
    return Bytes(span.begin(), span.end());
  };
  Bytes bad_crc = echo_request(1);
  bad_crc[20] ^= std::byte{1};
  Bytes bad_metadata = echo_request(1);
  bad_metadata[kHeaderBytes] ^= std::byte{1};
  const auto patched = [](Bytes message, size_t at, std::byte value) {
    message[at] = value;
    const Le32 crc = crc32c(message.data(), 44);
    std::memcpy(&message[44], &crc, sizeof crc);
    return message;
  };
  HelloBody future;
  future.version_min = 7;
  future.version_max = 9;
  const Bytes two_hellos = hello_message() + hello_message();
  const std::vector<Case> cases = {
      {"another protocol", false, bytes_of("GET / HTTP/1.1\r\nHost: somewhere.example.com\r\nAccept: */*\r\n\r\n"),
       CloseReason::bad_header},
      {"zeroes", false, Bytes(64), CloseReason::bad_header},
      {"header checksum", true, bad_crc, CloseReason::bad_header},
      {"metadata checksum", true, bad_metadata, CloseReason::bad_header},
      {"header of another version", true, patched(echo_request(1), 4, std::byte{200}), CloseReason::bad_version},
      {"unknown kind", true, patched(echo_request(1), 5, std::byte{99}), CloseReason::bad_header},
      {"impossible flags", true, patched(echo_request(1), 6, std::byte{0xff}), CloseReason::bad_header},
      {"too much metadata", true, patched(echo_request(1), 15, std::byte{0xff}), CloseReason::too_large},
      {"too much data", true, patched(echo_request(1), 19, std::byte{0xff}), CloseReason::too_large},
      {"data in a ping", true, encode_message({.kind = Kind::ping}, {}, Bytes(5)), CloseReason::bad_header},
      {"no common version", false, encode_message({.kind = Kind::hello}, as_bytes(future)), CloseReason::bad_version},
      {"short hello", false, encode_message({.kind = Kind::hello}, Bytes(8)), CloseReason::bad_sequence},
      {"request before hello", false, echo_request(1), CloseReason::bad_sequence},
      {"data before hello", false, echo_request(1, 8192), CloseReason::too_large},
      {"hello again", true, hello_message(), CloseReason::bad_sequence},
      {"two hellos at once", false, two_hellos, CloseReason::bad_sequence},
      {"reply", true, encode_message({.kind = Kind::reply}), CloseReason::bad_sequence},
      {"credit", true, encode_message({.kind = Kind::credit}), CloseReason::bad_sequence},
      {"push", true, encode_message({.kind = Kind::push}), CloseReason::bad_sequence},
      {"notice, which was not agreed", true, note(1), CloseReason::bad_sequence},
      {"data in a notice", true, encode_message({.kind = Kind::notice}, {}, Bytes(5)), CloseReason::bad_header},
      {"poll group that doesn't exist", false, hello_message(7), CloseReason::no_poll_group},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    RawPeer peer = c.greeted ? connect_and_greet() : connect();
    ASSERT_TRUE(peer.send(c.bytes));
    std::string text;
    EXPECT_EQ(close_reason_name(peer.goodbye(&text)), close_reason_name(c.reason));
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(peer.ends());
  }
  EXPECT_TRUE(all_gone());
  EXPECT_TRUE(serves());
}

TEST_F(HostileClient, DamagesPayload) {
  start();
  RawPeer peer = connect_and_greet();
  for (const size_t size : {size_t{100}, size_t{9000}}) {
    Bytes request = echo_request(size, size);
    request.back() ^= std::byte{1};
    ASSERT_TRUE(peer.send(request));
    const auto reply = peer.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(errc_from_wire(reply->header.status), Errc::corrupt);
  }
  // The stream is intact.
  ASSERT_TRUE(peer.send(echo_request(3)));
  const auto reply = peer.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.status, 0U);
}

// Slow ones: their credits don't come back before they are served.
TEST_F(HostileClient, SendsMoreNoticesThanItsCredits) {
  start({.credits = 4, .max_calls = 2});
  {
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(hello_message(kAnyPollGroup, kFeatureNotices)));
    ASSERT_TRUE(peer.receive());
    for (uint64_t id = 1; id <= 5; ++id) ASSERT_TRUE(peer.send(note(id, 60'000'000)));
    EXPECT_EQ(peer.goodbye(), CloseReason::over_credit);
  }
  {
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(hello_message(kAnyPollGroup, kFeatureNotices)));
    ASSERT_TRUE(peer.receive());
    ASSERT_TRUE(peer.send(note(1, 60'000'000) + note(1)));
    EXPECT_EQ(peer.goodbye(), CloseReason::bad_sequence);
  }
  {
    // Quick ones give them back, two at a time.
    RawPeer peer = connect();
    ASSERT_TRUE(peer.send(hello_message(kAnyPollGroup, kFeatureNotices)));
    ASSERT_TRUE(peer.receive());
    for (uint64_t id = 1; id <= 100; id += 2) {
      ASSERT_TRUE(peer.send(note(id) + note(id + 1)));
      const auto credit = peer.receive();
      ASSERT_TRUE(credit);
      EXPECT_EQ(credit->header.kind, Kind::credit);
      EXPECT_EQ(credit->header.credits, 2U);
    }
  }
  EXPECT_TRUE(all_gone());
  EXPECT_TRUE(serves());
}

TEST_F(HostileClient, SendsMoreThanItsCredits) {
  start({.credits = 4, .max_calls = 8});
  const auto hang = [](uint64_t id) {
    return encode_message({.kind = Kind::request, .method = Hang::kId, .request_id = id});
  };
  {
    RawPeer peer = connect_and_greet();
    // Credits come back while calls run: what ends it is the ninth call.
    for (uint64_t id = 1; id <= 8; ++id) {
      ASSERT_TRUE(peer.send(hang(id)));
      if (id % 2 == 0) {
        const auto credit = peer.receive();
        ASSERT_TRUE(credit);
        EXPECT_EQ(credit->header.kind, Kind::credit);
        EXPECT_EQ(credit->header.credits, 2U);
      }
    }
    ASSERT_TRUE(peer.send(hang(9)));
    EXPECT_EQ(peer.goodbye(), CloseReason::over_credit);
  }
  {
    RawPeer peer = connect_and_greet();
    ASSERT_TRUE(peer.send(hang(1) + hang(1)));
    EXPECT_EQ(peer.goodbye(), CloseReason::bad_sequence);
  }
  EXPECT_TRUE(all_gone());
  EXPECT_TRUE(serves());
}

TEST_F(HostileClient, SendsMorePayloadThanItsCredits) {
  start({.byte_credits = 1 << 20, .max_data = 1 << 20});
  RawPeer peer = connect_and_greet();
  const Bytes data(700'000);
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_TRUE(peer.send(encode_message({.kind = Kind::request, .method = Echo::kId, .request_id = id},
                                         as_bytes(EchoBody{.number = 0, .delay_us = 10'000'000}), data)));
  }
  EXPECT_EQ(peer.goodbye(), CloseReason::over_credit);
  EXPECT_TRUE(all_gone());
}

TEST_F(HostileClient, SendsGarbage) {
  start();
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SeededRng rng(seed);
    RawPeer peer = seed % 2 == 0 ? connect_and_greet() : connect();
    // Valid messages with bytes turned, which get further than noise.
    Bytes bytes = seed % 3 == 0 ? Bytes(rng.below(20'000)) : echo_request(rng.next(), rng.below(20'000));
    if (seed % 3 == 0) rng.fill(bytes);
    for (uint64_t i = rng.below(8); i > 0 && !bytes.empty(); --i)
      bytes[rng.below(bytes.size())] = std::byte(rng.next());
    (void)peer.send(bytes);
  }
  EXPECT_TRUE(all_gone());
  EXPECT_TRUE(serves());
}

TEST_F(HostileClient, NeverReads) {
  start({.max_unsent_bytes = 1 << 20, .slow_reader_timeout = milliseconds(200)});
  RawPeer peer = RawPeer::connect(port, 4096);
  ASSERT_TRUE(peer.send(hello_message()));
  // As many requests for payload as it has credits for, and then pings without end: what they are answered with piles
  // up no further than the limit, because the server stops reading.
  for (uint64_t id = 1; id <= 100; ++id) {
    ASSERT_TRUE(peer.send(encode_message({.kind = Kind::request, .method = Get::kId, .request_id = id},
                                         as_bytes(SizeBody{.bytes = 200'000, .crc = 0}))));
  }
  const Bytes ping = encode_message({.kind = Kind::ping});
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < 100; ++i) (void)peer.send_some(ping);
    return server->connections() == 0;
  }));
  EXPECT_TRUE(serves());
}

TEST_F(HostileClient, FallsSilent) {
  start({.idle_timeout = milliseconds(100)});
  RawPeer silent = connect_and_greet();
  EXPECT_EQ(silent.goodbye(), CloseReason::idle_timeout);
  RawPeer stalled = connect_and_greet();
  const Bytes request = echo_request(1, 100'000);
  // Bytes keep coming, but the message doesn't end.
  size_t sent = 0;
  while (sent < 10'000 && stalled.send({&request[sent], 1})) {
    ++sent;
    ::usleep(1000);
  }
  EXPECT_LT(sent, 10'000U);
  EXPECT_EQ(stalled.goodbye(), CloseReason::stalled);
  EXPECT_TRUE(all_gone());
}

TEST_F(HostileClient, ComesInMultitudes) {
  start({.max_connections = 10, .hello_timeout = milliseconds(500)});
  std::vector<RawPeer> honest;
  for (int i = 0; i < 10; ++i) honest.push_back(connect_and_greet());
  for (int i = 0; i < 200; ++i) {
    RawPeer refused = connect();
    if (i < 20) EXPECT_EQ(refused.goodbye(), CloseReason::refused);
  }
  for (RawPeer& peer : honest) {
    ASSERT_TRUE(peer.send(echo_request(1)));
    EXPECT_TRUE(peer.receive());
  }
}

TEST_F(HostileClient, LeavesCallsBehind) {
  start();
  for (int i = 0; i < 50; ++i) {
    RawPeer peer = connect_and_greet();
    for (uint64_t id = 1; id <= 20; ++id) {
      ASSERT_TRUE(peer.send(encode_message({.kind = Kind::request, .method = Hang::kId, .request_id = id})));
    }
    if (i % 2 == 0) peer.reset();
  }
  EXPECT_TRUE(all_gone());
  EXPECT_TRUE(eventually([this] { return methods->hanging == 0; }));
}

}  // namespace
}  // namespace cairn::srpc
