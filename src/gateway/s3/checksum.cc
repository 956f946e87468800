#include "gateway/s3/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/base64.h"
#include "base/crc32c.h"
#include "gateway/s3/crc64nvme.h"
#include "gateway/s3/digest.h"

namespace cairn::s3 {
namespace {

constexpr std::array kChecksums = {
    ChecksumInfo{ChecksumKind::crc32, "CRC32", "x-amz-checksum-crc32", 4, true, true},
    ChecksumInfo{ChecksumKind::crc32c, "CRC32C", "x-amz-checksum-crc32c", 4, true, true},
    ChecksumInfo{ChecksumKind::crc64nvme, "CRC64NVME", "x-amz-checksum-crc64nvme", 8, true, false},
    ChecksumInfo{ChecksumKind::sha1, "SHA1", "x-amz-checksum-sha1", 20, false, true},
    ChecksumInfo{ChecksumKind::sha256, "SHA256", "x-amz-checksum-sha256", 32, false, true},
};

template <typename Int>
std::string big_endian(Int value) {
  std::string raw(sizeof value, '\0');
  for (size_t i = raw.size(); i > 0; --i, value = static_cast<Int>(value >> 8)) raw[i - 1] = static_cast<char>(value);
  return raw;
}

uint64_t from_big_endian(std::string_view raw) {
  uint64_t value = 0;
  for (const char c : raw) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string base64_of(std::string_view raw) { return to_base64(std::as_bytes(std::span(raw))); }

uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous) {
  // isa-l takes the length as 64 bits here and does the inversion at both ends itself.
  return crc32_gzip_refl(previous, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

template <typename Int, Int (*Update)(std::span<const std::byte>, Int)>
class CrcStream final : public ChecksumStream {
 public:
  void update(std::span<const std::byte> bytes) override { value_ = Update(bytes, value_); }
  std::string finish() override { return base64_of(big_endian(value_)); }

 private:
  Int value_ = 0;
};

uint32_t crc32c_update(std::span<const std::byte> bytes, uint32_t previous) { return crc32c(bytes, previous); }
uint64_t crc64nvme_update(std::span<const std::byte> bytes, uint64_t previous) { return crc64nvme(bytes, previous); }

class DigestStream final : public ChecksumStream {
 public:
  explicit DigestStream(DigestKind kind) : digest_(kind) {}
  void update(std::span<const std::byte> bytes) override { digest_.update(bytes); }
  std::string finish() override { return base64_of(digest_.finish()); }

 private:
  Digest digest_;
};

// Polynomials modulo a CRC's generator, reflected: the highest bit of the width is x^0.
class Field {
 public:
  Field(unsigned width, uint64_t reflected_polynomial)
      : one_(uint64_t{1} << (width - 1)), polynomial_(reflected_polynomial) {}

  uint64_t times_x(uint64_t a) const { return (a >> 1) ^ ((a & 1) != 0 ? polynomial_ : 0); }
  uint64_t multiply(uint64_t a, uint64_t b) const {
    uint64_t product = 0;
    for (uint64_t bit = one_; bit != 0; bit >>= 1, b = times_x(b)) {
      if ((a & bit) != 0) product ^= b;
    }
    return product;
  }
  // x^(8 * bytes)
  uint64_t shift_by(uint64_t bytes) const {
    uint64_t base = one_;
    for (int i = 0; i < 8; ++i) base = times_x(base);
    uint64_t result = one_;
    for (; bytes != 0; bytes >>= 1, base = multiply(base, base)) {
      if ((bytes & 1) != 0) result = multiply(result, base);
    }
    return result;
  }

 private:
  uint64_t one_;
  uint64_t polynomial_;
};

Field field_of(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::crc32:
      return {32, 0xedb88320};
    case ChecksumKind::crc32c:
      return {32, 0x82f63b78};
    default:
      return {64, 0x9a6c9329ac4bc9b5};
  }
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

}  // namespace

std::span<const ChecksumInfo> all_checksums() { return kChecksums; }

const ChecksumInfo& checksum_info(ChecksumKind kind) { return kChecksums[static_cast<size_t>(kind)]; }

std::optional<ChecksumKind> checksum_by_name(std::string_view name) {
  for (const auto& info : kChecksums) {
    if (equal_ignoring_case(info.name, name)) return info.kind;
  }
  return std::nullopt;
}

std::optional<ChecksumKind> checksum_by_header(std::string_view lower_case_header) {
  for (const auto& info : kChecksums) {
    if (info.header == lower_case_header) return info.kind;
  }
  return std::nullopt;
}

bool is_checksum_value(ChecksumKind kind, std::string_view base64) {
  const auto raw = from_base64(base64);
  return raw && raw->size() == checksum_info(kind).bytes;
}

std::unique_ptr<ChecksumStream> ChecksumStream::create(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::crc32:
      return std::make_unique<CrcStream<uint32_t, crc32>>();
    case ChecksumKind::crc32c:
      return std::make_unique<CrcStream<uint32_t, crc32c_update>>();
    case ChecksumKind::crc64nvme:
      return std::make_unique<CrcStream<uint64_t, crc64nvme_update>>();
    case ChecksumKind::sha1:
      return std::make_unique<DigestStream>(DigestKind::sha1);
    case ChecksumKind::sha256:
      return std::make_unique<DigestStream>(DigestKind::sha256);
  }
  return nullptr;
}

std::optional<std::string> combine_full_object(ChecksumKind kind, std::span<const PartChecksum> parts) {
  const ChecksumInfo& info = checksum_info(kind);
  ASSERT(info.combines);
  const Field field = field_of(kind);
  uint64_t whole = 0;
  for (const auto& part : parts) {
    if (!is_checksum_value(kind, part.base64)) return std::nullopt;
    whole = field.multiply(whole, field.shift_by(part.size)) ^ from_big_endian(*from_base64(part.base64));
  }
  return base64_of(info.bytes == 4 ? big_endian(static_cast<uint32_t>(whole)) : big_endian(whole));
}

std::optional<std::string> combine_composite(ChecksumKind kind, std::span<const PartChecksum> parts) {
  const auto stream = ChecksumStream::create(kind);
  for (const auto& part : parts) {
    if (!is_checksum_value(kind, part.base64)) return std::nullopt;
    const std::string raw = *from_base64(part.base64);
    stream->update(std::as_bytes(std::span(raw)));
  }
  return stream->finish() + "-" + std::to_string(parts.size());
}

}  // namespace cairn::s3
