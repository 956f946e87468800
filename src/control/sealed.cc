#include "control/sealed.h"

#include <fmt/core.h>

#include <cstring>

#include "base/assert.h"
#include "base/crc32c.h"

namespace cairn::control {
namespace {

uint32_t crc_of(SealHeader header, std::string_view record) {
  header.crc = 0u;
  return crc32c(record.data(), record.size(), crc32c(&header, sizeof header));
}

}  // namespace

std::string seal(uint8_t type, uint8_t version, std::string_view record) {
  ASSERT(record.size() <= UINT32_MAX);
  SealHeader header;
  header.magic = SealHeader::kMagic;
  header.type = type;
  header.version = version;
  header.length = static_cast<uint32_t>(record.size());
  header.crc = crc_of(header, record);
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out += record;
  return out;
}

Result<std::string_view> unseal(uint8_t type, uint8_t newest, std::string_view what, std::string_view bytes) {
  SealHeader header;
  if (bytes.size() < sizeof header) return Error(Errc::corrupt, fmt::format("{}: cut short", what));
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::string_view record = bytes.substr(sizeof header);
  if (header.magic != SealHeader::kMagic || header.length != record.size() || header.crc != crc_of(header, record)) {
    return Error(Errc::corrupt, fmt::format("{}: wrong checksum", what));
  }
  if (header.type != type) return Error(Errc::corrupt, fmt::format("{}: a record of another type", what));
  if (header.version > newest) {
    return Error(Errc::unsupported,
                 fmt::format("{}: written by a newer release (version {}): upgrade this node", what, header.version));
  }
  return record;
}

}  // namespace cairn::control
