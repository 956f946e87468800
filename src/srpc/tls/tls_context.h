// TlsContext: what the TLS sessions of one reactor have in common: OpenSSL's settings for either role, and the metrics.
//
// TLS 1.3 and nothing before; no certificates: both sides know a secret made of the cluster's key (tls_key.h), and an
// ephemeral key exchange goes with it, so that who learns the key later can't read what was recorded before. No
// tickets, no early data, nothing is resumed.
#pragma once

#include <cstddef>
#include <memory>

#include "base/metrics.h"
#include "srpc/key_ring.h"
#include "srpc/tls/tls_metrics.h"
#include "srpc/tls/tls_policy.h"

struct evp_md_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace cairn::srpc::tls {

class TlsSession;

class TlsContext {
 public:
  // Make it before the reactor runs: it registers metrics.
  explicit TlsContext(Registry& registry) : metrics_(registry) {}
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  // `keys` outlives the session's handshake: it is looked at when that takes place. Which key, is as in key_ring.h.
  std::unique_ptr<TlsSession> client(const KeyRing& keys);
  // `policy` isn't off.
  std::unique_ptr<TlsSession> server(const KeyRing& keys, Tls policy);

  TlsMetrics& metrics() { return metrics_; }

 private:
  // What OpenSSL calls for the key.
  static int use_key(ssl_st* ssl, const evp_md_st* digest, const unsigned char** identity, size_t* identity_size,
                     ssl_session_st** key);
  static int find_key(ssl_st* ssl, const unsigned char* identity, size_t identity_size, ssl_session_st** key);
  // Made when it is needed first: OpenSSL takes milliseconds for it.
  ssl_ctx_st* client_settings();
  ssl_ctx_st* server_settings();

  TlsMetrics metrics_;
  ssl_ctx_st* client_ = nullptr;
  ssl_ctx_st* server_ = nullptr;
};

}  // namespace cairn::srpc::tls
