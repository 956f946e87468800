// Headers and query strings of anybody, as SigV4 reads them. What parses must also be verifiable without a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/s3/sigv4.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Lines: path, query, authorization, x-amz-date, x-amz-content-sha256, host.
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto line = [&rest] {
    const size_t end = rest.find('\n');
    const std::string_view text = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return text;
  };
  cairn::s3::AuthRequest request;
  request.method = "GET";
  request.path = line();
  request.query = line();
  for (const char* name : {"authorization", "x-amz-date", "x-amz-content-sha256", "host"}) {
    const std::string_view value = line();
    if (!value.empty()) request.headers.emplace_back(name, value);
  }
  const auto parsed = cairn::s3::parse_authorization(request);
  if (!parsed || !*parsed) return 0;
  (void)cairn::s3::check_time(**parsed, 1369353600);
  const auto key = cairn::s3::signing_key("secret", **parsed);
  // Nobody knows the secret: what verifies was not signed with it.
  if (cairn::s3::verify(key, **parsed, request)) __builtin_trap();
  return 0;
}
