// The proofs themselves, against values that were made by other means (Python's hmac and hashlib).
#include "srpc/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/rng.h"
#include "srpc/testing/keys.h"

namespace cairn::srpc {
namespace {

using namespace srpc::testing;

using Bytes = std::vector<std::byte>;

Bytes body(const auto& fields) {
  const auto bytes = std::as_bytes(std::span(&fields, 1));
  return {bytes.begin(), bytes.end()};
}

HelloBody hello() {
  HelloBody hello;
  hello.version_min = hello.version_max = 1;
  hello.poll_group = kAnyPollGroup;
  hello.auth = static_cast<uint8_t>(Auth::hmac_sha256);
  hello.nonce.fill(0x11);
  return hello;
}

ChallengeBody challenge() {
  ChallengeBody challenge;
  challenge.nonce.fill(0x22);
  return challenge;
}

TEST(Handshake, KnownAnswers) {
  const Sha256 transcript = handshake_transcript(body(hello()), body(challenge()));
  EXPECT_EQ(to_hex(transcript), "f0a68cafa2a00212b71136653fea3bebd016c007037e73177c9853a1a512d39f");
  const SessionKey session(key_of(0), transcript);
  EXPECT_EQ(to_hex(session.client_proof()), "030000cf8d198b828ef5fe37ca5f977a03f1d515dcc95aa35671ec4ed2a21d0e");
  // 56 bytes of fields, the proof, and what a newer version appends.
  Bytes reply(56, std::byte{0x33});
  reply.resize(88, std::byte{0x77});  // the proof itself doesn't count
  for (const char c : std::string("newer")) reply.push_back(static_cast<std::byte>(c));
  EXPECT_EQ(to_hex(session.server_proof(reply)), "b764b38f6d8e1919581652714f7b1875b3415316acbef31b60a458177b9178e5");
}

TEST(Handshake, TheTranscriptKnowsWhereOneBodyEnds) {
  const Bytes a(10, std::byte{1});
  const Bytes b(20, std::byte{1});
  EXPECT_NE(handshake_transcript(a, b), handshake_transcript(b, a));
  EXPECT_NE(handshake_transcript(a, {}), handshake_transcript({}, a));
}

TEST(Handshake, RecognisesEachAcceptedKeyAndNoOther) {
  const KeyRing ring({key_of(1), key_of(2), key_of(3)});
  const Sha256 transcript = handshake_transcript(body(hello()), body(challenge()));
  for (uint8_t first = 0; first <= 4; ++first) {
    const SessionKey session(key_of(first), transcript);
    const auto found = recognise(ring, transcript, session.client_proof());
    EXPECT_EQ(found.has_value(), first >= 1 && first <= 3);
    // It goes on with the key that the client has.
    if (found) EXPECT_EQ(found->client_proof(), session.client_proof());
  }
  EXPECT_FALSE(recognise(ring, transcript, {}));
  // The server's proof is no client's proof.
  EXPECT_FALSE(recognise(ring, transcript, SessionKey(key_of(1), transcript).server_proof(body(HelloReplyBody{}))));
}

TEST(SharedKey, IsReadFromDigitsOnly) {
  const std::string text = "00ff" + std::string(60, 'a');
  ASSERT_TRUE(SharedKey::parse(text));
  EXPECT_EQ(to_hex(SharedKey::parse(text)->bytes()), text);
  for (const std::string& bad : {std::string(), text.substr(2), text + "00", " " + text.substr(1), text + "\n"}) {
    EXPECT_FALSE(SharedKey::parse(bad)) << bad;
  }
  SystemRng rng;
  EXPECT_NE(to_hex(SharedKey::random(rng).bytes()), to_hex(SharedKey::random(rng).bytes()));
}

// The compiler must not find the wiping superfluous because nobody looks at the object afterwards.
TEST(SharedKey, LeavesNothingBehind) {
  alignas(SharedKey) std::array<std::byte, sizeof(SharedKey)> storage;
  auto* key = new (storage.data()) SharedKey(key_of(1));
  EXPECT_EQ(std::ranges::count(storage, std::byte{0}), 0);
  key->~SharedKey();
  EXPECT_EQ(std::ranges::count(storage, std::byte{0}), static_cast<ptrdiff_t>(storage.size()));
}

}  // namespace
}  // namespace cairn::srpc
