#include "gateway/s3/call.h"

#include <algorithm>

namespace cairn::s3 {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

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

}  // namespace

S3Result<void> address_of(Call& call) {
  auto path = uri_decode(call.request.path(), false);
  auto query = parse_query(call.request.query());
  if (!path || !query) return S3Error(Code::InvalidURI, "The URI holds a malformed percent-encoding.");
  call.query = *std::move(query);
  std::string_view rest = *path;
  if (rest.starts_with('/')) rest.remove_prefix(1);
  if (const auto bucket = bucket_of_host(call.request.host(), call.environment.settings.domains)) {
    call.bucket = lower(*bucket);
    call.key = rest;
    return {};
  }
  const size_t slash = rest.find('/');
  call.bucket = rest.substr(0, slash);
  call.key = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  // "//bucket/key", of an endpoint configured with a slash too many, is no request to the service.
  if (call.bucket.empty() && slash != std::string_view::npos) {
    return S3Error(Code::InvalidURI, "The path names no bucket: it begins with two slashes.");
  }
  return {};
}

Answer check_bucket_owner(Call& call, const std::string& bucket, std::string_view header) {
  const auto expected = call.request.headers().get(header);
  if (!expected) co_return S3Result<void>{};
  const auto info = co_await call.store().head_bucket(bucket, call.context());
  if (info && info->owner != *expected) co_return Code::AccessDenied;
  co_return S3Result<void>{};
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

}  // namespace cairn::s3
