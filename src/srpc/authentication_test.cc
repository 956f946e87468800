// Who has the cluster's key is served, everybody else isn't: whoever lacks it, whatever is altered, replayed, reflected
// or left out on the way, on either side.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "srpc/handshake.h"
#include "srpc/testing/any_transport.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/middleman.h"
#include "srpc/testing/raw_peer.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr std::string_view kTurnedAway = "give both sides the same cluster key, or none";

// A side's keys; none at all if `firsts` is empty.
struct Keys {
  explicit Keys(const std::vector<uint8_t>& firsts) {
    if (!firsts.empty()) ring.emplace(keys_of(firsts));
  }
  const KeyRing* get() const { return ring ? &*ring : nullptr; }
  std::optional<KeyRing> ring;
};

TEST(Authentication, ThoseWhoHaveTheKeyTalkAndNobodyElse) {
  const std::vector<std::vector<uint8_t>> rings = {{}, {1}, {2}, {1, 2}, {2, 1}, {3, 4, 5, 1}};
  for (const auto& client : rings) {
    for (const auto& server : rings) {
      SCOPED_TRACE(::testing::PrintToString(client) + " to " + ::testing::PrintToString(server));
      const Keys client_keys(client);
      const Keys server_keys(server);
      const bool right = client.empty() ? server.empty() : std::ranges::count(server, client[0]) > 0;
      Bench bench({.keys = server_keys.get()});
      bench.server.set_map_epoch(77);
      const auto reply = bench.echo(bench.make_channel({.keys = client_keys.get()}));
      EXPECT_EQ(reply.has_value(), right);
      EXPECT_EQ(bench.methods.echoes, right ? 1U : 0U);
      EXPECT_EQ(bench.metrics.connects.value(), right ? 1U : 0U);
      EXPECT_EQ(bench.closed_by_server(CloseReason::not_authenticated), right ? 0U : 1U);
      EXPECT_EQ(bench.closed_by_client(CloseReason::not_authenticated), right ? 0U : 1U);
      if (right) continue;
      const std::string text = reply.error().to_string();
      EXPECT_NE(text.find("not_authenticated: " + std::string(kTurnedAway)), std::string::npos) << text;
    }
  }
}

// What passes in a good handshake, and in its order.
std::vector<Passing> good_handshake(const KeyRing& ring, uint64_t seed = 7) {
  std::vector<Passing> seen;
  const auto watch = [&](const Passing& passing) {
    if (seen.size() < 4) seen.push_back(passing);
    return passing.bytes;
  };
  Bench bench({.keys = &ring}, watch, seed);
  EXPECT_TRUE(bench.connects({.keys = &ring}));
  EXPECT_EQ(seen.size(), 4U);
  return seen;
}

TEST(Authentication, TakesFourMessages) {
  const auto seen = good_handshake(KeyRing(keys_of({1})));
  EXPECT_EQ(seen[0].header.kind, Kind::hello);
  EXPECT_EQ(seen[1].header.kind, Kind::challenge);
  EXPECT_EQ(seen[2].header.kind, Kind::proof);
  EXPECT_EQ(seen[3].header.kind, Kind::hello_reply);
  // Nothing that is sent is the key, or the same the next time.
  const auto key = key_of(1);
  for (const Passing& passing : seen) EXPECT_TRUE(std::ranges::search(passing.bytes, key.bytes()).empty());
  const auto again = good_handshake(KeyRing(keys_of({1})), 8);
  for (size_t i = 0; i < 4; ++i) EXPECT_NE(seen[i].metadata, again[i].metadata);
}

// One connection in which each message of `kind` is changed; no call may be executed.
void expect_no_call(Kind kind, const std::function<Bytes(Bytes)>& change) {
  const KeyRing ring(keys_of({1}));
  Bench bench({.keys = &ring}, [&](const Passing& passing) {
    return passing.header.kind == kind ? passing.with(change(passing.metadata)) : passing.bytes;
  });
  EXPECT_FALSE(bench.connects({.keys = &ring}));
  EXPECT_EQ(bench.methods.echoes, 0U);
  EXPECT_EQ(bench.metrics.connects.value(), 0U);
}

