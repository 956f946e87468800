// How two sides prove to each other that they know the cluster's key, without telling it. Bytes in, bytes out; the
// connections say when.
//
//   client                                            server
//     │ hello: a nonce ────────────────────────────────► │
//     │ ◄──────────────────────────── challenge: a nonce │   T = SHA-256 of both bodies, whole
//     │ proof: HMAC(S, "client") ──────────────────────► │   S = HMAC(key, T)
//     │ ◄──── hello reply: HMAC(S, "server" and its body) │
//
// The client proves itself first: who doesn't know the key gets nothing from a server but a random number.
//  - Nothing can be altered or left out: hello and challenge are in T, the hello reply is in the server's proof, all
//    with what newer versions append; so versions, features, poll group and identities are what both sides meant.
//  - Nothing can be replayed: each side has put a nonce of its own into T.
//  - Nothing can be reflected: the two proofs begin with different labels.
// What it doesn't do: protect what is said afterwards from somebody who controls the network between the two. That is
// what TLS is for.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/sha256.h"
#include "srpc/key_ring.h"
#include "srpc/wire.h"

namespace cairn::srpc {

// The bodies as they stood in the messages, with whatever is behind the fields that this version knows.
Sha256 handshake_transcript(std::span<const std::byte> hello, std::span<const std::byte> challenge);

// What a connection's two ends have in common: made of the key and the transcript, of use for this connection only. So
// it may travel to the poll group that answers the hello.
class SessionKey {
 public:
  SessionKey(const SharedKey& key, const Sha256& transcript);

  Sha256 client_proof() const;
  // `hello_reply`: at least a HelloReplyBody; its field `proof` counts as zero.
  Sha256 server_proof(std::span<const std::byte> hello_reply) const;

 private:
  SharedKey secret_;
};

// For the server: the key of the ring with which the client has made its proof. Takes the same time whichever it is.
std::optional<SessionKey> recognise(const KeyRing& ring, const Sha256& transcript,
                                    std::span<const std::byte> client_proof);

}  // namespace cairn::srpc
