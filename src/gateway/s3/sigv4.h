// AWS Signature Version 4 as S3 uses it: in the Authorization header and in presigned URLs.
// Reference: "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API: path segments are encoded once,
// paths are not normalised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "gateway/s3/error.h"

namespace cairn::s3 {

inline constexpr int64_t kMaxSkewSeconds = 15 * 60;
inline constexpr int64_t kMaxExpirySeconds = 7 * 24 * 3600;

// What was received, untouched. The views outlive the call only.
struct AuthRequest {
  std::string_view method;
  std::string_view path;   // of the request target, still encoded
  std::string_view query;  // behind "?", still encoded
  // Names in lower case, values without surrounding blanks, in the order they came.
  std::vector<std::pair<std::string_view, std::string_view>> headers;

  // The first value, or none.
  std::optional<std::string_view> header(std::string_view lower_case_name) const;
};

// What the request claims; nothing of it is proven before verify().
struct Authorization {
  bool presigned = false;
  std::string access_key;
  std::string date;  // YYYYMMDD
  std::string region;
  std::string service;
  std::vector<std::string> signed_headers;
  std::string signature;  // 64 lower-case digits
  std::string timestamp;  // YYYYMMDDTHHMMSSZ
  int64_t signed_at_unix_s = 0;
  int64_t expires_s = 0;     // presigned only
  std::string payload_hash;  // x-amz-content-sha256, or UNSIGNED-PAYLOAD when presigned without

  // "20130524/us-east-1/s3/aws4_request"
  std::string scope() const;
};

// None: the request is anonymous. Errors: what S3 answers to a malformed or unsupported claim.
S3Result<std::optional<Authorization>> parse_authorization(const AuthRequest& request);

// RequestTimeTooSkewed for headers more than 15 minutes off; AccessDenied for an expired URL or one of the future.
S3Result<void> check_time(const Authorization& authorization, int64_t now_unix_s);

Sha256 signing_key(std::string_view secret_key, const Authorization& authorization);

// The signature that the request should carry. `host` replaces the Host header's value when given.
std::string compute_signature(const Sha256& key, const Authorization& authorization, const AuthRequest& request,
                              std::optional<std::string_view> host = std::nullopt);

// SignatureDoesNotMatch, or AccessDenied when a header that must be signed is not. Both spellings of a default port in
// Host are accepted, and the names in `public_hosts` for gateways behind a proxy that rewrites Host.
S3Result<void> verify(const Sha256& key, const Authorization& authorization, const AuthRequest& request,
                      std::span<const std::string> public_hosts = {});

// "20130524T000000Z"; http::parse_basic_iso8601 reads it.
std::string format_amz_timestamp(int64_t unix_s);

// The chain of signatures over the chunks of an aws-chunked body ("Signature calculations for the Authorization header:
// transferring payload in multiple chunks").
class ChunkSigner {
 public:
  ChunkSigner(const Sha256& key, const Authorization& authorization)
      : key_(key),
        timestamp_(authorization.timestamp),
        scope_(authorization.scope()),
        previous_(authorization.signature) {}

  // Signatures in the order of the chunks; each continues from the last.
  std::string sign_chunk(std::string_view data_sha256_hex);
  // `lines`: "name:value\n" for each trailing header.
  std::string sign_trailer(std::string_view lines);

 private:
  std::string sign(std::string_view algorithm, std::string_view hashes);

  Sha256 key_;
  std::string timestamp_;
  std::string scope_;
  std::string previous_;
};

}  // namespace cairn::s3
