#include "gateway/s3/call.h"

#include <algorithm>

#include "base/base64.h"
#include "base/hex.h"
#include "gateway/s3/checksum.h"

namespace cairn::s3 {
namespace {

// "bucket" of "bucket.domain[:port]", or none when the host is no name below a domain of ours.
std::optional<std::string_view> bucket_of_host(std::string_view host, const std::vector<std::string>& domains) {
  host = host.substr(0, host.rfind(':'));
  for (const std::string& domain : domains) {
    if (host.size() > domain.size() + 1 &&
        http::equals_ignoring_case(host.substr(host.size() - domain.size()), domain) &&
        host[host.size() - domain.size() - 1] == '.') {
      return host.substr(0, host.size() - domain.size() - 1);
    }
  }
  return std::nullopt;
}

S3Result<void> check_digests(const Call& call, std::string_view body, bool digest_required) {
  const http::Headers& headers = call.request.headers();
  const auto bytes = std::as_bytes(std::span(body));
  bool found = false;
  if (const auto md5 = headers.get("content-md5")) {
    found = true;
    const auto sent = from_base64(*md5);
    if (!sent || sent->size() != 16) return Code::InvalidDigest;
    Digest digest(DigestKind::md5);
    digest.update(bytes);
    if (digest.finish() != *sent) return Code::BadDigest;
  }
  for (const ChecksumInfo& info : all_checksums()) {
    const auto sent = headers.get(info.header);
    if (!sent) continue;
    found = true;
    if (!is_checksum_value(info.kind, *sent)) {
      return S3Error(Code::InvalidRequest, "Value for " + std::string(info.header) + " header is invalid.");
    }
    const auto stream = ChecksumStream::create(info.kind);
    stream->update(bytes);
    if (stream->finish() != *sent) return Code::BadDigest;
  }
  if (digest_required && !found) return Code::MissingContentMD5;
  return {};
}

}  // namespace

S3Result<void> address_of(Call& call) {
  auto path = uri_decode(call.request.path(), false);
  auto query = parse_query(call.request.query());
  if (!path || !query) return S3Error(Code::InvalidURI, "The URI holds a malformed percent-encoding.");
  call.query = *std::move(query);
  std::string_view rest = *path;
  if (rest.starts_with('/')) rest.remove_prefix(1);
  if (const auto bucket = bucket_of_host(call.request.host(), call.environment.settings.domains)) {
    call.bucket = *bucket;
    call.key = rest;
    return {};
  }
  const size_t slash = rest.find('/');
  call.bucket = rest.substr(0, slash);
  call.key = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  return {};
}

S3Error to_s3_error(const Error& error) {
  switch (error.code()) {
    case Errc::not_found:
      if (error.message() == "bucket") return S3Error(Code::NoSuchBucket);
      if (error.message() == "upload") return S3Error(Code::NoSuchUpload);
      return S3Error(Code::NoSuchKey);
    case Errc::already_exists:
    case Errc::condition_failed:
      return S3Error(Code::PreconditionFailed);
    case Errc::no_space:
      return S3Error(Code::InsufficientStorage);
    case Errc::busy:
      return S3Error(Code::SlowDown);
    case Errc::corrupt:
      // Not the client's fault and not cured by trying again: say so where the code can't.
      return S3Error(Code::InternalError, "The stored data is damaged: its checksum does not match.");
    case Errc::timed_out:
    case Errc::unavailable:
    case Errc::closed:
    case Errc::cancelled:
    case Errc::device_fenced:
      return S3Error(Code::ServiceUnavailable);
    case Errc::too_large:
      return S3Error(Code::EntityTooLarge);
    case Errc::invalid_argument:
      return S3Error(Code::InvalidArgument, error.message());
    case Errc::permission_denied:
    case Errc::unauthenticated:
      return S3Error(Code::AccessDenied);
    case Errc::unsupported:
      return S3Error(Code::NotImplemented);
    default:
      return S3Error(Code::InternalError);
  }
}

Answer send_xml(Call& call, std::string body, int status) {
  call.response.set_status(status);
  call.response.set_header("Content-Type", "application/xml");
  (void)co_await call.response.send(std::move(body));
  co_return S3Result<void>();
}

Answer send_nothing(Call& call, int status) {
  call.response.set_status(status);
  if (status == 204) {
    (void)co_await call.response.send_no_body();
  } else {
    (void)co_await call.response.send(std::string());
  }
  co_return S3Result<void>();
}

Task<S3Result<std::string>> read_small_body(Call& call, size_t limit, bool digest_required) {
  const std::string& hash = call.authorization.payload_hash;
  if (hash.starts_with("STREAMING-")) {
    co_return S3Error(Code::NotImplemented, "This request takes a body of one piece only, not aws-chunked.");
  }
  auto body = co_await call.request.read_all(limit);
  if (!body) {
    if (body.code() == Errc::too_large) co_return Code::MaxMessageLengthExceeded;
    co_return Code::IncompleteBody;
  }
  if (hash != "UNSIGNED-PAYLOAD" && to_hex(sha256(*body)) != hash) co_return Code::XAmzContentSHA256Mismatch;
  CO_TRY(check_digests(call, *body, digest_required));
  co_return *std::move(body);
}

}  // namespace cairn::s3
