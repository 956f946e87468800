// GatewayRig: the S3 gateway over a MemoryStore, reached through real sockets on loopback, and a client that signs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/http/server.h"
#include "gateway/http/testing/client.h"
#include "gateway/http/testing/rig.h"
#include "gateway/s3/checksum.h"
#include "gateway/s3/handler.h"
#include "gateway/s3/sigv4.h"
#include "gateway/s3/testing/memory_store.h"

namespace cairn::s3::testing {

inline constexpr std::string_view kAccessKey = "AKIDEXAMPLE";
inline constexpr std::string_view kSecretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

// A request as a test writes it; signing adds the rest.
struct S3Request {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  std::string method = "GET";
  std::string path{};   // encoded, as it shall stand in the request line
  std::string query{};  // encoded
  Fields headers{};     // names in lower case; all are signed
  std::string body{};
  // x-amz-content-sha256; empty: the body's hash.
  std::string payload_hash{};
  // Not sent: length by "Content-Length: body".
  bool chunked = false;  // Transfer-Encoding: chunked, in one chunk
  std::string host{};    // default: the server's
  int64_t skew_s = 0;
};

class GatewayRig {
 public:
  explicit GatewayRig(Settings settings = {});

  // Runs `story(this)` beside the server, then stops the server.
  void tell(Task<void> (*story)(GatewayRig*));

  // Sends it signed, on a connection of its own, and gives the answer; status 0: none.
  Task<http::testing::TestResponse> call(S3Request request);
  // For the usual: body and headers.
  Task<http::testing::TestResponse> put(std::string path, std::string body, S3Request::Fields headers = {});
  Task<http::testing::TestResponse> get(std::string path, S3Request::Fields headers = {});
  // Sends bytes as they are, in two pieces if `split` says so.
  Task<http::testing::TestResponse> send_raw(std::string bytes, size_t split = 0, bool head = false);

  // The whole request as bytes.
  std::string signed_bytes(const S3Request& request, Authorization* authorization = nullptr);
  // "X-Amz-Algorithm=...&X-Amz-Signature=..." for `request`, whose headers are signed.
  std::string presigned_query(const S3Request& request, std::string expires);
  Sha256 key_of(const Authorization& authorization) const { return signing_key(kSecretKey, authorization); }
  std::string host() const { return "127.0.0.1:" + std::to_string(listener.local().port()); }
  int64_t now_s() const { return http.wall_clock.unix_ns() / 1'000'000'000; }
  uint64_t payload_copied() { return http.pool->copied().value(); }

  http::testing::Rig http{size_t{96} << 20};
  MemoryStore store{*http.reactor, http.wall_clock};
  Listener listener;

 private:
  static Task<void> with_server(GatewayRig* rig, Task<void> (*story)(GatewayRig*));
  Authorization claim(const S3Request& request) const;

  Handler handler_;
  http::Server server_;
};

// <Code> of an error document, or what stands between <name> and </name> of any document.
std::string xml_text(const std::string& document, const std::string& name);
// All of them, in order.
std::vector<std::string> xml_texts(const std::string& document, const std::string& name);
// The code of an error answer.
inline std::string error_code(const http::testing::TestResponse& response) { return xml_text(response.body, "Code"); }

// The body of a signed aws-chunked upload, continuing from `authorization`'s signature.
std::string signed_chunks(const Sha256& key, const Authorization& authorization, const std::vector<std::string>& chunks,
                          const std::vector<std::pair<std::string, std::string>>* trailers = nullptr,
                          bool sign_trailer = true);
std::string md5_base64(const std::string& text);
std::string checksum_base64(ChecksumKind kind, const std::string& text);

}  // namespace cairn::s3::testing
