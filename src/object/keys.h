// Where the object layer's records stand in the ordered maps.
//
//   system group
//     B/ name                               BucketRecord: the directory of buckets
//     K/ access key                         access key
//     N/                                    the last session number
//     S/ session                            SessionRecord
//   a bucket's group
//     b/ bucket                             BucketRecord: the bucket exists (every commit's condition)
//     z/ bucket or upload                   frozen: about to be removed or completed (commits wait)
//     o/ bucket key                         ObjectRecord
//     t/ bucket data                        PartTable
//     u/ bucket escaped-key 00 01 upload    UploadRecord
//     p/ bucket upload number               PartRecord
//   every group
//     f/ session                            the session lives (every commit's condition)
//     q/ time unique                        GarbageRecord: the delete queue
//
// Identifiers have 16 bytes (bucket, upload, unique) or 12 (data), numbers are big-endian: 4 bytes (session, number) or
// 8 (time). Keys of objects are the last component or escaped, so that byte order is key order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/id.h"
#include "object/data_id.h"

namespace cairn::object::keys {

inline constexpr std::string_view kBuckets = "B/";
inline constexpr std::string_view kAccessKeys = "K/";
inline constexpr std::string_view kSessionCounter = "N/";
inline constexpr std::string_view kSessions = "S/";
inline constexpr std::string_view kBucketStates = "b/";
inline constexpr std::string_view kObjects = "o/";
inline constexpr std::string_view kTables = "t/";
inline constexpr std::string_view kParts = "p/";
inline constexpr std::string_view kGarbage = "q/";

// The longest key of an object: with its escaped form and an upload's id it must fit client::Client::kMaxKeyBytes for
// all keys that hold no zero bytes.
inline constexpr size_t kMaxObjectKey = 1'800;

std::string bucket_entry(std::string_view name);
std::string access_key(std::string_view id);
std::string session(uint32_t number);
std::optional<uint32_t> session_of(std::string_view key);

std::string bucket_state(Id128 bucket);
std::string frozen(Id128 id);
std::string fence(uint32_t session);
// With an empty key: the prefix of all of the bucket's.
std::string object(Id128 bucket, std::string_view key);
std::string table(Id128 bucket, DataId data);
// All uploads of the bucket whose key begins with `key_prefix`.
std::string upload_prefix(Id128 bucket, std::string_view key_prefix);
// All uploads of exactly this key.
std::string upload_key_prefix(Id128 bucket, std::string_view key);
std::string upload(Id128 bucket, std::string_view key, Id128 upload);
std::string part_prefix(Id128 bucket, Id128 upload);
std::string part(Id128 bucket, Id128 upload, uint32_t number);
std::string garbage(int64_t unix_ns, Id128 unique);

// What comes after the bucket in an object's key.
std::string_view key_of_object(std::string_view stored);
struct UploadKey {
  std::string key;
  Id128 upload;
};
// None: not the key of an upload.
std::optional<UploadKey> parse_upload(std::string_view stored);
std::optional<uint32_t> part_number(std::string_view stored);

}  // namespace cairn::object::keys
