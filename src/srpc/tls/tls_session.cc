#include "srpc/tls/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "srpc/tls/tls_key.h"
#include "srpc/wire.h"

namespace cairn::srpc::tls {
namespace {

using stream::Moved;

// The first byte of a connection: of TLS (a record with a handshake, or an alert), of SRPC.
constexpr std::byte kTlsHandshake{22};
constexpr std::byte kTlsAlert{21};
constexpr std::byte kSrpc{kMagic & 0xff};

constexpr size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Records from here on aren't collected, but sent by themselves from where OpenSSL has them.
constexpr size_t kLargeRecord = 8 * 1024;
// Collected records go out together, at the latest when there are so many bytes of them.
constexpr size_t kCollect = 32 * 1024;
// Encrypted and not sent, before nothing more is encrypted: a peer that makes us answer (key updates) and doesn't read.
constexpr size_t kMaxEncrypted = 64 * 1024;
// Of encrypted input, once the peer is known: several records with one call below.
constexpr size_t kReadBuffer = 64 * 1024;
constexpr uint64_t kRecordsPerKey = uint64_t{1} << 23;

// OpenSSL's last complaint, for people.
std::string complaint(unsigned long error) {
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace

TlsSession::TlsSession(ssl_ctx_st* settings, Side side, Tls policy, const KeyRing& keys, TlsMetrics& metrics)
    : side_(side),
      policy_(policy),
      keys_(&keys),
      metrics_(&metrics),
      ssl_(SSL_new(settings)),
      records_per_key_(kRecordsPerKey) {
  ASSERT(ssl_ != nullptr);
  SSL_set_app_data(ssl_, this);
  bio_st* bio = make_bio(*this);
  SSL_set_bio(ssl_, bio, bio);
  side == Side::client ? SSL_set_connect_state(ssl_) : SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() {
  if (!settled() && !failure_ && first_seen_) metrics_->failed(HandshakeFailure::unfinished);
  SSL_free(ssl_);
}

// --- OpenSSL's input and output ---

bio_st* TlsSession::make_bio(TlsSession& session) {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "srpc stream");
    ASSERT(made != nullptr);
    BIO_meth_set_read(made, &TlsSession::bio_read);
    BIO_meth_set_write(made, &TlsSession::bio_write);
    BIO_meth_set_ctrl(made, &TlsSession::bio_control);
    return made;
  }();
  BIO* bio = BIO_new(method);
  ASSERT(bio != nullptr);
  BIO_set_data(bio, &session);
  BIO_set_init(bio, 1);
  return bio;
}

int TlsSession::bio_read(bio_st* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
  const int n = session.read_lower({into, static_cast<size_t>(size)});
  if (n < 0 && session.lower_error_.empty()) BIO_set_retry_read(bio);
  return n;
}

int TlsSession::bio_write(bio_st* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  const int n = static_cast<TlsSession*>(BIO_get_data(bio))->write_lower({from, static_cast<size_t>(size)});
  if (n < 0) BIO_set_retry_write(bio);
  return n;
}

long TlsSession::bio_control(bio_st* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return static_cast<TlsSession*>(BIO_get_data(bio))->lower_ended_ ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int TlsSession::read_lower(std::span<char> into) {
  if (first_byte_) {
    into[0] = static_cast<char>(*std::exchange(first_byte_, std::nullopt));
    return 1;
  }
  if (lower_empty_) return -1;
  iovec vector{into.data(), into.size()};
  Moved moved = lower_->receive({&vector, 1});
  switch (moved.how) {
    case Moved::How::some:
      lower_empty_ = moved.bytes < into.size() && !moved.ask_again;
      return static_cast<int>(moved.bytes);
    case Moved::How::would_block:
      lower_empty_ = true;
      return -1;
    case Moved::How::end:
      lower_ended_ = true;
      return 0;
    case Moved::How::failed:
    case Moved::How::refused:
      lower_error_ = std::move(moved.error);
      return -1;
  }
  return -1;
}

int TlsSession::write_lower(std::span<const char> from) {
  // Nobody will have it; what the peer said may still be read.
  if (!send_error_.empty()) return static_cast<int>(from.size());
  if (unsent_bytes() > kMaxEncrypted) return -1;
  if (from.size() >= kLargeRecord) {
    send_lower(from);
  } else {
    encrypted_.insert(encrypted_.end(), from.begin(), from.end());
  }
  return static_cast<int>(from.size());
}

// What waits, and `more`; what doesn't go at once waits.
void TlsSession::send_lower(std::span<const char> more) {
  for (;;) {
    iovec vectors[2];
    size_t n = 0;
    const size_t waiting = unsent_bytes();
    if (waiting > 0) vectors[n++] = {encrypted_.data() + encrypted_sent_, waiting};
    if (!more.empty()) vectors[n++] = {const_cast<char*>(more.data()), more.size()};
    if (n == 0) {
      encrypted_.clear();
      encrypted_sent_ = 0;
      blocked_ = false;
      return;
    }
    Moved moved = lower_->send({vectors, n});
    if (moved.how == Moved::How::would_block) {
      encrypted_.insert(encrypted_.end(), more.begin(), more.end());
      blocked_ = true;
      return;
    }
    if (moved.how != Moved::How::some) {
      send_error_ = moved.error.empty() ? "the connection has ended" : std::move(moved.error);
      encrypted_.clear();
      encrypted_sent_ = 0;
      blocked_ = false;
      return;
    }
    const size_t of_waiting = std::min(moved.bytes, waiting);
    encrypted_sent_ += of_waiting;
    more = more.subspan(moved.bytes - of_waiting);
  }
}

bool TlsSession::flush() {
  if (unsent_bytes() > 0) send_lower({});
  if (unsent_bytes() > 0) return false;
  receive_waits_for_flush_ = false;
  return true;
}

bool TlsSession::has_room() {
  if (blocked_ || unsent_bytes() >= kCollect) (void)flush();
  return !blocked_;
}

// --- The key ---

ssl_session_st* TlsSession::make_key(const SharedKey& key) {
  static constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  SSL_SESSION* made = SSL_SESSION_new();
  ASSERT(made != nullptr);
  Sha256 secret = tls_secret(key);
  // The cipher stands for its hash, SHA-256: which one is used is agreed upon as ever.
  const bool ok =
      SSL_SESSION_set1_master_key(made, reinterpret_cast<const unsigned char*>(secret.data()), secret.size()) == 1 &&
      SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl_, kAes128GcmSha256)) == 1 &&
      SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1;
  wipe(secret);
  ASSERT(ok);
  return made;
}

ssl_session_st* TlsSession::key_to_offer() {
  ASSERT(keys_ != nullptr);
  identity_ = tls_identity(keys_->proving());
  return make_key(keys_->proving());
}

ssl_session_st* TlsSession::key_named(std::string_view identity) {
  ASSERT(keys_ != nullptr);
  key_named_ = true;
  for (const SharedKey& key : keys_->accepted()) {
    if (identity != tls_identity(key)) continue;
    key_found_ = true;
    return make_key(key);
  }
  return nullptr;
}

// --- The handshake ---

void TlsSession::begin() {
  if (side_ == Side::server) return;
  ERR_clear_error();
  lower_empty_ = true;  // nothing can be there yet
  if (SSL_do_handshake(ssl_) != 1 && SSL_get_error(ssl_, -1) != SSL_ERROR_WANT_READ) fail_by_openssl();
  (void)flush();
}

Moved TlsSession::look_at_first_byte() {
  std::byte byte{};
  iovec vector{&byte, 1};
  Moved moved = lower_->receive({&vector, 1});
  if (moved.how != Moved::How::some) return moved;
  first_seen_ = true;
  first_byte_ = byte;
  if (side_ == Side::client) {
    if (byte != kTlsHandshake && byte != kTlsAlert) {
      fail_handshake(HandshakeFailure::plain, CloseReason::tls_failed,
                     byte == kSrpc ? "the server takes no TLS" : "what answers is neither TLS nor SRPC");
      return *failure_;
    }
  } else if (byte != kTlsHandshake) {
    // From here on the two understand each other, if only for a goodbye.
    plain_ = true;
    if (policy_ == Tls::required) {
      metrics_->failed(HandshakeFailure::plain);
      return {Moved::How::refused, 0, "this server takes TLS only", false, CloseReason::tls_failed};
    }
  }
  return moved;
}

void TlsSession::check_ready() {
  if (ready_ || !SSL_is_init_finished(ssl_)) return;
  // By the key and nothing else.
  if (SSL_session_reused(ssl_) != 1) {
    return fail_handshake(HandshakeFailure::key, CloseReason::not_authenticated, "the other side proves no key");
  }
  ready_ = true;
  SSL_set_default_read_buffer_len(ssl_, kReadBuffer);
  metrics_->handshakes.add();
  metrics_ = nullptr;
  keys_ = nullptr;
}

void TlsSession::fail(Moved::How how, CloseReason reason, std::string error) {
  failure_ = Moved{.how = how, .bytes = 0, .error = std::move(error), .ask_again = false, .reason = reason};
}

void TlsSession::fail_handshake(HandshakeFailure why, CloseReason reason, std::string error) {
  metrics_->failed(why);
  fail(Moved::How::failed, reason, std::move(error));
}

void TlsSession::fail_by_openssl() {
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  const std::string text = complaint(error);
  ERR_clear_error();
  if (ready_) return fail(Moved::How::failed, CloseReason::connection_lost, "TLS: " + text);
  switch (reason) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return fail_handshake(HandshakeFailure::key, CloseReason::not_authenticated,
                            "TLS: the other side doesn't accept this side's cluster key");
    case SSL_R_BINDER_DOES_NOT_VERIFY:
      return fail_handshake(
          HandshakeFailure::key, CloseReason::not_authenticated,
          "TLS: the client doesn't know the cluster key that it names, or somebody alters what it says");
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return fail_handshake(HandshakeFailure::key, CloseReason::not_authenticated,
                            "TLS: the server comes with a certificate in place of the cluster key");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return fail_handshake(HandshakeFailure::version, CloseReason::tls_failed, "TLS: 1.3 is needed: " + text);
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_MISSING_SIGALGS_EXTENSION:
      if (side_ == Side::server && !key_found_) {
        return fail_handshake(
            HandshakeFailure::key, CloseReason::not_authenticated,
            key_named_ ? "TLS: the client has another cluster key" : "TLS: the client has no cluster key");
      }
      break;
    default:
      break;
  }
  fail_handshake(HandshakeFailure::protocol, CloseReason::tls_failed, "TLS: " + text);
}

