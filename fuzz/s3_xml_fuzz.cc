// The XML bodies that clients send. What is accepted must be writable back as well-formed XML.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/s3/xml_request.h"
#include "gateway/s3/xml_response.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  (void)cairn::s3::parse_create_bucket(body);
  (void)cairn::s3::parse_complete_upload(body);
  const auto parsed = cairn::s3::parse_delete(body);
  if (!parsed) return 0;
  std::vector<cairn::s3::DeleteOutcome> outcomes;
  for (const auto& item : parsed->items) {
    if (item.key.empty()) __builtin_trap();
    outcomes.push_back({item.key, std::nullopt});
  }
  const std::string text = cairn::s3::render_delete(outcomes, false);
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') __builtin_trap();
  }
  return 0;
}
