#include "cli/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

namespace cairn::cli {
namespace {

constexpr size_t kMaxBodyBytes = size_t{64} << 20;
constexpr long kConnectTimeoutMs = 5'000;

size_t append_body(char* data, size_t size, size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  const size_t bytes = size * count;
  if (text.size() + bytes > kMaxBodyBytes) return 0;  // curl takes this for an error and stops
  text.append(data, bytes);
  return bytes;
}

struct CurlCleanup {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

Failure failure_of(CURLcode code, const HttpRequest& request, const char* detail) {
  const std::string why = detail[0] != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
      return {Exit::unreachable, "unavailable",
              fmt::format("no node answers at {} ({}); is cairnd running? --endpoint and CAIRN_ENDPOINT name another",
                          request.url, why)};
    case CURLE_OPERATION_TIMEDOUT:
      return {Exit::unreachable, "timed_out", fmt::format("{} did not answer in time ({})", request.url, why)};
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return {Exit::unreachable, "closed", fmt::format("{} closed the connection ({})", request.url, why)};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {Exit::usage, "invalid_argument",
              fmt::format("'{}' is not an endpoint; write for example 127.0.0.1:7070", request.url)};
    default:
      return {Exit::error, "unknown", fmt::format("{}: {}", request.url, why)};
  }
}

}  // namespace

std::expected<HttpResponse, Failure> send(const HttpRequest& request) {
  const std::unique_ptr<CURL, CurlCleanup> curl(curl_easy_init());
  if (!curl) return std::unexpected(Failure{Exit::error, "unknown", "libcurl can't start"});
  HttpResponse response;
  char detail[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(curl.get(), option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  // A proxy of the environment is for the world outside; a bearer token isn't.
  set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.ms()));
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(detail));
  set(CURLOPT_WRITEFUNCTION, &append_body);
  set(CURLOPT_WRITEDATA, &response.body);

  std::unique_ptr<curl_slist, CurlCleanup> headers;
  const auto add_header = [&](const std::string& header) {
    headers.reset(curl_slist_append(headers.release(), header.c_str()));
  };
  if (!request.bearer_token.empty()) add_header("Authorization: Bearer " + request.bearer_token);
  if (!request.json_body.empty()) {
    add_header("Content-Type: application/json");
    set(CURLOPT_POSTFIELDS, request.json_body.c_str());
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.json_body.size()));
  } else if (request.method == "POST") {
    set(CURLOPT_POSTFIELDS, "");
    set(CURLOPT_POSTFIELDSIZE, 0L);
  }
  set(CURLOPT_HTTPHEADER, headers.get());

  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return std::unexpected(failure_of(code, request, detail));
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &response.status);
  return response;
}

}  // namespace cairn::cli