TEST(Authentication, NothingCanBeAltered) {
  for (const Passing& passing : good_handshake(KeyRing(keys_of({1})))) {
    for (size_t at = 0; at < passing.metadata.size(); ++at) {
      SCOPED_TRACE(::testing::Message() << "kind " << int(passing.header.kind) << ", byte " << at);
      expect_no_call(passing.header.kind, [at](Bytes body) {
        body[at] ^= std::byte{0x41};
        return body;
      });
    }
    for (size_t size = 0; size < passing.metadata.size(); ++size) {
      SCOPED_TRACE(::testing::Message() << "kind " << int(passing.header.kind) << ", cut to " << size);
      expect_no_call(passing.header.kind,
                     [size](const Bytes& body) { return Bytes(body.begin(), body.begin() + size); });
    }
    // A newer client may say more beside its proof.
    if (passing.header.kind == Kind::proof) continue;
    SCOPED_TRACE(::testing::Message() << "kind " << int(passing.header.kind) << ", longer");
    expect_no_call(passing.header.kind, [](const Bytes& body) { return body + Bytes(1); });
  }
}

// Each of these changes works where there are no keys; so it is the keys that prevent it.
TEST(Authentication, NothingCanBeDowngraded) {
  struct Case {
    const char* what;
    Kind kind;
    std::function<void(Bytes&)> change;
  };
  const auto hello = [](Bytes& body) { return reinterpret_cast<HelloBody*>(body.data()); };
  const auto reply = [](Bytes& body) { return reinterpret_cast<HelloReplyBody*>(body.data()); };
  const std::vector<Case> cases = {
      {"version", Kind::hello, [&](Bytes& b) { hello(b)->version_max = 1; }},
      {"features", Kind::hello, [&](Bytes& b) { hello(b)->features = 0; }},
      {"poll group", Kind::hello, [&](Bytes& b) { hello(b)->poll_group = 0; }},
      {"client", Kind::hello, [&](Bytes& b) { hello(b)->client_id[3] = 9; }},
      {"features of the connection", Kind::hello_reply, [&](Bytes& b) { reply(b)->features = 1; }},
      {"poll group of the connection", Kind::hello_reply, [&](Bytes& b) { reply(b)->poll_groups = 9; }},
      {"server", Kind::hello_reply, [&](Bytes& b) { reply(b)->server_id[3] = 9; }},
      {"credits", Kind::hello_reply, [&](Bytes& b) { reply(b)->credits = 1; }},
      {"keys, by the client", Kind::hello, [](Bytes& b) { b.resize(kOpenHelloBytes); }},
      {"keys, by the server", Kind::hello_reply, [](Bytes& b) { b.resize(kOpenHelloReplyBytes); }},
  };
  const Protocol protocol{.version_min = 1, .version_max = 2, .features = 3};
  for (const Case& c : cases) {
    for (const bool with_key : {false, true}) {
      SCOPED_TRACE(std::string(c.what) + (with_key ? " with keys" : " without"));
      const Keys keys(with_key ? std::vector<uint8_t>{1} : std::vector<uint8_t>{});
      bool changed = false;
      Bench bench({.keys = keys.get(), .protocol = protocol}, [&](const Passing& passing) {
        if (passing.header.kind != c.kind) return passing.bytes;
        Bytes body = passing.metadata;
        c.change(body);
        changed = true;
        return passing.with(body);
      });
      EXPECT_EQ(bench.connects({.keys = keys.get(), .protocol = protocol}), !with_key);
      EXPECT_TRUE(changed);
      EXPECT_EQ(bench.closed_by_client(CloseReason::not_authenticated), with_key ? 1U : 0U);
    }
  }
}

TEST(Authentication, RecordedHandshakesAreWorthNothing) {
  const KeyRing ring(keys_of({1}));
  std::vector<Bytes> client_said;
  std::vector<Bytes> server_said;
  Bench bench({.keys = &ring}, [&](const Passing& passing) {
    (passing.from == From::client ? client_said : server_said).push_back(passing.bytes);
    return passing.bytes;
  });
  EXPECT_TRUE(bench.connects({.keys = &ring}));
  const auto recorded = [](From from, const std::vector<Bytes>& said) {
    return [from, &said, next = size_t{0}](const Passing& passing) mutable {
      return passing.from == from && next < said.size() ? said[next++] : passing.bytes;
    };
  };
  const std::vector<Bytes> old_client = client_said;
  bench.middleman = recorded(From::client, old_client);
  EXPECT_FALSE(bench.connects({.keys = &ring}));
  EXPECT_EQ(bench.closed_by_server(CloseReason::not_authenticated), 1U);
  // In the place of the server's goodbye comes its old welcome.
  const std::vector<Bytes> old_server = server_said;
  bench.middleman = recorded(From::server, old_server);
  Channel& fooled = bench.make_channel({.keys = &ring});
  EXPECT_FALSE(bench.echo(fooled));
  EXPECT_NE(fooled.last_error().find("proof is wrong"), std::string::npos) << fooled.last_error();
  EXPECT_EQ(bench.methods.echoes, 1U);
}

