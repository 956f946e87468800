// An older and a newer version of the protocol in one process, in both roles. What a newer one may change: the range of
// versions, features, and that its hello bodies are longer; and all of that with and without keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "srpc/handshake.h"
#include "srpc/testing/any_transport.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/middleman.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

constexpr uint64_t kCompression = 1;  // whatever they may be called one day
constexpr uint64_t kPriorities = 1 << 5;
constexpr uint64_t kFarFuture = uint64_t{1} << 63;

const std::vector<Protocol> kProtocols = {
    {.version_min = 1, .version_max = 1, .features = 0},
    {.version_min = 1, .version_max = 1, .features = kCompression},
    {.version_min = 1, .version_max = 2, .features = 0},
    {.version_min = 1, .version_max = 2, .features = kCompression | kPriorities},
    {.version_min = 2, .version_max = 2, .features = kPriorities | kFarFuture},
    {.version_min = 2, .version_max = 3, .features = kFarFuture},
};

std::string to_string(const Protocol& p) {
  return std::to_string(p.version_min) + ".." + std::to_string(p.version_max) + "/" + std::to_string(p.features);
}

// What two sides have to agree upon; no version if they can't talk.
struct Common {
  Common(const Protocol& a, const Protocol& b) : features(a.features & b.features) {
    const uint8_t highest = std::min(a.version_max, b.version_max);
    if (highest >= std::max(a.version_min, b.version_min)) version = highest;
  }
  std::optional<uint8_t> version;
  uint64_t features;
};

// Both sides as if each were of a release that says more in its hello than this build knows: behind every body that a
// side sends stand some bytes more. Where there are keys it has them, too, because what is added is proved with the
// rest.
class SaysMore {
 public:
  explicit SaysMore(std::optional<SharedKey> key) : key_(std::move(key)) {}

  Bytes operator()(const Passing& passing) {
    switch (passing.header.kind) {
      case Kind::hello:
        short_hello_ = passing.metadata;
        long_hello_ = longer(passing.metadata, key_ ? sizeof(HelloBody) : kOpenHelloBytes);
        return passing.with(long_hello_);
      case Kind::challenge:
        short_challenge_ = passing.metadata;
        long_challenge_ = longer(passing.metadata, sizeof(ChallengeBody));
        return passing.with(long_challenge_);
      case Kind::proof: {
        const Sha256 proof = client_side().client_proof();
        EXPECT_TRUE(std::ranges::equal(proof, passing.metadata));
        const Sha256 other = server_side().client_proof();
        return passing.with(longer(Bytes(other.begin(), other.end()), sizeof(ProofBody)));
      }
      case Kind::hello_reply: {
        Bytes body = passing.metadata;
        if (key_) {
          const Sha256 proof = server_side().server_proof(body);
          const auto field = std::span(body).subspan(offsetof(HelloReplyBody, proof));
          EXPECT_TRUE(std::ranges::equal(proof, field));
          body = longer(body, sizeof(HelloReplyBody));
          const Sha256 other = client_side().server_proof(body);
          std::memcpy(body.data() + offsetof(HelloReplyBody, proof), other.data(), other.size());
        } else {
          // A newer server sends the field also when it has no key, and then more.
          body = longer(longer(body, kOpenHelloReplyBytes, std::byte{0}, 32), sizeof(HelloReplyBody));
        }
        return passing.with(body);
      }
      default:
        return passing.bytes;
    }
  }

 private:
  static Bytes longer(const Bytes& body, size_t known, std::byte with = std::byte{0xee}, size_t by = 100) {
    EXPECT_EQ(body.size(), known);
    // A hello without a key ends before the field that says so.
    Bytes out = body;
    if (known == kOpenHelloBytes) out.resize(sizeof(HelloBody));
    out.resize(out.size() + by, with);
    return out;
  }
  SessionKey client_side() const { return {*key_, handshake_transcript(short_hello_, long_challenge_)}; }
  SessionKey server_side() const { return {*key_, handshake_transcript(long_hello_, short_challenge_)}; }

  std::optional<SharedKey> key_;
  Bytes short_hello_, long_hello_, short_challenge_, long_challenge_;
};

TEST(Compatibility, EveryVersionTalksWithEveryOther) {
  const KeyRing ring(keys_of({1}));
  for (const KeyRing* keys : {static_cast<const KeyRing*>(nullptr), &ring}) {
    for (const bool says_more : {false, true}) {
      for (const Protocol& client : kProtocols) {
        for (const Protocol& server : kProtocols) {
          SCOPED_TRACE(to_string(client) + " to " + to_string(server) + (keys != nullptr ? ", keys" : "") +
                       (says_more ? ", longer hellos" : ""));
          const Common common(client, server);
          SaysMore more(keys != nullptr ? std::optional(key_of(1)) : std::nullopt);
          bool agreed = false;
          Bench bench({.keys = keys, .protocol = server}, [&](const Passing& passing) {
            // From the hello's answer on, both speak what was agreed upon.
            agreed = agreed || passing.header.kind == Kind::hello_reply;
            if (agreed) EXPECT_EQ(passing.header.version, common.version.value_or(0));
            return says_more ? more(passing) : passing.bytes;
          });
          Channel& channel = bench.make_channel({.keys = keys, .protocol = client});
          const auto reply = bench.echo(channel);
          EXPECT_EQ(reply.has_value(), common.version.has_value());
          if (common.version) {
            EXPECT_EQ(channel.version(), *common.version);
            EXPECT_EQ(channel.features(), common.features);
            EXPECT_EQ(bench.methods.last_features, common.features);
          } else {
            EXPECT_EQ(bench.closed_by_client(CloseReason::bad_version), 1U);
            EXPECT_EQ(bench.closed_by_server(CloseReason::bad_version), 1U);
          }
        }
      }
    }
  }
}

