#include "srpc/handshake.h"

#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/endian.h"

namespace cairn::srpc {
namespace {

// What each HMAC is for. None is the beginning of another one.
constexpr std::string_view kTranscriptLabel = "srpc 1 transcript";
constexpr std::string_view kSessionLabel = "srpc 1 session";
constexpr std::string_view kClientLabel = "srpc 1 client proof";
constexpr std::string_view kServerLabel = "srpc 1 server proof";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// With its length, so that no byte can move from one body to the next.
void append_body(std::string& to, std::span<const std::byte> body) {
  const Le32 size = static_cast<uint32_t>(body.size());
  to.append(text_of(std::as_bytes(std::span(&size, 1)))).append(text_of(body));
}

}  // namespace

Sha256 handshake_transcript(std::span<const std::byte> hello, std::span<const std::byte> challenge) {
  std::string text(kTranscriptLabel);
  append_body(text, hello);
  append_body(text, challenge);
  return sha256(text);
}

SessionKey::SessionKey(const SharedKey& key, const Sha256& transcript) : secret_({}) {
  Sha256 secret = hmac_sha256(key.bytes(), std::string(kSessionLabel).append(text_of(transcript)));
  secret_ = SharedKey(secret);
  wipe(secret);
}

Sha256 SessionKey::client_proof() const { return hmac_sha256(secret_.bytes(), kClientLabel); }

Sha256 SessionKey::server_proof(std::span<const std::byte> hello_reply) const {
  ASSERT(hello_reply.size() >= sizeof(HelloReplyBody));
  std::string text(kServerLabel);
  text.append(text_of(hello_reply));
  text.replace(kServerLabel.size() + offsetof(HelloReplyBody, proof), sizeof(Sha256), sizeof(Sha256), '\0');
  return hmac_sha256(secret_.bytes(), text);
}

std::optional<SessionKey> recognise(const KeyRing& ring, const Sha256& transcript,
                                    std::span<const std::byte> client_proof) {
  std::optional<SessionKey> found;
  for (const SharedKey& key : ring.accepted()) {
    const SessionKey session(key, transcript);
    if (equal_secret(session.client_proof(), client_proof)) found = session;
  }
  return found;
}

}  // namespace cairn::srpc