// --- Bytes ---

Moved TlsSession::receive_plain(std::span<iovec> vectors) {
  if (!first_byte_) return lower_->receive(vectors);
  *static_cast<std::byte*>(vectors[0].iov_base) = *std::exchange(first_byte_, std::nullopt);
  return {Moved::How::some, 1, {}, true};
}

Moved TlsSession::receive(std::span<iovec> vectors) {
  if (failure_) return *failure_;
  if (!first_seen_) {
    Moved first = look_at_first_byte();
    if (first.how != Moved::How::some) return first;
  }
  if (plain_) return receive_plain(vectors);
  ERR_clear_error();
  lower_empty_ = false;
  size_t total = 0;
  for (size_t i = 0, at = 0; i < vectors.size();) {
    size_t n = 0;
    const int ok = SSL_read_ex(ssl_, static_cast<std::byte*>(vectors[i].iov_base) + at, vectors[i].iov_len - at, &n);
    check_ready();
    if (failure_) break;
    if (ok == 1) {
      total += n;
      at += n;
      if (at == vectors[i].iov_len) {
        ++i;
        at = 0;
      }
    } else if (after_failed_read() == Next::stop) {
      break;
    }
  }
  // What OpenSSL had to say: its part of the handshake, a new key, an alert.
  (void)flush();
  if (total == 0) return failure_ ? *failure_ : Moved{Moved::How::would_block};
  return {Moved::How::some, total, {}, failure_.has_value()};
}

