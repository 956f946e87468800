#include "object/records.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/endian.h"
#include "base/hex.h"
#include "control/sealed.h"
#include "object/records.pb.h"

namespace cairn::object {
namespace {

enum class Type : uint8_t {
  bucket = 1,
  object = 2,
  part_table = 3,
  upload = 4,
  part = 5,
  garbage = 6,
  session = 7,
  access_key = 8,
  session_counter = 9,
};
constexpr uint8_t kVersion = 1;
constexpr size_t kMd5Bytes = 16;

std::string seal(Type type, const google::protobuf::MessageLite& message) {
  return control::seal(static_cast<uint8_t>(type), kVersion, message.SerializeAsString());
}

template <typename Message>
Result<Message> unseal(Type type, std::string_view what, std::string_view bytes) {
  TRY(const std::string_view record, control::unseal(static_cast<uint8_t>(type), kVersion, what, bytes));
  Message message;
  if (!message.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return Error(Errc::corrupt, fmt::format("{}: can't be parsed", what));
  }
  return message;
}

template <size_t N>
std::span<std::byte> writable(std::array<uint8_t, N>& bytes) {
  return std::as_writable_bytes(std::span(bytes));
}

std::string_view view(const Id128& id) { return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()}; }

// Zero stands as an empty field.
template <typename Id>
Result<Id> parse_id(std::string_view bytes, std::string_view what) {
  Id id;
  if (bytes.empty()) return id;
  if (bytes.size() != id.bytes.size()) return Error(Errc::corrupt, fmt::format("{}: an id of wrong size", what));
  // cairn-allow(memcpy): an identifier
  std::ranges::copy(bytes, id.bytes.begin());
  return id;
}

void set_data(proto::Data& out, const DataRef& data) {
  out.set_id(std::string(data.id.view()));
  out.set_size(data.size);
}

// The largest object or part: chunk numbers have 32 bits, which is far beyond anything a protocol allows.
constexpr uint64_t kMaxData = uint64_t{1} << 53;

Result<DataRef> get_data(const proto::Data& in, std::string_view what) {
  DataRef data;
  TRY(data.id, parse_id<DataId>(in.id(), what));
  if (in.size() > kMaxData) return Error(Errc::corrupt, fmt::format("{}: a size that can't be", what));
  data.size = in.size();
  return data;
}

void set_checksum(proto::Checksum& out, const Checksum& checksum) {
  out.set_algorithm(checksum.algorithm);
  out.set_value(checksum.value);
  out.set_full_object(checksum.full_object);
}

Checksum get_checksum(const proto::Checksum& in) {
  return {.algorithm = in.algorithm(), .value = in.value(), .full_object = in.full_object()};
}

void set_attributes(proto::Attributes& out, const Attributes& attributes) {
  out.set_content_type(attributes.content_type);
  for (const auto& [name, value] : attributes.headers) {
    proto::Pair& pair = *out.add_headers();
    pair.set_name(name);
    pair.set_value(value);
  }
  for (const auto& [name, value] : attributes.user_metadata) {
    proto::Pair& pair = *out.add_user_metadata();
    pair.set_name(name);
    pair.set_value(value);
  }
}

Attributes get_attributes(const proto::Attributes& in) {
  Attributes out{.content_type = in.content_type(), .headers = {}, .user_metadata = {}};
  for (const proto::Pair& pair : in.headers()) out.headers.emplace(pair.name(), pair.value());
  for (const proto::Pair& pair : in.user_metadata()) out.user_metadata.emplace(pair.name(), pair.value());
  return out;
}

bool is_md5_hex(std::string_view etag) {
  return etag.size() == 2 * kMd5Bytes &&
         std::ranges::all_of(etag, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string BucketRecord::encode() const {
  proto::Bucket message;
  message.set_id(std::string(view(id)));
  message.set_name(info.name);
  message.set_owner(info.owner);
  message.set_created_unix_ns(info.created_unix_ns);
  return seal(Type::bucket, message);
}

Result<BucketRecord> BucketRecord::decode(std::string_view bytes) {
  TRY(const auto message, unseal<proto::Bucket>(Type::bucket, "bucket record", bytes));
  BucketRecord record;
  TRY(record.id, parse_id<Id128>(message.id(), "bucket record"));
  record.info = {.name = message.name(), .owner = message.owner(), .created_unix_ns = message.created_unix_ns()};
  return record;
}

ObjectInfo ObjectRecord::to_info(std::string key) const {
  return {.key = std::move(key),
          .size = data.size,
          .etag = etag,
          .modified_unix_ns = modified_unix_ns,
          .attributes = attributes,
          .checksum = checksum,
          .parts = {}};
}

std::string ObjectRecord::encode() const {
  proto::Object message;
  set_data(*message.mutable_data(), data);
  message.set_etag(etag);
  message.set_modified_unix_ns(modified_unix_ns);
  set_attributes(*message.mutable_attributes(), attributes);
  if (checksum) set_checksum(*message.mutable_checksum(), *checksum);
  message.set_part_count(part_count);
  if (!upload.is_zero()) message.set_upload(std::string(view(upload)));
  return seal(Type::object, message);
}

Result<ObjectRecord> ObjectRecord::decode(std::string_view bytes) {
  constexpr std::string_view kWhat = "object record";
  TRY(const auto message, unseal<proto::Object>(Type::object, kWhat, bytes));
  ObjectRecord record;
  TRY(record.data, get_data(message.data(), kWhat));
  TRY(record.upload, parse_id<Id128>(message.upload(), kWhat));
  record.etag = message.etag();
  record.modified_unix_ns = message.modified_unix_ns();
  record.attributes = get_attributes(message.attributes());
  if (message.has_checksum()) record.checksum = get_checksum(message.checksum());
  record.part_count = message.part_count();
  return record;
}

Result<std::string> PartTable::encode() const {
  proto::PartTable message;
  bool all_md5 = true;
  size_t checksum_bytes = parts.empty() || !parts.front().checksum ? 0 : parts.front().checksum->value.size();
  bool any_checksum = false;
  for (const TablePart& part : parts) {
    message.mutable_data_ids()->append(part.data.id.view());
    message.add_sizes(part.data.size);
    message.add_numbers(part.number);
    all_md5 = all_md5 && is_md5_hex(part.etag);
    if (!part.checksum || part.checksum->value.size() != checksum_bytes) checksum_bytes = 0;
    if (!part.checksum) continue;
    if (!any_checksum) {
      any_checksum = true;
      message.set_checksum_algorithm(part.checksum->algorithm);
      message.set_full_object_checksums(part.checksum->full_object);
    } else if (part.checksum->algorithm != message.checksum_algorithm()) {
      return Error(Errc::invalid_argument, fmt::format("part {}: a checksum of another algorithm", part.number));
    }
  }
  message.set_checksum_bytes(static_cast<uint32_t>(checksum_bytes));
  for (const TablePart& part : parts) {
    if (all_md5) {
      std::array<uint8_t, kMd5Bytes> md5;
      ASSERT(from_hex(part.etag, writable(md5)));
      message.mutable_md5_etags()->append(reinterpret_cast<const char*>(md5.data()), md5.size());
    } else {
      message.add_etags(part.etag);
    }
    if (checksum_bytes > 0) {
      message.mutable_checksums()->append(part.checksum->value);
    } else if (any_checksum) {
      message.add_checksum_list(part.checksum ? part.checksum->value : std::string());
    }
  }
  return seal(Type::part_table, message);
}

Result<PartTable> PartTable::decode(std::string_view bytes) {
  TRY(const auto message, unseal<proto::PartTable>(Type::part_table, "part table", bytes));
  const auto count = static_cast<size_t>(message.numbers_size());
  const bool all_md5 = message.etags_size() == 0;
  const size_t checksum_bytes = message.checksum_bytes();
  const bool listed = message.checksum_list_size() > 0;
  if (message.data_ids().size() != count * sizeof(DataId) || static_cast<size_t>(message.sizes_size()) != count ||
      (all_md5 ? message.md5_etags().size() != count * kMd5Bytes
               : static_cast<size_t>(message.etags_size()) != count) ||
      checksum_bytes > message.checksums().size() || message.checksums().size() != count * checksum_bytes ||
      (listed && static_cast<size_t>(message.checksum_list_size()) != count)) {
    return Error(Errc::corrupt, "part table: columns of different lengths");
  }
  PartTable table;
  table.parts.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const int at = static_cast<int>(i);
    TablePart part;
    part.number = message.numbers(at);
    TRY(part.data.id, parse_id<DataId>(std::string_view(message.data_ids()).substr(i * sizeof(DataId), sizeof(DataId)),
                                       "part table"));
    part.data.size = message.sizes(at);
    if (part.data.size > kMaxData) return Error(Errc::corrupt, "part table: a size that can't be");
    if (all_md5) {
      const std::string_view md5 = std::string_view(message.md5_etags()).substr(i * kMd5Bytes, kMd5Bytes);
      part.etag = to_hex(std::as_bytes(std::span(md5)));
    } else {
      part.etag = message.etags(at);
    }
    std::string_view checksum;
    if (checksum_bytes > 0) {
      checksum = std::string_view(message.checksums()).substr(i * checksum_bytes, checksum_bytes);
    } else if (listed) {
      checksum = message.checksum_list(at);
    }
    if (!checksum.empty()) {
      part.checksum = Checksum{.algorithm = message.checksum_algorithm(),
                               .value = std::string(checksum),
                               .full_object = message.full_object_checksums()};
    }
    table.parts.push_back(std::move(part));
  }
  return table;
}

std::string UploadRecord::encode() const {
  proto::Upload message;
  set_attributes(*message.mutable_attributes(), options.attributes);
  message.set_checksum_algorithm(options.checksum_algorithm);
  message.set_checksum_type(options.checksum_type);
  message.set_initiated_unix_ns(initiated_unix_ns);
  return seal(Type::upload, message);
}

Result<UploadRecord> UploadRecord::decode(std::string_view bytes) {
  TRY(const auto message, unseal<proto::Upload>(Type::upload, "upload record", bytes));
  UploadRecord record;
  record.options = {.attributes = get_attributes(message.attributes()),
                    .checksum_algorithm = message.checksum_algorithm(),
                    .checksum_type = message.checksum_type()};
  record.initiated_unix_ns = message.initiated_unix_ns();
  return record;
}

std::string PartRecord::encode() const {
  proto::Part message;
  set_data(*message.mutable_data(), data);
  message.set_etag(etag);
  message.set_modified_unix_ns(modified_unix_ns);
  if (checksum) set_checksum(*message.mutable_checksum(), *checksum);
  return seal(Type::part, message);
}

Result<PartRecord> PartRecord::decode(std::string_view bytes) {
  TRY(const auto message, unseal<proto::Part>(Type::part, "part record", bytes));
  PartRecord record;
  TRY(record.data, get_data(message.data(), "part record"));
  record.etag = message.etag();
  record.modified_unix_ns = message.modified_unix_ns();
  if (message.has_checksum()) record.checksum = get_checksum(message.checksum());
  return record;
}

std::string GarbageRecord::encode() const {
  proto::Garbage message;
  for (const DataRef& item : data) set_data(*message.add_data(), item);
  if (!bucket.is_zero()) message.set_bucket(std::string(view(bucket)));
  if (table) message.set_table(std::string(table->view()));
  if (!upload.is_zero()) message.set_upload(std::string(view(upload)));
  message.set_upload_data(upload_data);
  message.set_bucket_uploads(bucket_uploads);
  return seal(Type::garbage, message);
}

Result<GarbageRecord> GarbageRecord::decode(std::string_view bytes) {
  constexpr std::string_view kWhat = "delete queue record";
  TRY(const auto message, unseal<proto::Garbage>(Type::garbage, kWhat, bytes));
  GarbageRecord record;
  for (const proto::Data& item : message.data()) {
    TRY(auto data, get_data(item, kWhat));
    record.data.push_back(data);
  }
  TRY(record.bucket, parse_id<Id128>(message.bucket(), kWhat));
  if (!message.table().empty()) {
    TRY(record.table, parse_id<DataId>(message.table(), kWhat));
  }
  TRY(record.upload, parse_id<Id128>(message.upload(), kWhat));
  record.upload_data = message.upload_data();
  record.bucket_uploads = message.bucket_uploads();
  return record;
}

std::string SessionRecord::encode() const {
  proto::Session message;
  message.set_owner(std::string(view(owner)));
  message.set_life(std::string(view(life)));
  message.set_opened_unix_ns(opened_unix_ns);
  return seal(Type::session, message);
}

Result<SessionRecord> SessionRecord::decode(std::string_view bytes) {
  TRY(const auto message, unseal<proto::Session>(Type::session, "session record", bytes));
  SessionRecord record;
  TRY(record.owner, parse_id<Id128>(message.owner(), "session record"));
  TRY(record.life, parse_id<Id128>(message.life(), "session record"));
  record.opened_unix_ns = message.opened_unix_ns();
  return record;
}

std::string encode_access_key(const ObjectStore::AccessKey& key) {
  proto::AccessKey message;
  message.set_access_key(key.access_key);
  message.set_secret_key(key.secret_key);
  message.set_created_unix_ns(key.created_unix_ns);
  message.set_note(key.note);
  return seal(Type::access_key, message);
}

Result<ObjectStore::AccessKey> decode_access_key(std::string_view bytes) {
  TRY(const auto message, unseal<proto::AccessKey>(Type::access_key, "access key record", bytes));
  return ObjectStore::AccessKey{.access_key = message.access_key(),
                                .secret_key = message.secret_key(),
                                .created_unix_ns = message.created_unix_ns(),
                                .note = message.note()};
}

std::string encode_session_counter(uint32_t last) {
  const Le32 value = last;
  return control::seal(static_cast<uint8_t>(Type::session_counter), kVersion,
                       std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

Result<uint32_t> decode_session_counter(std::string_view bytes) {
  TRY(const std::string_view record,
      control::unseal(static_cast<uint8_t>(Type::session_counter), kVersion, "session counter", bytes));
  Le32 value;
  if (record.size() != sizeof value) return Error(Errc::corrupt, "session counter: wrong size");
  // cairn-allow(memcpy): four bytes of a record
  std::memcpy(&value, record.data(), sizeof value);
  return value.get();
}

}  // namespace cairn::object
