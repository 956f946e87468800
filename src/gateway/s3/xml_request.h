// The XML bodies that clients send. Everything is MalformedXML that isn't well-formed, isn't the schema, has a document
// type or holds characters that XML 1.0 can't: acting on a guess would delete the wrong object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/s3/checksum.h"
#include "gateway/s3/error.h"

namespace cairn::s3 {

inline constexpr size_t kMaxXmlBody = size_t{2} << 20;  // what 10,000 parts with checksums need, and more
inline constexpr size_t kMaxDeleteKeys = 1000;
inline constexpr uint32_t kMaxPartNumber = 10'000;

struct DeleteBody {
  struct Item {
    std::string key;
    std::optional<std::string> version_id;
    std::optional<std::string> etag;  // without quotes
  };
  bool quiet = false;
  std::vector<Item> items;  // 1 to 1,000
};
S3Result<DeleteBody> parse_delete(std::string_view body);

struct CompletedPart {
  uint32_t number = 0;  // 1 to 10,000
  std::string etag;     // without quotes
  std::optional<std::pair<ChecksumKind, std::string>> checksum;
};
// In the order they came; the caller checks the order (InvalidPartOrder).
S3Result<std::vector<CompletedPart>> parse_complete_upload(std::string_view body);

// The location constraint; empty when there is none or no body.
S3Result<std::string> parse_create_bucket(std::string_view body);

}  // namespace cairn::s3