// What an older build has never heard of: a reason to close.
TEST(Compatibility, UnknownReasonsAreReasonsToo) {
  Bench bench({}, [&](const Passing& passing) {
    return passing.header.kind == Kind::hello_reply ? encode_message({.kind = Kind::goodbye, .status = 999},
                                                                     std::as_bytes(std::span(std::string_view("new"))))
                                                    : passing.bytes;
  });
  Channel& channel = bench.make_channel();
  EXPECT_FALSE(bench.echo(channel));
  EXPECT_NE(channel.last_error().find("peer_closed: new"), std::string::npos) << channel.last_error();
}

TEST(Compatibility, NobodySpeaksANewerVersionThanAgreed) {
  for (const auto from : {From::client, From::server}) {
    const Protocol both{.version_min = 1, .version_max = 2, .features = 0};
    const Protocol old{.version_min = 1, .version_max = 1, .features = 0};
    Bench bench({.protocol = both}, [&](Passing passing) {
      if (passing.from != from || (passing.header.kind != Kind::request && passing.header.kind != Kind::reply)) {
        return passing.bytes;
      }
      passing.header.version = 2;
      return passing.with(passing.metadata);
    });
    EXPECT_FALSE(bench.connects({.protocol = old}));
    EXPECT_EQ(bench.closed_by_server(CloseReason::bad_version), from == From::client ? 1U : 0U);
    EXPECT_EQ(bench.closed_by_client(CloseReason::bad_version), 1U);
  }
}

TEST(Compatibility, AServerCannotChooseWhatTheClientDoesNotHave) {
  struct Case {
    uint8_t version;
    uint64_t features;
    CloseReason reason;
  };
  for (const Case& c : {Case{1, 1, CloseReason::none}, Case{2, 0, CloseReason::bad_version},
                        Case{0, 0, CloseReason::bad_version}, Case{1, 3, CloseReason::bad_sequence}}) {
    SCOPED_TRACE(::testing::Message() << int(c.version) << " " << c.features);
    Bench bench({}, [&](const Passing& passing) {
      if (passing.header.kind != Kind::hello_reply) return passing.bytes;
      Bytes body = passing.metadata;
      auto* reply = reinterpret_cast<HelloReplyBody*>(body.data());
      reply->version = c.version;
      reply->features = c.features;
      return passing.with(body);
    });
    const Protocol own{.version_min = 1, .version_max = 1, .features = 1};
    EXPECT_EQ(bench.connects({.protocol = own}), c.reason == CloseReason::none);
    if (c.reason != CloseReason::none) EXPECT_EQ(bench.closed_by_client(c.reason), 1U);
  }
}

class CompatibilityOver : public AnyTransport {
 protected:
  void SetUp() override {}
};
INSTANTIATE_TEST_SUITE_P(Transports, CompatibilityOver, kAllCarriers, &name_of);

TEST_P(CompatibilityOver, OldAndNewTalkInBothRoles) {
  const Protocol old{.version_min = 1, .version_max = 1, .features = kCompression};
  const Protocol fresh{.version_min = 1, .version_max = 2, .features = kCompression | kPriorities};
  const Protocol next{.version_min = 2, .version_max = 2, .features = 0};
  bool running = false;
  for (const Protocol& server_speaks : {old, fresh}) {
    if (std::exchange(running, true)) TearDown();
    start({.protocol = server_speaks});
    for (const Protocol& client_speaks : {old, fresh, next}) {
      SCOPED_TRACE(to_string(client_speaks) + " to " + to_string(server_speaks));
      const Common common(client_speaks, server_speaks);
      Channel& channel =
          make_channel({.backoff_min = seconds(100), .backoff_max = seconds(100), .protocol = client_speaks});
      if (!common.version) {
        EXPECT_FALSE(client->run(&call_once_turned_away, &channel));
        continue;
      }
      const auto reply = client->run(
          +[](Channel* c, mem::Pool* pool) -> Task<Result<Message<EchoBody>>> {
            auto payload = co_await make_payload(pool, 9000);
            co_return co_await c->call<Echo>({.meta = {4, 0}, .data = *std::move(payload)});
          },
          &channel, &client->pool);
      EXPECT_TRUE(reply) << reply.error().to_string();
      EXPECT_EQ(client->call([&] { return int{channel.version()}; }), *common.version);
      // The transport adds its own by itself, whatever the connection speaks.
      const uint64_t features = common.features | (over_rdma() ? uint64_t{kFeatureRdma} : 0);
      EXPECT_EQ(client->call([&] { return channel.features(); }), features);
      EXPECT_EQ(host->call([&] { return methods->last_features; }), features);
    }
  }
}

}  // namespace
}  // namespace cairn::srpc