TEST(Authentication, AProofIsOfItsOwnConnectionOnly) {
  const KeyRing ring(keys_of({1}));
  std::optional<Bytes> first;
  Bench bench({.keys = &ring}, [&](const Passing& passing) {
    if (passing.header.kind != Kind::proof) return passing.bytes;
    if (first) return *first;
    first = passing.bytes;
    return Bytes();
  });
  Channel& held_up = bench.make_channel({.keys = &ring});
  EXPECT_FALSE(bench.connects({.keys = &ring}));
  EXPECT_FALSE(held_up.connected());
  EXPECT_EQ(bench.closed_by_server(CloseReason::not_authenticated), 1U);
}

// A server without the key hands the client's own proof back.
TEST(Authentication, ReflectedProofsAreWorthNothing) {
  const KeyRing ring(keys_of({1}));
  const KeyRing other(keys_of({2}));
  Bytes proof;
  Bench bench({.keys = &other}, [&](const Passing& passing) {
    if (passing.header.kind == Kind::proof) proof = passing.metadata;
    if (passing.header.kind != Kind::goodbye || passing.from != From::server) return passing.bytes;
    HelloReplyBody body;
    body.version = 1;
    body.credits = 10;
    body.max_calls = 10;
    body.byte_credits = 1000;
    std::memcpy(body.proof.data(), proof.data(), proof.size());
    return encode_message({.kind = Kind::hello_reply}, as_bytes(body));
  });
  Channel& channel = bench.make_channel({.keys = &ring});
  EXPECT_FALSE(bench.echo(channel));
  EXPECT_NE(channel.last_error().find("proof is wrong"), std::string::npos) << channel.last_error();
  EXPECT_EQ(bench.metrics.connects.value(), 0U);
}

// A client that says what it is told, and keeps what it hears.
struct Stranger final : EndpointEvents {
  explicit Stranger(Bench& b) : bench(b), endpoint(b.accept()) { endpoint->start(*this); }
  void on_message(Incoming& message) override {
    heard.push_back({message.header, {message.metadata.begin(), message.metadata.end()}});
  }
  void on_closed(const Close&) override { closed = true; }
  void say(Kind kind, std::span<const std::byte> body, size_t data = 0) {
    Header header;
    header.kind = kind;
    header.method = Echo::kId;
    mem::BufChain payload;
    if (data > 0) payload = mem::BufChain(*bench.pool.try_alloc(data));
    endpoint->send(header, body, std::move(payload));
    bench.loop.run_for(milliseconds(1));
  }
  Bytes right_proof(std::span<const std::byte> hello, const SharedKey& key) const {
    return client_proof(key, hello, heard.at(0).metadata);
  }
  Bench& bench;
  std::unique_ptr<Endpoint> endpoint;
  struct Heard {
    Header header;
    Bytes metadata;
  };
  std::vector<Heard> heard;
  bool closed = false;
};

