#include "srpc/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string_view>

#include "base/assert.h"
#include "srpc/tls/tls_session.h"

namespace cairn::srpc::tls {
namespace {

// Both with SHA-256, as the key demands. The client's order decides.
constexpr const char* kCiphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:P-256";

TlsSession& session_of(SSL* ssl) { return *static_cast<TlsSession*>(SSL_get_app_data(ssl)); }

SSL_CTX* make_settings(const SSL_METHOD* method) {
  SSL_CTX* settings = SSL_CTX_new(method);
  ASSERT(settings != nullptr);
  ASSERT(SSL_CTX_set_min_proto_version(settings, TLS1_3_VERSION) == 1);
  ASSERT(SSL_CTX_set_max_proto_version(settings, TLS1_3_VERSION) == 1);
  ASSERT(SSL_CTX_set_ciphersuites(settings, kCiphers) == 1);
  ASSERT(SSL_CTX_set1_groups_list(settings, kGroups) == 1);
  SSL_CTX_clear_options(settings, SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_CTX_set_options(settings, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(settings, 0);
  SSL_CTX_set_session_cache_mode(settings, SSL_SESS_CACHE_OFF);
  // A record and what is behind it with one call below; an idle connection keeps no buffers.
  SSL_CTX_set_read_ahead(settings, 1);
  SSL_CTX_set_mode(settings,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return settings;
}

}  // namespace

TlsContext::~TlsContext() {
  // Sessions that have gone to other threads hold theirs.
  SSL_CTX_free(client_);
  SSL_CTX_free(server_);
}

ssl_ctx_st* TlsContext::client_settings() {
  if (client_ != nullptr) return client_;
  client_ = make_settings(TLS_client_method());
  SSL_CTX_set_psk_use_session_callback(client_, &use_key);
  // Whoever comes with a certificate in place of the key is refused: no authority is trusted.
  SSL_CTX_set_verify(client_, SSL_VERIFY_PEER, nullptr);
  return client_;
}

ssl_ctx_st* TlsContext::server_settings() {
  if (server_ != nullptr) return server_;
  server_ = make_settings(TLS_server_method());
  SSL_CTX_set_psk_find_session_callback(server_, &find_key);
  return server_;
}

std::unique_ptr<TlsSession> TlsContext::client(const KeyRing& keys) {
  return std::make_unique<TlsSession>(client_settings(), Side::client, Tls::required, keys, metrics_);
}

std::unique_ptr<TlsSession> TlsContext::server(const KeyRing& keys, Tls policy) {
  ASSERT(policy != Tls::off);
  return std::make_unique<TlsSession>(server_settings(), Side::server, policy, keys, metrics_);
}

int TlsContext::use_key(ssl_st* ssl, const evp_md_st* digest, const unsigned char** identity, size_t* identity_size,
                        ssl_session_st** key) {
  // With a digest: the server has asked for another hello, and says with which. Ours is SHA-256 in any case.
  if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 0;
  TlsSession& session = session_of(ssl);
  *key = session.key_to_offer();
  *identity = reinterpret_cast<const unsigned char*>(session.identity_.data());
  *identity_size = session.identity_.size();
  return 1;
}

int TlsContext::find_key(ssl_st* ssl, const unsigned char* identity, size_t identity_size, ssl_session_st** key) {
  // None isn't an error for OpenSSL: it goes on without, and finds that it has no certificate either.
  *key = session_of(ssl).key_named({reinterpret_cast<const char*>(identity), identity_size});
  return 1;
}

}  // namespace cairn::srpc::tls
