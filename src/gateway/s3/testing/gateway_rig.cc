#include "gateway/s3/testing/gateway_rig.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "gateway/s3/digest.h"

namespace cairn::s3::testing {

using http::testing::TestClient;
using http::testing::TestResponse;

namespace {

std::string sha256_hex(std::string_view text) { return to_hex(sha256(text)); }

}  // namespace

GatewayRig::GatewayRig(Settings settings)
    : handler_(Handler::Context{*http.reactor, http.wall_clock, store, http.registry}, std::move(settings)),
      server_(http::Server::Context{*http.reactor, *http.pool, http.registry, http.wall_clock},
              {.metrics_label = "listener=\"s3\""}, handler_) {
  auto opened = Listener::open(*http.reactor, Address::loopback(0), {});
  ASSERT(opened.has_value());
  listener = *std::move(opened);
}

void GatewayRig::tell(Task<void> (*story)(GatewayRig*)) { http.run(&GatewayRig::with_server, this, story); }

Task<void> GatewayRig::with_server(GatewayRig* rig, Task<void> (*story)(GatewayRig*)) {
  (void)co_await rig->store.put_access_key({std::string(kAccessKey), std::string(kSecretKey), 0, ""}, {});
  Scope scope(*rig->http.reactor);
  scope.spawn(&http::Server::accept_from, &rig->server_, &rig->listener);
  co_await story(rig);
  co_await rig->server_.stop(seconds(5));
  rig->listener.close();
  co_await scope.join();
}

Authorization GatewayRig::claim(const S3Request& request) const {
  Authorization a;
  a.access_key = kAccessKey;
  a.signed_at_unix_s = now_s() + request.skew_s;
  a.timestamp = format_amz_timestamp(a.signed_at_unix_s);
  a.date = a.timestamp.substr(0, 8);
  a.region = "us-east-1";
  a.service = "s3";
  return a;
}

std::string GatewayRig::signed_bytes(const S3Request& request, Authorization* out) {
  Authorization a = claim(request);
  a.payload_hash = request.payload_hash.empty() ? sha256_hex(request.body) : request.payload_hash;
  S3Request::Fields fields = request.headers;
  fields.emplace_back("host", request.host.empty() ? host() : request.host);
  fields.emplace_back("x-amz-date", a.timestamp);
  fields.emplace_back("x-amz-content-sha256", a.payload_hash);
  AuthRequest claimed{request.method, request.path, request.query, {}};
  for (const auto& [name, value] : fields) {
    claimed.headers.emplace_back(name, value);
    if (std::ranges::find(a.signed_headers, name) == a.signed_headers.end()) a.signed_headers.push_back(name);
  }
  std::ranges::sort(a.signed_headers);
  a.signature = compute_signature(key_of(a), a, claimed);

  std::string bytes =
      request.method + " " + request.path + (request.query.empty() ? "" : "?" + request.query) + " HTTP/1.1\r\n";
  for (const auto& [name, value] : fields) bytes += fmt::format("{}: {}\r\n", name, value);
  bytes += fmt::format("authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}\r\n",
                       a.access_key, a.scope(), fmt::join(a.signed_headers, ";"), a.signature);
  if (request.chunked) {
    bytes +=
        fmt::format("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", request.body.size(), request.body);
  } else {
    bytes += fmt::format("Content-Length: {}\r\n\r\n{}", request.body.size(), request.body);
  }
  if (out != nullptr) *out = a;
  return bytes;
}

std::string GatewayRig::presigned_query(const S3Request& request, std::string expires) {
  Authorization a = claim(request);
  a.presigned = true;
  a.payload_hash = "UNSIGNED-PAYLOAD";
  AuthRequest claimed{request.method, request.path, {}, {}};
  S3Request::Fields fields = request.headers;
  fields.emplace_back("host", request.host.empty() ? host() : request.host);
  std::ranges::sort(fields);
  for (const auto& [name, value] : fields) {
    claimed.headers.emplace_back(name, value);
    a.signed_headers.push_back(name);
  }
  std::string query = request.query;
  if (!query.empty()) query += "&";
  query += fmt::format(
      "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}&X-Amz-Date={}&X-Amz-Expires={}"
      "&X-Amz-SignedHeaders={}",
      uri_encode(a.access_key + "/" + a.scope(), false), a.timestamp, expires,
      uri_encode(fmt::format("{}", fmt::join(a.signed_headers, ";")), false));
  claimed.query = query;
  return query + "&X-Amz-Signature=" + compute_signature(key_of(a), a, claimed);
}

Task<TestResponse> GatewayRig::send_raw(std::string bytes, size_t split, bool head) {
  TestClient client(*http.reactor);
  if (!co_await client.connect(listener.local())) co_return TestResponse{};
  if (split > 0 && split < bytes.size()) {
    (void)co_await client.send(std::string_view(bytes).substr(0, split));
    co_await client.let_server_run();
    (void)co_await client.send(std::string_view(bytes).substr(split));
  } else {
    (void)co_await client.send(bytes);
  }
  auto response = co_await client.receive(head);
  co_return response ? *std::move(response) : TestResponse{};
}

Task<TestResponse> GatewayRig::call(S3Request request) {
  co_return co_await send_raw(signed_bytes(request), 0, request.method == "HEAD");
}

Task<TestResponse> GatewayRig::put(std::string path, std::string body, S3Request::Fields headers) {
  co_return co_await call(
      {.method = "PUT", .path = std::move(path), .headers = std::move(headers), .body = std::move(body)});
}

Task<TestResponse> GatewayRig::get(std::string path, S3Request::Fields headers) {
  co_return co_await call({.path = std::move(path), .headers = std::move(headers)});
}

std::vector<std::string> xml_texts(const std::string& document, const std::string& name) {
  std::vector<std::string> all;
  const std::string open = "<" + name + ">";
  for (size_t at = document.find(open); at != std::string::npos; at = document.find(open, at)) {
    at += open.size();
    all.push_back(document.substr(at, document.find("</" + name + ">", at) - at));
  }
  return all;
}

std::string xml_text(const std::string& document, const std::string& name) {
  const auto all = xml_texts(document, name);
  return all.empty() ? "" : all.front();
}

std::string signed_chunks(const Sha256& key, const Authorization& authorization, const std::vector<std::string>& chunks,
                          const std::vector<std::pair<std::string, std::string>>* trailers, bool sign_trailer) {
  ChunkSigner signer(key, authorization);
  std::string out;
  for (const std::string& chunk : chunks) {
    out += fmt::format("{:x};chunk-signature={}\r\n{}\r\n", chunk.size(), signer.sign_chunk(sha256_hex(chunk)), chunk);
  }
  out += fmt::format("0;chunk-signature={}\r\n", signer.sign_chunk(sha256_hex("")));
  if (trailers != nullptr) {
    std::string lines;
    for (const auto& [name, value] : *trailers) {
      lines += fmt::format("{}:{}\n", name, value);
      out += fmt::format("{}:{}\r\n", name, value);
    }
    if (sign_trailer) out += "x-amz-trailer-signature:" + signer.sign_trailer(lines) + "\r\n";
  }
  return out + "\r\n";
}

std::string md5_base64(const std::string& text) {
  Digest digest(DigestKind::md5);
  digest.update(std::as_bytes(std::span(text)));
  const std::string raw = digest.finish();
  return to_base64(std::as_bytes(std::span(raw)));
}

std::string checksum_base64(ChecksumKind kind, const std::string& text) {
  const auto stream = ChecksumStream::create(kind);
  stream->update(std::as_bytes(std::span(text)));
  return stream->finish();
}

}  // namespace cairn::s3::testing
