// The checksums that S3 clients send (x-amz-checksum-*): computed in pieces, combined over parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::s3 {

enum class ChecksumKind : uint8_t { crc32, crc32c, crc64nvme, sha1, sha256 };

struct ChecksumInfo {
  ChecksumKind kind;
  std::string_view name;    // "CRC32C", as in x-amz-checksum-algorithm
  std::string_view header;  // "x-amz-checksum-crc32c"
  size_t bytes;             // of the raw value
  bool combines;            // the whole's value follows from the parts' (FULL_OBJECT is possible for multipart)
  bool composites;          // a checksum of the parts' checksums is defined (COMPOSITE)
};
std::span<const ChecksumInfo> all_checksums();
const ChecksumInfo& checksum_info(ChecksumKind kind);
// Names in any case.
std::optional<ChecksumKind> checksum_by_name(std::string_view name);
std::optional<ChecksumKind> checksum_by_header(std::string_view lower_case_header);

// Checks the form of a header's value: canonical base64 of the right size.
bool is_checksum_value(ChecksumKind kind, std::string_view base64);

class ChecksumStream {
 public:
  virtual ~ChecksumStream() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  // Base64 of the big-endian value, as the header carries it. Call once.
  virtual std::string finish() = 0;

  static std::unique_ptr<ChecksumStream> create(ChecksumKind kind);
};

struct PartChecksum {
  std::string base64;
  uint64_t size = 0;  // bytes of the part
};
// The whole object's checksum from its parts'; only for kinds that combine. None when a value is malformed.
std::optional<std::string> combine_full_object(ChecksumKind kind, std::span<const PartChecksum> parts);
// The checksum of the parts' raw checksums, with "-N" behind it. None when a value is malformed.
std::optional<std::string> combine_composite(ChecksumKind kind, std::span<const PartChecksum> parts);

}  // namespace cairn::s3
