// TLS over a stream in memory: whatever pieces the bytes come in, wherever they end, whatever is changed on the way.
#include "srpc/tls/tls_stream.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/metrics.h"
#include "srpc/testing/byte_pipe.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/manual_loop.h"
#include "srpc/tls/tls_context.h"
#include "srpc/tls/tls_key.h"

namespace cairn::srpc::tls {
namespace {

using namespace srpc::testing;
using stream::Moved;

std::string text_of_size(size_t size, unsigned seed) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 131 + i / 251 + seed) & 0xff);
  return text;
}

// The stream of one side, which another one may go on with.
class OpenTlsStream final : public TlsStream {
 public:
  using TlsStream::lower;
  using TlsStream::take_session;
  using TlsStream::TlsStream;
};

// Sends what it is given and keeps what comes, into vectors that fit nothing.
struct Party final : stream::StreamEvents {
  explicit Party(std::unique_ptr<OpenTlsStream> s) : stream(std::move(s)) {}

  void on_receivable() override {
    while (!outcome) {
      std::string into(3 + 70 + 20'000, '\0');
      iovec vectors[] = {{into.data(), 3}, {into.data() + 3, 70}, {into.data() + 73, into.size() - 73}};
      const size_t n = first_vector_only ? 1 : 3;
      Moved moved = stream->receive({vectors, n});
      if (moved.how == Moved::How::would_block) return;
      if (moved.how != Moved::How::some) {
        outcome = std::move(moved);
        return stream->set_receiving(false);
      }
      received += into.substr(0, moved.bytes);
      if (first_vector_only) return;
      if (moved.bytes < into.size() && !moved.ask_again) return;
    }
  }
  void on_sendable() override { send(""); }
  void on_flush() override {}

  void send(std::string_view text) {
    to_send += text;
    while (!to_send.empty()) {
      const size_t part = to_send.size() / 3;
      iovec vectors[] = {{to_send.data(), part}, {to_send.data() + part, to_send.size() - part}};
      const Moved moved = stream->send(part == 0 ? std::span(vectors + 1, 1) : std::span(vectors));
      if (moved.how != Moved::How::some) {
        EXPECT_EQ(moved.how, Moved::How::would_block) << moved.error;
        return;
      }
      to_send.erase(0, moved.bytes);
    }
    if (ends_after_sending) stream->shutdown_send();
  }

  std::unique_ptr<OpenTlsStream> stream;
  std::string to_send;
  std::string received;
  std::optional<Moved> outcome;
  bool ends_after_sending = false;
  bool first_vector_only = false;
};

constexpr size_t kClient = 0;
constexpr size_t kServer = 1;

class TlsPair {
 public:
  explicit TlsPair(const std::vector<uint8_t>& client_keys = {1}, const std::vector<uint8_t>& server_keys = {1},
                   Tls policy = Tls::required)
      : client_ring(keys_of(client_keys)), server_ring(keys_of(server_keys)) {
    auto client_session = context.client(client_ring);
    auto server_session = context.server(server_ring, policy);
    client_tls = client_session.get();
    server_tls = server_session.get();
    client.emplace(std::make_unique<OpenTlsStream>(loop, pipe.end(kClient), std::move(client_session)));
    server.emplace(std::make_unique<OpenTlsStream>(loop, pipe.end(kServer), std::move(server_session)));
  }
  void begin() {
    server->stream->start(*server);
    client->stream->start(*client);
  }
  // Until nothing moves any more.
  void run() {
    for (int quiet = 0; quiet < 3;) {
      const bool moved = pipe.step();
      quiet = loop.step() || moved ? 0 : quiet + 1;
    }
  }
  uint64_t failures(HandshakeFailure why) const {
    return context_metrics().failures[static_cast<size_t>(why)]->value();
  }
  TlsMetrics& context_metrics() const { return const_cast<TlsContext&>(context).metrics(); }

