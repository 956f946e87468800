// Selection: what of an object a GET or HEAD asks for, by conditions, ranges and part numbers, and how that is said in
// the answer. Decides when the object is opened, so that the bytes match the metadata that was judged.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/http/headers.h"
#include "gateway/http/response.h"
#include "gateway/s3/error.h"
#include "gateway/s3/uri.h"
#include "object/object_store.h"

namespace cairn::s3 {

class Selection final : public object::RangeChooser {
 public:
  // `part`: partNumber of the query.
  Selection(const http::Headers& headers, std::optional<uint32_t> part) : headers_(headers), part_(part) {}

  // Refuses (304, 412, 416) with condition_failed; refused() tells that it was that.
  Result<object::ByteRange> choose(const object::ObjectInfo& info) override;
  // The same without an opened object.
  bool judge(const object::ObjectInfo& info) { return choose(info).has_value(); }

  bool refused() const { return not_modified_ || refusal_.has_value(); }
  bool not_modified() const { return not_modified_; }
  const std::optional<S3Error>& refusal() const { return refusal_; }

  // After choose(): of the object that was judged.
  uint64_t length() const { return range_.length; }
  bool partial() const { return partial_; }
  bool whole() const { return !partial_; }
  // Status and the headers that describe the selection: Content-Range, ETag, ...
  void describe(http::ResponseWriter& response, const object::ObjectInfo& info, const QueryParameters& query) const;
  // Of 304 and 412, too.
  static void identify(http::ResponseWriter& response, const object::ObjectInfo& info);
  // "bytes */10", of 416.
  uint64_t object_size() const { return object_size_; }
  const std::string& etag() const { return etag_; }
  int64_t modified_unix_ns() const { return modified_unix_ns_; }

 private:
  S3Result<void> select(const object::ObjectInfo& info);
  S3Result<void> select_part(const object::ObjectInfo& info);

  const http::Headers& headers_;
  std::optional<uint32_t> part_;
  object::ByteRange range_;
  bool partial_ = false;
  bool not_modified_ = false;
  std::optional<S3Error> refusal_;
  uint64_t object_size_ = 0;
  std::string etag_;
  int64_t modified_unix_ns_ = 0;
};

}  // namespace cairn::s3