TEST(Authentication, AStrangerGetsOneNumberAndAGoodbye) {
  const Bytes hello = hello_with_key();
  const Bytes open_hello(hello.begin(), hello.begin() + kOpenHelloBytes);
  Bytes another_way = hello;
  another_way[offsetof(HelloBody, auth)] = std::byte{2};
  Bytes future = hello;
  future[0] = future[1] = std::byte{9};
  Bytes far_group = hello;
  far_group[2] = far_group[3] = std::byte{1};
  using Do = std::function<void(Stranger&)>;
  struct Case {
    const char* what;
    Do act;
    CloseReason reason;
    size_t heard;  // the goodbye included
  };
  const auto says = [](Kind kind, const Bytes& body) { return [kind, body](Stranger& s) { s.say(kind, body); }; };
  const auto greets_and_says = [&](Kind kind, const Bytes& body) {
    return [kind, body, hello](Stranger& s) {
      s.say(Kind::hello, hello);
      s.say(kind, body);
    };
  };
  const std::vector<Case> cases = {
      {"a request", says(Kind::request, Bytes(12)), CloseReason::bad_sequence, 1},
      {"payload", [](Stranger& s) { s.say(Kind::request, Bytes(12), 8192); }, CloseReason::too_large, 1},
      {"a proof first", says(Kind::proof, Bytes(32)), CloseReason::bad_sequence, 1},
      {"no key", says(Kind::hello, open_hello), CloseReason::not_authenticated, 1},
      {"another kind of proof", says(Kind::hello, another_way), CloseReason::not_authenticated, 1},
      {"half a nonce", says(Kind::hello, Bytes(hello.begin(), hello.end() - 1)), CloseReason::not_authenticated, 1},
      {"half a hello", says(Kind::hello, Bytes(39)), CloseReason::bad_sequence, 1},
      {"hello again", greets_and_says(Kind::hello, hello), CloseReason::bad_sequence, 2},
      {"a request in place of the proof", greets_and_says(Kind::request, Bytes(12)), CloseReason::bad_sequence, 2},
      {"payload in place of the proof",
       [&](Stranger& s) {
         s.say(Kind::hello, hello);
         s.say(Kind::request, Bytes(12), 8192);
       },
       CloseReason::too_large, 2},
      {"a ping in place of the proof", greets_and_says(Kind::ping, {}), CloseReason::bad_sequence, 2},
      {"no proof", greets_and_says(Kind::proof, {}), CloseReason::not_authenticated, 2},
      {"half a proof", greets_and_says(Kind::proof, Bytes(31)), CloseReason::not_authenticated, 2},
      {"zeroes", greets_and_says(Kind::proof, Bytes(32)), CloseReason::not_authenticated, 2},
      {"another key's proof",
       [&](Stranger& s) {
         s.say(Kind::hello, hello);
         s.say(Kind::proof, s.right_proof(hello, key_of(2)));
       },
       CloseReason::not_authenticated, 2},
      {"another hello's proof",
       [&](Stranger& s) {
         s.say(Kind::hello, hello);
         s.say(Kind::proof, s.right_proof(open_hello, key_of(1)));
       },
       CloseReason::not_authenticated, 2},
      // Who can't prove himself doesn't learn either what would have been wrong beside.
      {"another version",
       [&](Stranger& s) {
         s.say(Kind::hello, future);
         s.say(Kind::proof, Bytes(32));
       },
       CloseReason::not_authenticated, 2},
      {"a poll group that doesn't exist",
       [&](Stranger& s) {
         s.say(Kind::hello, far_group);
         s.say(Kind::proof, Bytes(32));
       },
       CloseReason::not_authenticated, 2},
      // With the right proof these are answered as everywhere.
      {"a proof twice",
       [&](Stranger& s) {
         s.say(Kind::hello, hello);
         const Bytes proof = s.right_proof(hello, key_of(1));
         s.say(Kind::proof, proof);
         s.say(Kind::proof, proof);
       },
       CloseReason::bad_sequence, 3},
      {"another version, proved",
       [&](Stranger& s) {
         s.say(Kind::hello, future);
         s.say(Kind::proof, s.right_proof(future, key_of(1)));
       },
       CloseReason::bad_version, 2},
      {"nothing after the hello",
       [&](Stranger& s) {
         s.bench.loop.run_for(seconds(3));
         s.say(Kind::hello, hello);
         s.bench.loop.run_for(seconds(3));  // six altogether: a hello doesn't prolong it
       },
       CloseReason::hello_timeout, 2},
  };
  const KeyRing ring(keys_of({1}));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Bench bench({.keys = &ring});
    bench.server.set_map_epoch(77);
    Stranger stranger(bench);
    c.act(stranger);
    EXPECT_EQ(bench.pool.free_bytes(), bench.pool.total_bytes());
    EXPECT_TRUE(bench.loop.run_until([&] { return stranger.closed; }));
    EXPECT_EQ(bench.methods.echoes, 0U);
    EXPECT_EQ(bench.closed_by_server(c.reason), 1U);
    ASSERT_EQ(stranger.heard.size(), c.heard);
    const auto& last = stranger.heard.back();
    EXPECT_EQ(last.header.kind, Kind::goodbye);
    EXPECT_EQ(close_reason_name(close_reason_from_wire(last.header.status)), close_reason_name(c.reason));
    if (c.reason == CloseReason::not_authenticated) {
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(last.metadata.data()), last.metadata.size()), kTurnedAway);
    }
    bool proved = false;
    for (const auto& heard : stranger.heard) {
      proved = proved || heard.header.kind == Kind::hello_reply;
      EXPECT_EQ(heard.header.map_epoch, proved ? 77U : 0U);
    }
  }
}

