// TlsSession: TLS over a ByteStream, by OpenSSL: the handshake, and bytes in and out. It outlives the stream below when
// a connection goes to another thread.
//
//   server:  first byte ─ TLS ──> handshake ──> ready
//               └─ not TLS ──> plain: the bytes pass as they are (Tls::allowed), or are refused (Tls::required)
//   client:                    handshake ──> ready
//   Any of them may fail; then nothing is received any more.
//
// Records are decrypted by OpenSSL into the caller's memory, and encrypted from it into records that go to the stream
// below at once if they are large; small ones wait for each other until the call ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "srpc/key_ring.h"
#include "srpc/stream/byte_stream.h"
#include "srpc/tls/tls_metrics.h"
#include "srpc/tls/tls_policy.h"

struct bio_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace cairn::srpc::tls {

enum class Side : uint8_t { client, server };

class TlsSession {
 public:
  // `policy` is a server's. Keys and metrics are used until the handshake has ended.
  TlsSession(ssl_ctx_st* settings, Side side, Tls policy, const KeyRing& keys, TlsMetrics& metrics);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // The stream below, from now on.
  void use(stream::ByteStream& lower) { lower_ = &lower; }
  // A client says the first word.
  void begin();

  // As ByteStream's. send() blocks (would_block) until the session is settled.
  stream::Moved receive(std::span<iovec> vectors);
  stream::Moved send(std::span<iovec> vectors);
  // Sends what is encrypted already. False when some of it has to wait for the stream below.
  bool flush();
  // Nothing more will be sent; flush() sends that.
  void say_end();

  // It is known how the bytes travel: encrypted, or plain.
  bool settled() const { return plain_ || ready_; }
  bool plain() const { return plain_; }
  // Nobody but a TLS peer is ever served.
  bool only_tls() const { return side_ == Side::client || policy_ == Tls::required || ready_; }
  // The stream below takes nothing at the moment; it will tell.
  bool blocked() const { return blocked_; }
  // The same has stopped a receive, which has something to say first.
  bool receive_waits_for_flush() const { return receive_waits_for_flush_; }
  // OpenSSL holds bytes, of which nobody would tell.
  bool holds_input() const;

  // Encrypted, and not yet with the stream below.
  size_t unsent_bytes() const { return encrypted_.size() - encrypted_sent_; }

  // Records under one key, for tests: 2^23, where AES-GCM allows 2^24.5 (RFC 8446, 5.5).
  void set_records_per_key(uint64_t records) { records_per_key_ = records; }
  // "TLS_AES_128_GCM_SHA256", once ready.
  std::string cipher() const;

 private:
  friend class TlsContext;
  enum class Next : uint8_t { again, stop };

  // OpenSSL's side.
  static int bio_read(bio_st* bio, char* into, int size);
  static int bio_write(bio_st* bio, const char* from, int size);
  static long bio_control(bio_st* bio, int command, long number, void* pointer);
  static bio_st* make_bio(TlsSession& session);

  // For OpenSSL's callbacks: what stands for a key. The caller owns it.
  ssl_session_st* key_to_offer();
  ssl_session_st* key_named(std::string_view identity);  // null: no such key
  ssl_session_st* make_key(const SharedKey& key);

  int read_lower(std::span<char> into);
  int write_lower(std::span<const char> from);
  void send_lower(std::span<const char> more);
  // Whether another record may be begun.
  bool has_room();

  stream::Moved look_at_first_byte();
  stream::Moved receive_plain(std::span<iovec> vectors);
  // After an operation of OpenSSL.
  void check_ready();
  // After one that didn't succeed: `again` when it is worth trying again now.
  Next after_failed_read();
  void fail(stream::Moved::How how, CloseReason reason, std::string error);
  void fail_handshake(HandshakeFailure why, CloseReason reason, std::string error);
  void fail_by_openssl();
  void fail_key_exchange(int openssl_reason, const std::string& text);
  void renew_key_if_due();
  // Neither direction is of use any more. (The other side's end is the end of one of them.)
  bool broken() const { return failure_ && failure_->how == stream::Moved::How::failed; }

  const Side side_;
  const Tls policy_;
  const KeyRing* keys_;    // null when the handshake has ended
  TlsMetrics* metrics_;    // the same
  ssl_st* ssl_ = nullptr;  // its BIO points back to this
  stream::ByteStream* lower_ = nullptr;

  // Receiving.
  std::optional<std::byte> first_byte_;  // looked at, not yet given on
  bool first_seen_ = false;
  bool plain_ = false;
  bool ready_ = false;
  bool lower_empty_ = false;  // within a receive: asking the stream below again would be in vain
  bool lower_ended_ = false;
  std::string lower_error_;
  std::optional<stream::Moved> failure_;
  bool receive_waits_for_flush_ = false;
  // The handshake, on the server.
  bool key_named_ = false;
  bool key_found_ = false;
  std::string identity_;  // the key's, at the client

  // Sending. Invariant: a record is begun only while all of it is going to find room here.
  std::vector<char> encrypted_;
  size_t encrypted_sent_ = 0;
  std::string send_error_;  // nothing can be sent any more
  bool blocked_ = false;
  bool end_said_ = false;
  uint64_t records_ = 0;  // under the present key
  uint64_t records_per_key_;
};

}  // namespace cairn::srpc::tls
