// aws-chunked bodies, whole and cut at an arbitrary place: both must decode to the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/s3/aws_chunked.h"

namespace {

std::string decode(std::string_view body, uint64_t length, size_t cut) {
  cairn::s3::AwsChunkedDecoder decoder({std::nullopt, {"x-amz-checksum-crc32"}, length});
  std::string payload;
  size_t at = 0;
  size_t arrived = cut;
  while (!decoder.done()) {
    const std::string_view here = body.substr(at, arrived - at);
    if (decoder.data_left() > 0 && !here.empty()) {
      const size_t n = std::min<uint64_t>(decoder.data_left(), here.size());
      payload.append(here.substr(0, n));
      if (!decoder.data(std::as_bytes(std::span(here.substr(0, n))))) return "error";
      at += n;
      continue;
    }
    if (decoder.data_left() == 0) {
      const auto taken = decoder.consume(here);
      if (!taken) return "error";
      if (*taken > here.size()) __builtin_trap();
      at += *taken;
      if (*taken > 0) continue;
    }
    if (arrived == body.size()) return "short";
    arrived = body.size();
  }
  if (payload.size() != length) __builtin_trap();
  return "ok" + payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const uint64_t length = data[0] | static_cast<uint64_t>(data[1]) << 8;
  const std::string_view body(reinterpret_cast<const char*>(data) + 4, size - 4);
  const size_t cut = (data[2] | static_cast<size_t>(data[3]) << 8) % (body.size() + 1);
  if (decode(body, length, body.size()) != decode(body, length, cut)) __builtin_trap();
  return 0;
}