  ManualLoop loop;
  Registry registry;
  TlsContext context{registry};
  BytePipe pipe;
  const KeyRing client_ring;
  const KeyRing server_ring;
  TlsSession* client_tls = nullptr;
  TlsSession* server_tls = nullptr;
  std::optional<Party> client;
  std::optional<Party> server;
};

TEST(TlsKey, IsAnotherOneThanTheClusterKey) {
  // Computed elsewhere: HMAC-SHA256 with the bytes 1 to 32 as the key.
  const SharedKey key = key_of(1);
  EXPECT_EQ(to_hex(tls_secret(key)), "d61b4e624c7775d231daa9d9c753910f3772e743bdd56b1c099a5357c6c661c2");
  EXPECT_EQ(tls_identity(key), "srpc1:219fc376cba32998");
  EXPECT_NE(tls_identity(key), tls_identity(key_of(2)));
}

TEST(TlsStream, CarriesBytesInWhateverPieces) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1500}, size_t{1} << 20}) {
    for (const size_t room : {size_t{100}, size_t{1} << 30}) {
      SCOPED_TRACE(::testing::Message() << "pieces of " << piece << ", room for " << room);
      TlsPair pair;
      for (auto& lane : pair.pipe.lanes) {
        lane.most_at_once = piece;
        lane.room = room;
      }
      const std::string request = text_of_size(100'000, 1);
      const std::string reply = text_of_size(150'000, 2);
      pair.client->ends_after_sending = pair.server->ends_after_sending = true;
      pair.begin();
      pair.client->send(request);
      pair.server->send(reply);
      pair.run();
      EXPECT_TRUE(pair.server->received == request);
      EXPECT_TRUE(pair.client->received == reply);
      for (const Party* party : {&*pair.client, &*pair.server}) {
        ASSERT_TRUE(party->outcome);
        EXPECT_EQ(party->outcome->how, Moved::How::end);
      }
      EXPECT_EQ(pair.context_metrics().handshakes.value(), 2U);
    }
  }
}

TEST(TlsStream, NothingPassesInTheClear) {
  TlsPair pair;
  const std::string secret = "the cluster's most secret payload";
  pair.begin();
  pair.client->send(secret);
  pair.server->send(secret);
  pair.run();
  EXPECT_EQ(pair.client_tls->cipher(), "TLS_AES_128_GCM_SHA256");
  for (const auto& lane : pair.pipe.lanes) {
    const std::string_view passed(reinterpret_cast<const char*>(lane.passed.data()), lane.passed.size());
    EXPECT_EQ(passed.find(secret.substr(0, 8)), std::string_view::npos);
    EXPECT_TRUE(std::ranges::search(lane.passed, key_of(1).bytes()).empty());
    EXPECT_TRUE(std::ranges::search(lane.passed, tls_secret(key_of(1))).empty());
  }
  EXPECT_EQ(pair.client->received, secret);
}

TEST(TlsStream, TheHandshakeIsShortAndNothingFollowsIt) {
  TlsPair pair;
  pair.begin();
  pair.run();
  // No certificate, no ticket.
  EXPECT_LT(pair.pipe.lanes[kClient].passed.size(), 600U);
  EXPECT_LT(pair.pipe.lanes[kServer].passed.size(), 400U);
  EXPECT_FALSE(pair.client->outcome || pair.server->outcome);
}

// A stream that is cut anywhere isn't taken for one that has ended.
TEST(TlsStream, TellsACutFromAnEnd) {
  const std::string request = text_of_size(300, 1);
  const auto talk = [&](TlsPair& pair) {
    pair.client->ends_after_sending = pair.server->ends_after_sending = true;
    pair.begin();
    pair.client->send(request);
    pair.server->send(request);
    pair.run();
  };
  TlsPair whole;
  talk(whole);
  for (const size_t from : {kClient, kServer}) {
    const size_t total = whole.pipe.lanes[from].passed.size();
    for (size_t at = 0; at < total; ++at) {
      SCOPED_TRACE(::testing::Message() << (from == kClient ? "client" : "server") << " cut at " << at);
      TlsPair pair;
      pair.pipe.lanes[from].cut_at = at;
      talk(pair);
      const Party& heard = from == kClient ? *pair.server : *pair.client;
      ASSERT_TRUE(heard.outcome);
      // Before the first byte nobody knows that it was to be TLS.
      if (at > 0) {
        EXPECT_EQ(heard.outcome->how, Moved::How::failed);
        EXPECT_EQ(heard.outcome->reason, CloseReason::connection_lost);
        EXPECT_NE(heard.outcome->error.find("cut off"), std::string::npos) << heard.outcome->error;
      }
      EXPECT_TRUE(request.starts_with(heard.received));
    }
  }
}

TEST(TlsStream, NothingCanBeAltered) {
  const std::string request = text_of_size(200, 1);
  const auto talk = [&](TlsPair& pair) {
    pair.client->ends_after_sending = pair.server->ends_after_sending = true;
    pair.begin();
    pair.client->send(request);
    pair.server->send(request);
    pair.run();
  };
  TlsPair whole;
  talk(whole);
  for (const size_t from : {kClient, kServer}) {
    const size_t total = whole.pipe.lanes[from].passed.size();
    for (size_t at = 0; at < total; ++at) {
      for (const uint8_t bit : {uint8_t{0x01}, uint8_t{0x80}}) {
        SCOPED_TRACE(::testing::Message()
                     << (from == kClient ? "client" : "server") << ", byte " << at << ", bit " << int(bit));
        TlsPair pair;
        pair.pipe.lanes[from].change = [at, bit](size_t now, std::byte byte) {
          return now == at ? byte ^ std::byte{bit} : byte;
        };
        talk(pair);
        const Party& heard = from == kClient ? *pair.server : *pair.client;
        EXPECT_TRUE(request.starts_with(heard.received));
        // The version of a record is said to be ignored (RFC 8446, 5.1); everything else ends it, or never ends, which
        // the time limits are for.
        const bool whole_anyway = heard.received == request && heard.outcome && heard.outcome->how == Moved::How::end;
        if (whole_anyway) EXPECT_TRUE(at == 1 || at == 2) << "nobody noticed";
        if (heard.outcome && !whole_anyway && heard.outcome->how == Moved::How::end) {
          ADD_FAILURE() << "an end that wasn't meant, after " << heard.received.size() << " bytes";
        }
      }
    }
  }
}

TEST(TlsStream, KeysMustBeTheSame) {
  const std::vector<std::vector<uint8_t>> rings = {{1}, {2}, {1, 2}, {2, 1}, {3, 4, 5, 1}};
  for (const auto& client : rings) {
    for (const auto& server : rings) {
      SCOPED_TRACE(::testing::PrintToString(client) + " to " + ::testing::PrintToString(server));
      const bool right = std::ranges::count(server, client[0]) > 0;
      TlsPair pair(client, server);
      pair.begin();
      pair.client->send("hello");
      pair.run();
      EXPECT_EQ(pair.server->received, right ? "hello" : "");
      EXPECT_EQ(pair.context_metrics().handshakes.value(), right ? 2U : 0U);
      EXPECT_EQ(pair.failures(HandshakeFailure::key), right ? 0U : 2U);
      if (right) continue;
      for (const Party* party : {&*pair.client, &*pair.server}) {
        ASSERT_TRUE(party->outcome);
        EXPECT_EQ(party->outcome->how, Moved::How::failed);
        EXPECT_EQ(party->outcome->reason, CloseReason::not_authenticated);
      }
      EXPECT_EQ(pair.server->outcome->error, "TLS: the client has another cluster key");
      EXPECT_EQ(pair.client->outcome->error, "TLS: the other side doesn't accept this side's cluster key");
    }
  }
}

TEST(TlsStream, ChangesItsKeysOnTheWay) {
  TlsPair pair;
  pair.client_tls->set_records_per_key(3);
  pair.server_tls->set_records_per_key(2);
  pair.pipe.lanes[kClient].room = 5000;
  pair.pipe.lanes[kServer].most_at_once = 333;
  const std::string text = text_of_size(400'000, 3);
  pair.begin();
  for (size_t at = 0; at < text.size(); at += 10'000) {
    pair.client->send(text.substr(at, 10'000));
    pair.server->send(text.substr(at, 10'000));
    pair.run();
  }
  EXPECT_TRUE(pair.server->received == text);
  EXPECT_TRUE(pair.client->received == text);
}

// The stream at the first thread has taken more from below than was asked of it.
TEST(TlsStream, ASessionMovesWithAllThatItHolds) {
  TlsPair pair;
  pair.begin();
  pair.run();
  pair.server->first_vector_only = true;
  pair.pipe.lanes[kServer].room = pair.pipe.lanes[kServer].waiting.size() + 10;
  const std::string request = text_of_size(40'000, 1);
  const std::string reply = text_of_size(5000, 2);
  pair.client->send(request);
  pair.server->on_receivable();
  EXPECT_EQ(pair.server->received.size(), 3U);
  pair.server->send(reply);  // encrypted, and most of it has no room below

  struct Wrapped final : stream::ByteStream {
    explicit Wrapped(stream::ByteStream& b) : below(b) {}
    void start(stream::StreamEvents&) override {}
    Moved receive(std::span<iovec> vectors) override { return below.receive(vectors); }
    Moved send(std::span<iovec> vectors) override { return below.send(vectors); }
    void set_receiving(bool wanted) override { below.set_receiving(wanted); }
    void want_flush() override {}
    void shutdown_send() override { below.shutdown_send(); }
    const std::string& peer() const override { return below.peer(); }
    stream::ByteStream& below;
  };
  Party after(std::make_unique<OpenTlsStream>(pair.loop, std::make_unique<Wrapped>(pair.server->stream->lower()),
                                              pair.server->stream->take_session()));
  after.to_send = std::move(pair.server->to_send);
  after.stream->start(after);
  pair.pipe.lanes[kServer].room = std::numeric_limits<size_t>::max();
  for (int i = 0; i < 10; ++i) {
    while (pair.loop.step()) {
    }
    after.send("");
    after.on_receivable();
    pair.client->on_receivable();
  }
  EXPECT_TRUE(pair.server->received + after.received == request);
  EXPECT_TRUE(pair.client->received == reply);
  after.stream.reset();
}

// --- Others at the other end: OpenSSL with settings of its own ---

class ForeignClient {
 public:
  explicit ForeignClient(BytePipe& pipe) : settings_(SSL_CTX_new(TLS_client_method())), end_(pipe.end(kClient)) {}
  ~ForeignClient() {
    SSL_free(ssl_);
    SSL_CTX_free(settings_);
  }
  SSL_CTX* settings() { return settings_; }
  SSL* ssl() { return ssl_; }
  void use_key(std::string id, const Sha256& key) {
    identity = std::move(id);
    secret = key;
    SSL_CTX_set_psk_use_session_callback(
        settings_, [](SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* size, SSL_SESSION** session) {
          auto& self = *static_cast<ForeignClient*>(SSL_get_app_data(ssl));
          static constexpr unsigned char kCipher[] = {0x13, 0x01};
          *session = SSL_SESSION_new();
          SSL_SESSION_set1_master_key(*session, reinterpret_cast<const unsigned char*>(self.secret.data()),
                                      self.secret.size());
          SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, kCipher));
          SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
          *id = reinterpret_cast<const unsigned char*>(self.identity.data());
          *size = self.identity.size();
          return 1;
        });
  }
  void begin() {
    ssl_ = SSL_new(settings_);
    SSL_set_app_data(ssl_, this);
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_);
    step();
  }
  // Between the pipe and OpenSSL.
  void step() {
    char bytes[4096];
    iovec vector{bytes, sizeof bytes};
    for (Moved moved = end_->receive({&vector, 1}); moved.how == Moved::How::some;
         moved = end_->receive({&vector, 1})) {
      BIO_write(SSL_get_rbio(ssl_), bytes, static_cast<int>(moved.bytes));
    }
    if (!SSL_is_init_finished(ssl_)) SSL_do_handshake(ssl_);
    char nothing[1];
    (void)SSL_read(ssl_, nothing, 1);
    flush();
  }
  void flush() {
    char bytes[4096];
    for (int n = BIO_read(SSL_get_wbio(ssl_), bytes, sizeof bytes); n > 0;
         n = BIO_read(SSL_get_wbio(ssl_), bytes, sizeof bytes)) {
      iovec vector{bytes, static_cast<size_t>(n)};
      (void)end_->send({&vector, 1});
    }
  }
  stream::ByteStream& end() { return *end_; }

  std::string identity;
  Sha256 secret{};

 private:
  SSL_CTX* settings_;
  SSL* ssl_ = nullptr;
  std::unique_ptr<stream::ByteStream> end_;
};

class TlsServer : public ::testing::Test {
 protected:
  void start(Tls policy = Tls::required) {
    server.reset();
    raw.reset();
    pipe.reset();
    auto session = context.server(ring, policy);
    tls = session.get();
    server.emplace(std::make_unique<OpenTlsStream>(loop, pipe.end(kServer), std::move(session)));
    server->stream->start(*server);
  }
  void run(ForeignClient& client) {
    for (int i = 0; i < 20; ++i) {
      client.step();
      (void)pipe.step();
      (void)loop.step();
    }
  }
  void send_raw(std::string_view bytes) {
    raw = pipe.end(kClient);
    iovec vector{const_cast<char*>(bytes.data()), bytes.size()};
    (void)raw->send({&vector, 1});
    for (int i = 0; i < 5; ++i) {
      (void)pipe.step();
      (void)loop.step();
    }
  }
  uint64_t failures(HandshakeFailure why) { return context.metrics().failures[static_cast<size_t>(why)]->value(); }

  ManualLoop loop;
  Registry registry;
  TlsContext context{registry};
  BytePipe pipe;
  const KeyRing ring{keys_of({1, 2})};
  TlsSession* tls = nullptr;
  std::optional<Party> server;
  std::unique_ptr<stream::ByteStream> raw;
};

TEST_F(TlsServer, TakesForeignClientsWithTheKey) {
  for (const uint8_t key : {uint8_t{1}, uint8_t{2}}) {
    start();
    ForeignClient client(pipe);
    client.use_key(tls_identity(key_of(key)), tls_secret(key_of(key)));
    client.begin();
    run(client);
    EXPECT_TRUE(SSL_is_init_finished(client.ssl()));
    EXPECT_EQ(SSL_session_reused(client.ssl()), 1);
    SSL_write(client.ssl(), "hello", 5);
    run(client);
    EXPECT_EQ(server->received, "hello");
  }
}

TEST_F(TlsServer, RefusesOtherVersions) {
  start();
  ForeignClient client(pipe);
  SSL_CTX_set_max_proto_version(client.settings(), TLS1_2_VERSION);
  client.begin();
  run(client);
  ASSERT_TRUE(server->outcome);
  EXPECT_EQ(server->outcome->reason, CloseReason::tls_failed);
  EXPECT_NE(server->outcome->error.find("1.3 is needed"), std::string::npos) << server->outcome->error;
  EXPECT_EQ(failures(HandshakeFailure::version), 1U);
}

TEST_F(TlsServer, RefusesThoseWithoutTheKey) {
  struct Case {
    const char* what;
    bool offers;
    std::string identity;
    Sha256 secret;
    const char* error;
  };
  const Case cases[] = {
      {"none", false, "", {}, "TLS: the client has no cluster key"},
      {"unknown", true, tls_identity(key_of(3)), tls_secret(key_of(3)), "TLS: the client has another cluster key"},
      {"the name, not the key", true, tls_identity(key_of(1)), tls_secret(key_of(3)),
       "TLS: the client doesn't know the cluster key that it names, or somebody alters what it says"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    start();
    ForeignClient client(pipe);
    if (c.offers) client.use_key(c.identity, c.secret);
    client.begin();
    run(client);
    EXPECT_FALSE(SSL_is_init_finished(client.ssl()));
    ASSERT_TRUE(server->outcome);
    EXPECT_EQ(server->outcome->reason, CloseReason::not_authenticated);
    EXPECT_EQ(server->outcome->error, c.error);
    EXPECT_EQ(server->received, "");
  }
  EXPECT_EQ(failures(HandshakeFailure::key), 3U);
}

// The exchange without an ephemeral key would open all recordings to who learns the cluster's key.
TEST_F(TlsServer, RefusesToDoWithoutAnEphemeralKey) {
  start();
  ForeignClient client(pipe);
  SSL_CTX_set_options(client.settings(), SSL_OP_ALLOW_NO_DHE_KEX);
  client.use_key(tls_identity(key_of(1)), tls_secret(key_of(1)));
  client.begin();
  run(client);
  ASSERT_TRUE(SSL_is_init_finished(client.ssl()));
  EXPECT_GT(SSL_get_negotiated_group(client.ssl()), 0);
}

// A client that makes the server answer and never reads: what is kept for it is bounded, and it is served on.
TEST_F(TlsServer, KeepsLittleForThoseWhoDoNotRead) {
  start();
  ForeignClient client(pipe);
  client.use_key(tls_identity(key_of(1)), tls_secret(key_of(1)));
  client.begin();
  run(client);
  ASSERT_TRUE(SSL_is_init_finished(client.ssl()));
  pipe.lanes[kServer].room = 0;
  size_t taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    (void)SSL_do_handshake(client.ssl());
    client.flush();
    (void)pipe.step();
    (void)loop.step();
    if (pipe.lanes[kClient].waiting.empty()) taken = pipe.lanes[kClient].passed.size();
  }
  // 10,000 answers of 22 bytes would be more than is kept.
  EXPECT_GT(pipe.lanes[kClient].waiting.size() + taken, 200'000U);
  EXPECT_LT(tls->unsent_bytes(), size_t{100} << 10);
  EXPECT_FALSE(server->outcome) << server->outcome->error;
  pipe.lanes[kServer].room = std::numeric_limits<size_t>::max();
  SSL_write(client.ssl(), "hello", 5);
  for (int i = 0; i < 2000; ++i) run(client);
  EXPECT_EQ(server->received, "hello");
}

TEST_F(TlsServer, BothSidesMayChangeKeysAtOnce) {
  start();
  ForeignClient client(pipe);
  client.use_key(tls_identity(key_of(1)), tls_secret(key_of(1)));
  client.begin();
  run(client);
  ASSERT_TRUE(SSL_is_init_finished(client.ssl()));
  tls->set_records_per_key(1);
  for (int i = 0; i < 5; ++i) {
    server->send("reply ");
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    SSL_write(client.ssl(), "more", 4);
    run(client);
  }
  EXPECT_EQ(server->received, "moremoremoremoremore");
  EXPECT_FALSE(server->outcome);
}

TEST_F(TlsServer, TellsPlainClientsApart) {
  start(Tls::required);
  send_raw("SRPC");
  ASSERT_TRUE(server->outcome);
  EXPECT_EQ(server->outcome->how, Moved::How::refused);
  EXPECT_EQ(server->outcome->reason, CloseReason::tls_failed);
  EXPECT_EQ(server->outcome->error, "this server takes TLS only");
  // The goodbye, in the clear.
  server->send("goodbye");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(pipe.lanes[kServer].passed.data()), 7), "goodbye");
  EXPECT_EQ(failures(HandshakeFailure::plain), 1U);

  start(Tls::allowed);
  send_raw("SRPC and so on");
  EXPECT_EQ(server->received, "SRPC and so on");
}

TEST_F(TlsServer, EndsWithGarbage) {
  for (const std::string& bytes : {std::string("\x16garbage garbage garbage"), std::string("\x16\x03\x01\xff\xff", 5),
                                   std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10),
                                   std::string("\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9)}) {
    start();
    send_raw(bytes);
    ASSERT_TRUE(server->outcome);
    EXPECT_EQ(server->outcome->how, Moved::How::failed);
    EXPECT_EQ(server->received, "");
  }
}

}  // namespace
}  // namespace cairn::srpc::tls