TlsSession::Next TlsSession::after_failed_read() {
  switch (SSL_get_error(ssl_, 0)) {
    case SSL_ERROR_WANT_READ:
      return Next::stop;
    case SSL_ERROR_WANT_WRITE:
      if (flush()) return Next::again;
      receive_waits_for_flush_ = true;
      return Next::stop;
    case SSL_ERROR_ZERO_RETURN:
      if (ready_) {
        fail(Moved::How::end, CloseReason::peer_closed, {});
      } else {
        fail_handshake(HandshakeFailure::unfinished, CloseReason::peer_closed, "TLS: the other side gave up");
      }
      return Next::stop;
    default:
      break;
  }
  if (lower_ended_ || !lower_error_.empty()) {
    std::string text = lower_ended_ ? "cut off: it ended without TLS's goodbye" : lower_error_;
    ERR_clear_error();
    if (ready_) {
      fail(Moved::How::failed, CloseReason::connection_lost, std::move(text));
    } else {
      fail_handshake(HandshakeFailure::unfinished, CloseReason::connection_lost, "TLS handshake " + text);
    }
  } else {
    fail_by_openssl();
  }
  return Next::stop;
}

Moved TlsSession::send(std::span<iovec> vectors) {
  if (plain_) return lower_->send(vectors);
  if (broken()) return *failure_;
  if (!ready_) return {Moved::How::would_block};
  size_t total = 0;
  ERR_clear_error();
  lower_empty_ = true;  // no input is wanted here
  for (size_t i = 0, at = 0; i < vectors.size() && has_room();) {
    const size_t piece = std::min(vectors[i].iov_len - at, kRecordBytes);
    renew_key_if_due();
    size_t n = 0;
    if (SSL_write_ex(ssl_, static_cast<const std::byte*>(vectors[i].iov_base) + at, piece, &n) != 1) {
      // Or half of a message that isn't data (a key update) has come: OpenSSL wants the other half first.
      if (SSL_get_error(ssl_, 0) != SSL_ERROR_WANT_READ) fail_by_openssl();
      break;
    }
    ++records_;
    total += n;
    at += n;
    if (at == vectors[i].iov_len) {
      ++i;
      at = 0;
    }
  }
  (void)flush();
  if (!send_error_.empty()) return {Moved::How::failed, 0, send_error_};
  if (total > 0) return {Moved::How::some, total};
  return broken() ? *failure_ : Moved{Moved::How::would_block};
}

// AES-GCM holds what it promises for so many records only.
void TlsSession::renew_key_if_due() {
  if (records_ < records_per_key_) return;
  // It can't while half of such a message from the peer is there. Then with the next record.
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1) records_ = 0;
  ERR_clear_error();
}

void TlsSession::say_end() {
  // Said twice it would mean to wait for the other side's, and to throw away what comes before that.
  if (!ready_ || end_said_ || broken()) return;
  end_said_ = true;
  ERR_clear_error();
  lower_empty_ = true;
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

bool TlsSession::holds_input() const { return first_byte_.has_value() || SSL_has_pending(ssl_) == 1; }

std::string TlsSession::cipher() const { return SSL_get_cipher_name(ssl_); }

}  // namespace cairn::srpc::tls
