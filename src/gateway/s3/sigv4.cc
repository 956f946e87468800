#include "gateway/s3/sigv4.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/hex.h"
#include "gateway/http/date.h"
#include "gateway/s3/uri.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string hex(std::span<const std::byte> bytes) { return to_hex(bytes); }

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.emplace_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Inner runs of blanks count as one space.
void append_canonical_value(std::string& out, std::string_view value) {
  value = trim(value);
  bool blank = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      blank = true;
      continue;
    }
    if (blank) out.push_back(' ');
    blank = false;
    out.push_back(c);
  }
}

// "access/20130524/us-east-1/s3/aws4_request"; the access key may itself hold slashes.
bool parse_credential(std::string_view text, Authorization& out) {
  std::vector<std::string> parts = split(text, '/');
  if (parts.size() < 5 || parts.back() != "aws4_request") return false;
  const size_t n = parts.size();
  out.service = parts[n - 2];
  out.region = parts[n - 3];
  out.date = parts[n - 4];
  out.access_key = text.substr(0, text.size() - (out.service.size() + out.region.size() + out.date.size() + 16));
  return out.service == "s3" && out.date.size() == 8 && all_digits(out.date) && !out.access_key.empty();
}

bool parse_signed_headers(std::string_view text, Authorization& out) {
  out.signed_headers = split(text, ';');
  return std::ranges::all_of(out.signed_headers,
                             [](const std::string& name) {
                               return !name.empty() &&
                                      std::ranges::none_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
                             }) &&
         std::ranges::is_sorted(out.signed_headers);
}

bool is_signature(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

S3Error malformed(std::string_view what) {
  return S3Error(Code::AuthorizationHeaderMalformed, fmt::format("The authorization header is malformed: {}.", what));
}
S3Error bad_query(std::string_view what) { return S3Error(Code::AuthorizationQueryParametersError, std::string(what)); }

S3Result<void> read_header_time(const AuthRequest& request, Authorization& out) {
  std::optional<int64_t> at;
  if (const auto amz = request.header("x-amz-date")) {
    at = http::parse_basic_iso8601(*amz);
  } else if (const auto date = request.header("date")) {
    at = http::parse_http_date(*date);
    if (!at) at = http::parse_basic_iso8601(*date);
  }
  if (!at) return S3Error(Code::AccessDenied, "Authentication requires a valid Date or x-amz-date header.");
  out.signed_at_unix_s = *at;
  out.timestamp = format_amz_timestamp(*at);
  if (!out.timestamp.starts_with(out.date)) return malformed("the credential's date differs from the request's");
  return {};
}

S3Result<Authorization> parse_header(const AuthRequest& request, std::string_view value) {
  Authorization out;
  value.remove_prefix(kAlgorithm.size());
  bool credential = false;
  bool headers = false;
  bool signature = false;
  for (const std::string& item : split(value, ',')) {
    const std::string_view part = trim(item);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return malformed("expected Credential=, SignedHeaders= and Signature=");
    const std::string_view name = part.substr(0, equals);
    const std::string_view content = part.substr(equals + 1);
    if (name == "Credential") {
      credential = parse_credential(content, out);
    } else if (name == "SignedHeaders") {
      headers = parse_signed_headers(content, out);
    } else if (name == "Signature") {
      signature = is_signature(content);
      out.signature = content;
    }
  }
  if (!credential) return malformed("the credential must read ACCESS_KEY/YYYYMMDD/REGION/s3/aws4_request");
  if (!headers) return malformed("SignedHeaders must be a sorted list of lower-case names");
  if (!signature) return malformed("the signature must be 64 lower-case hexadecimal digits");
  TRY(read_header_time(request, out));
  const auto hash = request.header("x-amz-content-sha256");
  if (!hash) return S3Error(Code::InvalidRequest, "Missing required header for this request: x-amz-content-sha256");
  out.payload_hash = *hash;
  return out;
}

S3Result<Authorization> parse_presigned(const AuthRequest& request, const QueryParameters& parameters) {
  const auto get = [&](std::string_view name) -> const std::string* {
    for (const auto& [key, value] : parameters) {
      if (key == name) return &value;
    }
    return nullptr;
  };
  Authorization out;
  out.presigned = true;
  for (const char* name : {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders",
                           "X-Amz-Signature"}) {
    if (get(name) == nullptr) {
      return bad_query(
          "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, "
          "X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.");
    }
  }
  if (*get("X-Amz-Algorithm") != kAlgorithm) return bad_query("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"");
  if (!parse_credential(*get("X-Amz-Credential"), out)) {
    return bad_query("X-Amz-Credential must read ACCESS_KEY/YYYYMMDD/REGION/s3/aws4_request");
  }
  if (!parse_signed_headers(*get("X-Amz-SignedHeaders"), out)) {
    return bad_query("X-Amz-SignedHeaders must be a sorted list of lower-case names");
  }
  const auto at = http::parse_basic_iso8601(*get("X-Amz-Date"));
  if (!at) return bad_query("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"");
  out.timestamp = *get("X-Amz-Date");
  out.signed_at_unix_s = *at;
  if (!out.timestamp.starts_with(out.date)) return bad_query("X-Amz-Credential's date differs from X-Amz-Date");

  const std::string& expires = *get("X-Amz-Expires");
  const auto [end, problem] = std::from_chars(expires.data(), expires.data() + expires.size(), out.expires_s);
  if (problem != std::errc() || end != expires.data() + expires.size() || out.expires_s < 1) {
    return bad_query("X-Amz-Expires should be a number of seconds from 1 to 604800");
  }
  if (out.expires_s > kMaxExpirySeconds) {
    return bad_query(
        "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be "
        "less than 604800 seconds");
  }
  out.signature = *get("X-Amz-Signature");
  if (!is_signature(out.signature)) return S3Error(Code::SignatureDoesNotMatch);
  const std::string* hash = get("X-Amz-Content-Sha256");
  const auto header_hash = request.header("x-amz-content-sha256");
  out.payload_hash = hash != nullptr ? *hash : header_hash ? std::string(*header_hash) : "UNSIGNED-PAYLOAD";
  return out;
}

std::string canonical_path(std::string_view path) {
  // A path that isn't decodable was refused before; as it stands, it can match no signature.
  const auto decoded = uri_decode(path, false);
  return uri_encode(decoded ? *decoded : std::string(path), true);
}

std::string canonical_query(std::string_view query, bool presigned) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : parse_query(query).value_or(QueryParameters())) {
    if (presigned && name == "X-Amz-Signature") continue;
    pairs.emplace_back(uri_encode(name, false), uri_encode(value, false));
  }
  std::ranges::sort(pairs);
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out.push_back('&');
    out.append(name).append("=").append(value);
  }
  return out;
}