// What comes to a client in place of the server's first and second message, or none in place of none.
TEST(Authentication, AnImpostorIsFoundOut) {
  const KeyRing ring(keys_of({1}));
  const auto whole = good_handshake(ring);
  const Bytes challenge = whole[1].bytes;
  const Bytes welcome = whole[3].bytes;
  const Bytes open_welcome = whole[3].with(std::span(whole[3].metadata).first(kOpenHelloReplyBytes));
  struct Case {
    const char* what;
    std::vector<Bytes> says;
    CloseReason reason;
  };
  const std::vector<Case> cases = {
      {"welcome without a challenge", {welcome}, CloseReason::not_authenticated},
      {"open welcome without a challenge", {open_welcome}, CloseReason::not_authenticated},
      {"open welcome", {challenge, open_welcome}, CloseReason::not_authenticated},
      {"old welcome", {challenge, welcome}, CloseReason::not_authenticated},
      {"half a welcome", {challenge, whole[3].with(Bytes(87))}, CloseReason::not_authenticated},
      {"no challenge", {whole[1].with(Bytes())}, CloseReason::bad_sequence},
      {"half a challenge", {whole[1].with(Bytes(31))}, CloseReason::bad_sequence},
      {"two challenges", {challenge + challenge}, CloseReason::bad_sequence},
      {"a reply", {encode_message({.kind = Kind::reply})}, CloseReason::bad_sequence},
      {"a proof", {encode_message({.kind = Kind::proof}, Bytes(32))}, CloseReason::bad_sequence},
      {"a ping behind the challenge", {challenge + encode_message({.kind = Kind::ping})}, CloseReason::bad_sequence},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    size_t next = 0;
    std::string told;
    Bench bench({.keys = &ring}, [&](const Passing& passing) {
      if (passing.from == From::server) return next < c.says.size() ? c.says[next++] : Bytes();
      if (passing.header.kind == Kind::goodbye) {
        told.assign(reinterpret_cast<const char*>(passing.metadata.data()), passing.metadata.size());
        EXPECT_EQ(passing.header.status, static_cast<uint16_t>(c.reason));
      }
      return passing.bytes;
    });
    EXPECT_FALSE(bench.connects({.keys = &ring}));
    EXPECT_EQ(bench.closed_by_client(c.reason), 1U);
    EXPECT_EQ(bench.methods.echoes, 0U);
    if (c.reason == CloseReason::not_authenticated) EXPECT_EQ(told, "");
  }
  // Who has no key doesn't answer a challenge.
  Bench bench(
      {}, [&](const Passing& passing) { return passing.header.kind == Kind::hello_reply ? challenge : passing.bytes; });
  Channel& channel = bench.make_channel();
  EXPECT_FALSE(bench.echo(channel));
  EXPECT_NE(channel.last_error().find("this side has none"), std::string::npos) << channel.last_error();
}

TEST(Authentication, KeysChangeWhileConnectionsStay) {
  KeyRing server(keys_of({1}));
  KeyRing client(keys_of({1}));
  const KeyRing forgetful(keys_of({1}));
  Bench bench({.keys = &server});
  Channel& oldest = bench.make_channel({.keys = &client});
  EXPECT_TRUE(bench.echo(oldest));
  // In three steps, and in each the servers first or the clients first: every mixture works.
  const std::vector<std::vector<uint8_t>> steps = {{1, 2}, {2, 1}, {2}};
  uint64_t connects = 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    (i % 2 == 0 ? server : client).replace(keys_of(steps[i]));
    EXPECT_TRUE(bench.connects({.keys = &client}));
    (i % 2 == 0 ? client : server).replace(keys_of(steps[i]));
    EXPECT_TRUE(bench.connects({.keys = &client}));
    EXPECT_TRUE(bench.echo(oldest));
    connects += 2;
    EXPECT_EQ(bench.metrics.connects.value(), connects);
  }
  EXPECT_EQ(bench.closed_by_server(CloseReason::not_authenticated), 0U);
  EXPECT_FALSE(bench.connects({.keys = &forgetful}));
  EXPECT_TRUE(bench.echo(oldest));
}

