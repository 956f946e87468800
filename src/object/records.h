// The records of the object layer as C++ structures, and their bytes (records.proto inside control::seal). Decoding
// trusts nothing; errors: corrupt, unsupported (written by a newer release).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/status.h"
#include "object/data_id.h"
#include "object/object_store.h"

namespace cairn::object {

struct BucketRecord {
  Id128 id{};
  BucketInfo info{};

  std::string encode() const;
  static Result<BucketRecord> decode(std::string_view bytes);
};

struct ObjectRecord {
  DataRef data{};  // size: of the whole object. With parts, the id names the part table.
  std::string etag{};
  int64_t modified_unix_ns = 0;
  Attributes attributes{};
  std::optional<Checksum> checksum{};
  uint32_t part_count = 0;
  Id128 upload{};

  // Without the parts.
  ObjectInfo to_info(std::string key) const;
  std::string encode() const;
  static Result<ObjectRecord> decode(std::string_view bytes);
};

struct TablePart {
  uint32_t number = 0;
  DataRef data{};
  std::string etag{};
  std::optional<Checksum> checksum{};

  PartInfo to_info(int64_t modified_unix_ns) const {
    return {
        .number = number, .size = data.size, .etag = etag, .modified_unix_ns = modified_unix_ns, .checksum = checksum};
  }
};

// The parts of a multipart object, in order. 10,000 of them fit one batch.
struct PartTable {
  std::vector<TablePart> parts{};

  // invalid_argument when parts have checksums of different algorithms.
  Result<std::string> encode() const;
  static Result<PartTable> decode(std::string_view bytes);
};

struct UploadRecord {
  ObjectStore::UploadOptions options{};
  int64_t initiated_unix_ns = 0;

  std::string encode() const;
  static Result<UploadRecord> decode(std::string_view bytes);
};

struct PartRecord {
  DataRef data{};
  std::string etag{};
  int64_t modified_unix_ns = 0;
  std::optional<Checksum> checksum{};

  std::string encode() const;
  static Result<PartRecord> decode(std::string_view bytes);
};

// An item of a group's delete queue: what the reaper has to remove. Several may be set.
struct GarbageRecord {
  std::vector<DataRef> data{};
  Id128 bucket{};                 // of the following
  std::optional<DataId> table{};  // a part table: the data of its parts, then the table
  Id128 upload{};                 // an upload's part records,
  bool upload_data = false;       // with the data they name
  bool bucket_uploads = false;    // every upload of the bucket

  std::string encode() const;
  static Result<GarbageRecord> decode(std::string_view bytes);
};

struct SessionRecord {
  Id128 owner{};
  Id128 life{};
  int64_t opened_unix_ns = 0;

  std::string encode() const;
  static Result<SessionRecord> decode(std::string_view bytes);
};

std::string encode_access_key(const ObjectStore::AccessKey& key);
Result<ObjectStore::AccessKey> decode_access_key(std::string_view bytes);

// The last session number given out.
std::string encode_session_counter(uint32_t last);
Result<uint32_t> decode_session_counter(std::string_view bytes);

}  // namespace cairn::object
