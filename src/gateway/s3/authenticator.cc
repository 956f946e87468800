#include "gateway/s3/authenticator.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace cairn::s3 {
namespace {

constexpr std::array<std::string_view, 5> kPayloads = {
    "UNSIGNED-PAYLOAD",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
};

bool is_payload_hash(std::string_view text) {
  if (std::ranges::find(kPayloads, text) != kPayloads.end()) return true;
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

Answer Authenticator::authenticate(Call& call) {
  std::vector<std::string> names;  // what the views below point to
  names.reserve(call.request.headers().size());
  AuthRequest request{call.request.head().method_text, call.request.path(), call.request.query(), {}};
  for (const auto& field : call.request.headers()) {
    names.push_back(lower(field.name));
    // The host that the bucket was taken from: an absolute target's, whatever the field beside it says.
    request.headers.emplace_back(names.back(), names.back() == "host" ? call.request.host() : field.value);
  }
  CO_TRY(auto authorization, parse_authorization(request));
  if (!authorization) co_return S3Error(Code::AccessDenied, "Anonymous access is not allowed: sign the request.");

  auto known = co_await call.store().get_access_key(authorization->access_key, call.context());
  if (!known) {
    if (known.code() == Errc::not_found) co_return Code::InvalidAccessKeyId;
    co_return to_s3_error(known.error());
  }
  CO_TRY(check_time(*authorization, call.environment.wall_clock.unix_ns() / 1'000'000'000));
  const Sha256& key = key_for(known->secret_key, *authorization);
  CO_TRY(verify(key, *authorization, request, call.environment.settings.public_hosts));
  if (!is_payload_hash(authorization->payload_hash)) {
    co_return S3Error(
        Code::InvalidArgument,
        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, "
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 "
        "value.");
  }
  call.signing_key = key;
  call.authorization = *std::move(authorization);
  co_return S3Result<void>();
}

const Sha256& Authenticator::key_for(const std::string& secret, const Authorization& authorization) {
  std::string name = fmt::format("{}/{}/{}", secret, authorization.date, authorization.region);
  const auto found = keys_.find(name);
  if (found != keys_.end()) return found->second;
  if (keys_.size() == kMaxKeys) keys_.clear();
  return keys_.emplace(std::move(name), s3::signing_key(secret, authorization)).first->second;
}

}  // namespace cairn::s3
