#include "object/keys.h"

#include <algorithm>

namespace cairn::object::keys {
namespace {

constexpr size_t kTag = 2;
constexpr size_t kId = sizeof(Id128);

// A zero byte becomes 00 ff, and 00 01 ends the key: no escaped key is a prefix of another one's rest, and the order
// of keys is kept.
constexpr char kZero = '\0';
constexpr char kEscaped = '\xff';
constexpr char kEnd = '\x01';

void append_escaped(std::string& out, std::string_view key) {
  for (const char c : key) {
    out += c;
    if (c == kZero) out += kEscaped;
  }
}

void append(std::string& out, const Id128& id) {
  out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

template <typename Int>
void append_big_endian(std::string& out, Int value) {
  for (size_t i = sizeof value; i > 0; --i) out += static_cast<char>(value >> (8 * (i - 1)) & 0xff);
}

uint32_t parse_big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

std::string tagged(std::string_view tag, const Id128& id) {
  std::string out(tag);
  append(out, id);
  return out;
}

}  // namespace

std::string bucket_entry(std::string_view name) { return std::string(kBuckets).append(name); }
std::string access_key(std::string_view id) { return std::string(kAccessKeys).append(id); }

std::string session(uint32_t number) {
  std::string out(kSessions);
  append_big_endian(out, number);
  return out;
}

std::optional<uint32_t> session_of(std::string_view key) {
  if (key.size() != kTag + 4 || !key.starts_with(kSessions)) return std::nullopt;
  return parse_big_endian(key.substr(kTag));
}

std::string bucket_state(Id128 bucket) { return tagged(kBucketStates, bucket); }
std::string frozen(Id128 id) { return tagged("z/", id); }

std::string fence(uint32_t session) {
  std::string out = "f/";
  append_big_endian(out, session);
  return out;
}

std::string object(Id128 bucket, std::string_view key) { return tagged(kObjects, bucket).append(key); }
std::string table(Id128 bucket, DataId data) { return tagged(kTables, bucket).append(data.view()); }

std::string upload_prefix(Id128 bucket, std::string_view key_prefix) {
  std::string out = tagged("u/", bucket);
  append_escaped(out, key_prefix);
  return out;
}

std::string upload_key_prefix(Id128 bucket, std::string_view key) {
  std::string out = upload_prefix(bucket, key);
  out += kZero;
  out += kEnd;
  return out;
}

std::string upload(Id128 bucket, std::string_view key, Id128 upload) {
  std::string out = upload_key_prefix(bucket, key);
  append(out, upload);
  return out;
}

std::string part_prefix(Id128 bucket, Id128 upload) {
  std::string out = tagged(kParts, bucket);
  append(out, upload);
  return out;
}

std::string part(Id128 bucket, Id128 upload, uint32_t number) {
  std::string out = part_prefix(bucket, upload);
  append_big_endian(out, number);
  return out;
}

std::string garbage(int64_t unix_ns, Id128 unique) {
  std::string out(kGarbage);
  append_big_endian(out, static_cast<uint64_t>(std::max<int64_t>(unix_ns, 0)));
  append(out, unique);
  return out;
}

std::string_view key_of_object(std::string_view stored) {
  return stored.size() < kTag + kId ? std::string_view() : stored.substr(kTag + kId);
}

std::optional<UploadKey> parse_upload(std::string_view stored) {
  if (stored.size() < kTag + kId + 2 + kId || !stored.starts_with("u/")) return std::nullopt;
  const std::string_view id = stored.substr(stored.size() - kId);
  std::string_view escaped = stored.substr(kTag + kId, stored.size() - kTag - 2 * kId);
  if (escaped[escaped.size() - 2] != kZero || escaped.back() != kEnd) return std::nullopt;
  escaped.remove_suffix(2);
  UploadKey out;
  while (!escaped.empty()) {
    const char c = escaped.front();
    escaped.remove_prefix(1);
    out.key += c;
    if (c != kZero) continue;
    if (!escaped.starts_with(kEscaped)) return std::nullopt;
    escaped.remove_prefix(1);
  }
  // cairn-allow(memcpy): an identifier
  std::ranges::copy(id, out.upload.bytes.begin());
  return out;
}

std::optional<uint32_t> part_number(std::string_view stored) {
  if (stored.size() != kTag + 2 * kId + 4) return std::nullopt;
  return parse_big_endian(stored.substr(stored.size() - 4));
}

}  // namespace cairn::object::keys
