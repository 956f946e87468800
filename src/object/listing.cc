#include "object/listing.h"

#include <algorithm>
#include <utility>

#include "kv/prefix_store.h"
#include "object/keys.h"
#include "object/records.h"

namespace cairn::object {
namespace {

// After a jump few keys may be wanted before the next one; in a plain run many.
constexpr size_t kFirstPage = 128;
constexpr size_t kSmallestPage = 8;
constexpr size_t kLargestPage = 1000;

// One kind of record that is listed: how its keys are stored and what is made of it.
class Space {
 public:
  virtual ~Space() = default;
  // The stored keys of all user keys that begin with `prefix` begin with this.
  virtual std::string stored_prefix(std::string_view prefix) const = 0;
  virtual Result<std::string> user_key(const kv::KeyValue& item) const = 0;
  virtual Result<void> add(std::string key, const kv::KeyValue& item) = 0;
  virtual void add_prefix(std::string prefix) = 0;
};

struct Walk {
  engine::GroupId group;
  std::string prefix;
  std::string delimiter;
  std::string begin;  // stored key to begin at, if that is beyond the prefix's first
  size_t limit = 0;
};

// Adds up to walk.limit keys and common prefixes. True when there are more.
Task<Result<bool>> walk_keys(Core& core, Walk walk, Space& space, CallContext context) {
  if (walk.limit == 0) co_return false;
  std::string begin = std::max(space.stored_prefix(walk.prefix), walk.begin);
  const std::string end = kv::prefix_end(space.stored_prefix(walk.prefix));
  size_t count = 0;
  size_t page_items = std::min(walk.limit + 1, kFirstPage);
  while (begin < end) {
    kv::ScanOptions options{.begin = begin, .end = end, .max_items = page_items};
    CO_TRY(const auto page, co_await core.client.kv_scan(walk.group, std::move(options), core.call(context)));
    bool jumped = false;
    for (const kv::KeyValue& item : page.items) {
      if (item.key < begin) continue;  // under a prefix that was jumped over within this page
      CO_TRY(std::string key, space.user_key(item));
      if (count == walk.limit) co_return true;
      const size_t at = walk.delimiter.empty() ? std::string::npos : key.find(walk.delimiter, walk.prefix.size());
      ++count;
      if (at == std::string::npos) {
        CO_TRY(space.add(std::move(key), item));
        begin = item.key + '\0';
        jumped = false;
      } else {
        key.resize(at + walk.delimiter.size());
        begin = kv::prefix_end(space.stored_prefix(key));
        space.add_prefix(std::move(key));
        jumped = true;
      }
    }
    if (!page.more) co_return false;
    page_items = jumped ? kSmallestPage : std::min(page_items * 4, kLargestPage);
  }
  co_return false;
}

class ObjectSpace final : public Space {
 public:
  ObjectSpace(Id128 bucket, ListResult& out) : bucket_(bucket), out_(out) {}

  std::string stored_prefix(std::string_view prefix) const override { return keys::object(bucket_, prefix); }
  Result<std::string> user_key(const kv::KeyValue& item) const override {
    return std::string(keys::key_of_object(item.key));
  }
  Result<void> add(std::string key, const kv::KeyValue& item) override {
    TRY(auto record, ObjectRecord::decode(item.value));
    out_.next = key;
    out_.next_is_prefix = false;
    out_.objects.push_back({.key = std::move(key),
                            .size = record.data.size,
                            .etag = std::move(record.etag),
                            .modified_unix_ns = record.modified_unix_ns,
                            .attributes = {},
                            .checksum = std::move(record.checksum),
                            .parts = {}});
    return {};
  }
  void add_prefix(std::string prefix) override {
    out_.next = prefix;
    out_.next_is_prefix = true;
    out_.common_prefixes.push_back(std::move(prefix));
  }

 private:
  Id128 bucket_;
  ListResult& out_;
};

class UploadSpace final : public Space {
 public:
  UploadSpace(Id128 bucket, ObjectStore::UploadList& out) : bucket_(bucket), out_(out) {}

  std::string stored_prefix(std::string_view prefix) const override { return keys::upload_prefix(bucket_, prefix); }
  Result<std::string> user_key(const kv::KeyValue& item) const override {
    auto parsed = keys::parse_upload(item.key);
    if (!parsed) return Error(Errc::corrupt, "an upload record with a malformed key");
    return std::move(parsed->key);
  }
  Result<void> add(std::string key, const kv::KeyValue& item) override {
    TRY(const auto record, UploadRecord::decode(item.value));
    out_.next_key_marker = key;
    out_.next_upload_id_marker = keys::parse_upload(item.key)->upload.to_string();
    out_.uploads.push_back({.key = std::move(key),
                            .upload_id = out_.next_upload_id_marker,
                            .initiated_unix_ns = record.initiated_unix_ns});
    return {};
  }
  void add_prefix(std::string prefix) override {
    out_.next_key_marker = prefix;
    out_.next_upload_id_marker.clear();
    out_.common_prefixes.push_back(std::move(prefix));
  }

 private:
  Id128 bucket_;
  ObjectStore::UploadList& out_;
};

// A marker that is a common prefix of this listing stands for everything under it.
bool is_common_prefix(const std::string& marker, const std::string& prefix, const std::string& delimiter) {
  if (delimiter.empty() || !marker.starts_with(prefix)) return false;
  const size_t at = marker.find(delimiter, prefix.size());
  return at != std::string::npos && at + delimiter.size() == marker.size();
}

}  // namespace

Task<Result<ListResult>> list_objects(Core& core, Buckets::Ref bucket, ListQuery query, CallContext context) {
  ListResult out;
  ObjectSpace space(bucket.id, out);
  Walk walk{.group = bucket.group,
            .prefix = std::move(query.prefix),
            .delimiter = std::move(query.delimiter),
            .begin = {},
            .limit = query.max_keys};
  if (query.start_after_is_prefix) {
    walk.begin = kv::prefix_end(space.stored_prefix(query.start_after));
  } else if (!query.start_after.empty()) {
    walk.begin = space.stored_prefix(query.start_after) + '\0';
  }
  CO_TRY(out.truncated, co_await walk_keys(core, std::move(walk), space, context));
  co_return out;
}

Task<Result<ObjectStore::UploadList>> list_uploads(Core& core, Buckets::Ref bucket, ObjectStore::UploadQuery query,
                                                   CallContext context) {
  ObjectStore::UploadList out;
  UploadSpace space(bucket.id, out);
  Walk walk{.group = bucket.group,
            .prefix = std::move(query.prefix),
            .delimiter = std::move(query.delimiter),
            .begin = {},
            .limit = query.max_uploads};
  const std::optional<Id128> id = Id128::parse(query.upload_id_marker);
  if (query.key_marker.empty()) {
    // From the start.
  } else if (is_common_prefix(query.key_marker, walk.prefix, walk.delimiter)) {
    walk.begin = kv::prefix_end(space.stored_prefix(query.key_marker));
  } else if (id) {
    walk.begin = keys::upload(bucket.id, query.key_marker, *id) + '\0';
  } else {
    walk.begin = kv::prefix_end(keys::upload_key_prefix(bucket.id, query.key_marker));
  }
  CO_TRY(out.truncated, co_await walk_keys(core, std::move(walk), space, context));
  co_return out;
}

}  // namespace cairn::object