std::string canonical_request(const Authorization& authorization, const AuthRequest& request,
                              std::optional<std::string_view> host) {
  std::string out;
  out.append(request.method).append("\n");
  out.append(canonical_path(request.path)).append("\n");
  out.append(canonical_query(request.query, authorization.presigned)).append("\n");
  for (const std::string& name : authorization.signed_headers) {
    out.append(name).append(":");
    bool first = true;
    for (const auto& [header, value] : request.headers) {
      if (header != name) continue;
      if (!first) out.push_back(',');
      first = false;
      append_canonical_value(out, name == "host" && host ? *host : value);
    }
    out.append("\n");
  }
  out.append("\n");
  for (size_t i = 0; i < authorization.signed_headers.size(); ++i) {
    if (i > 0) out.push_back(';');
    out.append(authorization.signed_headers[i]);
  }
  out.append("\n").append(authorization.payload_hash);
  return out;
}

// The Host header as clients may have signed it.
std::vector<std::string> host_spellings(std::string_view host, std::span<const std::string> public_hosts) {
  std::vector<std::string> spellings{std::string(host)};
  for (const std::string_view port : {":80", ":443"}) {
    if (host.ends_with(port)) spellings.emplace_back(host.substr(0, host.size() - port.size()));
  }
  if (host.find(':') == std::string_view::npos) {
    spellings.push_back(std::string(host) + ":80");
    spellings.push_back(std::string(host) + ":443");
  }
  spellings.insert(spellings.end(), public_hosts.begin(), public_hosts.end());
  return spellings;
}

S3Result<void> check_signed_headers(const Authorization& authorization, const AuthRequest& request) {
  const auto is_signed = [&](std::string_view name) {
    return std::ranges::binary_search(authorization.signed_headers, name);
  };
  if (!is_signed("host")) return S3Error(Code::AccessDenied, "The Host header must be signed.");
  for (const auto& [name, value] : request.headers) {
    if (!name.starts_with("x-amz-") || is_signed(name)) continue;
    // SDKs add it to presigned requests of their own accord; it is checked against the body anyway.
    if (authorization.presigned && name == "x-amz-content-sha256") continue;
    return S3Error(Code::AccessDenied, fmt::format("The header {} is present but not signed.", name));
  }
  return {};
}

}  // namespace