// A key that is taken back counts no more, not even for those who are in the middle of proving it.
TEST(Authentication, ATakenBackKeyIsWorthNothingAtOnce) {
  KeyRing server(keys_of({1, 2}));
  const KeyRing client(keys_of({1}));
  Bench bench({.keys = &server}, [&](const Passing& passing) {
    if (passing.header.kind == Kind::proof) server.replace(keys_of({2}));
    return passing.bytes;
  });
  EXPECT_FALSE(bench.connects({.keys = &client}));
  EXPECT_EQ(bench.closed_by_server(CloseReason::not_authenticated), 1U);
}

class AuthenticationOver : public AnyTransport {
 protected:
  void SetUp() override { start({.keys = &server_keys}); }
  Result<Message<EchoBody>> echo(Channel& channel, size_t size, Duration patience) {
    return client->run(
        +[](Channel* c, mem::Pool* pool, size_t bytes, Duration t) -> Task<Result<Message<EchoBody>>> {
          const Time deadline = c->loop().now() + t;
          auto payload = co_await make_payload(pool, bytes);
          co_return co_await c->call<Echo>({.meta = {4, 0}, .data = *std::move(payload)}, {.deadline = deadline});
        },
        &channel, &client->pool, size, patience);
  }
  // One thread at a time has a ring; here each side's own.
  KeyRing server_keys{keys_of({1})};
  KeyRing client_keys{keys_of({1})};
  KeyRing wrong_keys{keys_of({2})};
};
INSTANTIATE_TEST_SUITE_P(Transports, AuthenticationOver, kAllCarriers, &name_of);

TEST_P(AuthenticationOver, ServesThoseWhoHaveTheKey) {
  Channel& channel = make_channel({.keys = &client_keys});
  for (const size_t size : {size_t{0}, size_t{100}, size_t{5000}, size_t{1} << 20}) {
    const auto reply = echo(channel, size, seconds(30));
    ASSERT_TRUE(reply) << reply.error().to_string();
    EXPECT_EQ(reply->data.size(), size);
  }
  EXPECT_EQ(client->metrics.connects.value(), 1U);
}

TEST_P(AuthenticationOver, TurnsOthersAway) {
  for (const KeyRing* keys : {static_cast<const KeyRing*>(nullptr), static_cast<const KeyRing*>(&wrong_keys)}) {
    Channel& channel = make_channel({.backoff_min = seconds(100), .backoff_max = seconds(100), .keys = keys});
    const auto reply = client->run(&call_once_turned_away, &channel);
    EXPECT_EQ(reply.code(), Errc::timed_out);
    EXPECT_NE(reply.error().to_string().find("not_authenticated"), std::string::npos) << reply.error().to_string();
  }
  EXPECT_EQ(host->call([this] { return methods->echoes; }), 0U);
  EXPECT_EQ(client->metrics.connects.value(), 0U);
  EXPECT_TRUE(echo(make_channel({.keys = &client_keys}), 0, seconds(30)));
}

TEST_P(AuthenticationOver, KeepsConnectionsWhileKeysChange) {
  Channel& channel = make_channel({.keys = &client_keys});
  EXPECT_TRUE(echo(channel, 100, seconds(30)));
  for (const std::vector<uint8_t>& step : {std::vector<uint8_t>{1, 2}, {2, 1}, {2}}) {
    const auto replace = [&step](KeyRing& ring) {
      return [&step, &ring] {
        ring.replace(keys_of(step));
        return 0;
      };
    };
    host->call(replace(server_keys));
    client->call(replace(client_keys));
    EXPECT_TRUE(echo(channel, 100, seconds(30)));
    EXPECT_TRUE(echo(make_channel({.keys = &client_keys}), 100, seconds(30)));
  }
  EXPECT_EQ(client->metrics.connects.value(), 4U);
}

}  // namespace
}  // namespace cairn::srpc