std::optional<std::string_view> AuthRequest::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return std::nullopt;
}

std::string Authorization::scope() const { return fmt::format("{}/{}/{}/aws4_request", date, region, service); }

std::string format_amz_timestamp(int64_t unix_s) {
  const http::CivilTime t = http::to_civil(unix_s);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", t.year, t.month, t.day, t.hour, t.minute, t.second);
}

S3Result<std::optional<Authorization>> parse_authorization(const AuthRequest& request) {
  const auto parameters = parse_query(request.query);
  if (!parameters) return S3Error(Code::InvalidURI, "The query string is not well-formed.");
  const bool presigned = std::ranges::any_of(*parameters, [](const auto& parameter) {
    return parameter.first == "X-Amz-Algorithm" || parameter.first == "X-Amz-Signature";
  });
  const auto header = request.header("authorization");
  if (header && presigned) {
    return S3Error(Code::InvalidArgument,
                   "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter or the Authorization "
                   "header should be specified.");
  }
  if (presigned) {
    TRY(auto authorization, parse_presigned(request, *parameters));
    return std::optional(std::move(authorization));
  }
  if (!header) return std::optional<Authorization>();
  if (!header->starts_with(kAlgorithm)) {
    if (header->starts_with("AWS ")) {
      return S3Error(Code::InvalidRequest,
                     "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.");
    }
    return S3Error(Code::InvalidArgument, "Unsupported Authorization Type");
  }
  TRY(auto authorization, parse_header(request, *header));
  return std::optional(std::move(authorization));
}

S3Result<void> check_time(const Authorization& authorization, int64_t now_unix_s) {
  const int64_t age_s = now_unix_s - authorization.signed_at_unix_s;
  if (!authorization.presigned) {
    if (age_s > kMaxSkewSeconds || age_s < -kMaxSkewSeconds) return Code::RequestTimeTooSkewed;
    return {};
  }
  if (age_s < -kMaxSkewSeconds) return S3Error(Code::AccessDenied, "Request is not valid yet");
  if (age_s > authorization.expires_s) return S3Error(Code::AccessDenied, "Request has expired");
  return {};
}

Sha256 signing_key(std::string_view secret_key, const Authorization& authorization) {
  const std::string start = "AWS4" + std::string(secret_key);
  const Sha256 date = hmac_sha256(std::as_bytes(std::span(start)), authorization.date);
  const Sha256 region = hmac_sha256(date, authorization.region);
  const Sha256 service = hmac_sha256(region, authorization.service);
  return hmac_sha256(service, "aws4_request");
}

std::string compute_signature(const Sha256& key, const Authorization& authorization, const AuthRequest& request,
                              std::optional<std::string_view> host) {
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, authorization.timestamp, authorization.scope(),
                                       hex(sha256(canonical_request(authorization, request, host))));
  return hex(hmac_sha256(key, text));
}

S3Result<void> verify(const Sha256& key, const Authorization& authorization, const AuthRequest& request,
                      std::span<const std::string> public_hosts) {
  TRY(check_signed_headers(authorization, request));
  const std::string_view host = request.header("host").value_or("");
  for (const std::string& spelling : host_spellings(host, public_hosts)) {
    if (equal_secret(compute_signature(key, authorization, request, spelling), authorization.signature)) return {};
  }
  return Code::SignatureDoesNotMatch;
}

std::string ChunkSigner::sign(std::string_view algorithm, std::string_view hashes) {
  previous_ =
      hex(hmac_sha256(key_, fmt::format("{}\n{}\n{}\n{}\n{}", algorithm, timestamp_, scope_, previous_, hashes)));
  return previous_;
}

std::string ChunkSigner::sign_chunk(std::string_view data_sha256_hex) {
  static const std::string empty = hex(sha256(""));
  return sign("AWS4-HMAC-SHA256-PAYLOAD", fmt::format("{}\n{}", empty, data_sha256_hex));
}

std::string ChunkSigner::sign_trailer(std::string_view lines) {
  return sign("AWS4-HMAC-SHA256-TRAILER", hex(sha256(lines)));
}

}  // namespace cairn::s3
