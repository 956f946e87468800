#include "gateway/s3/multipart_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hex.h"
#include "gateway/s3/attributes.h"
#include "gateway/s3/checksum.h"
#include "gateway/s3/conditions.h"
#include "gateway/s3/late_answer.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/payload.h"
#include "gateway/s3/put_operations.h"
#include "gateway/s3/xml_request.h"
#include "gateway/s3/xml_response.h"

namespace cairn::s3 {
namespace {

std::string upload_id_of(const Call& call) { return std::string(parameter(call.query, "uploadId")); }

using StoredParts = std::map<uint32_t, object::PartInfo>;

Task<Result<StoredParts>> load_parts(Call& call, std::string upload_id) {
  StoredParts all;
  for (uint32_t after = 0;;) {
    CO_TRY(auto page,
           co_await call.store().list_parts(call.bucket, call.key, upload_id, after, kMaxListKeys, call.context()));
    for (auto& part : page.parts) {
      after = part.number;
      all.emplace(part.number, std::move(part));
    }
    if (!page.more) co_return all;
  }
}

S3Result<void> check_order(const std::vector<CompletedPart>& parts) {
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i - 1].number >= parts[i].number) return Code::InvalidPartOrder;
  }
  return {};
}

S3Result<void> check_against_stored(const std::vector<CompletedPart>& named, const StoredParts& stored) {
  for (size_t i = 0; i < named.size(); ++i) {
    const auto found = stored.find(named[i].number);
    if (found == stored.end() || found->second.etag != named[i].etag) {
      return S3Error(Code::InvalidPart,
                     fmt::format("Part {} was not found, or its ETag does not match.", named[i].number));
    }
    const object::PartInfo& part = found->second;
    if (i + 1 < named.size() && part.size < kMinPartBytes) {
      return S3Error(Code::EntityTooSmall, fmt::format("Part {} has {} bytes; all parts but the last need at least {}.",
                                                       part.number, part.size, kMinPartBytes));
    }
    if (!named[i].checksum) continue;
    const auto& [kind, value] = *named[i].checksum;
    if (part.checksum && part.checksum->algorithm == checksum_info(kind).name && part.checksum->value != value) {
      return S3Error(Code::InvalidPart, fmt::format("The checksum of part {} does not match.", part.number));
    }
  }
  return {};
}

// The object's checksum from its parts', when the upload asked for one.
S3Result<std::optional<object::Checksum>> whole_checksum(const object::ObjectStore::UploadOptions& options,
                                                         const std::vector<CompletedPart>& named,
                                                         const StoredParts& stored) {
  std::optional<object::Checksum> none;
  const auto kind = checksum_by_name(options.checksum_algorithm);
  if (!kind) return none;
  std::vector<PartChecksum> parts;
  for (const auto& part : named) {
    const object::PartInfo& info = stored.at(part.number);
    if (!info.checksum || info.checksum->algorithm != checksum_info(*kind).name) {
      return S3Error(Code::InvalidRequest,
                     fmt::format("The upload was created using a {} checksum. Part {} does not have one.",
                                 options.checksum_algorithm, part.number));
    }
    parts.push_back({info.checksum->value, info.size});
  }
  const bool full = options.checksum_type == "FULL_OBJECT";
  const auto value = full ? combine_full_object(*kind, parts) : combine_composite(*kind, parts);
  if (!value) return S3Error(Code::InternalError, "A stored checksum is malformed.");
  return std::optional(object::Checksum{std::string(checksum_info(*kind).name), *value, full});
}

// x-amz-checksum-*, x-amz-checksum-type and x-amz-mp-object-size of the request speak of the whole object.
S3Result<void> check_expectations(const http::Headers& headers, const std::optional<object::Checksum>& checksum,
                                  const std::vector<CompletedPart>& named, const StoredParts& stored) {
  for (const auto& info : all_checksums()) {
    const auto sent = headers.get(info.header);
    if (!sent) continue;
    // A value that nothing here can be held against must not look as if it had been checked.
    if (!checksum || checksum->algorithm != info.name) {
      return S3Error(Code::InvalidRequest,
                     fmt::format("The upload was not created with the checksum algorithm {}.", info.name));
    }
    // A composite value comes with or without its "-N".
    if (*sent != checksum->value && *sent != checksum->value.substr(0, checksum->value.find('-')))
      return Code::BadDigest;
  }
  if (const auto type = headers.get("x-amz-checksum-type"); type && checksum) {
    if (*type != (checksum->full_object ? "FULL_OBJECT" : "COMPOSITE")) {
      return S3Error(Code::InvalidRequest,
                     "The x-amz-checksum-type differs from the one that the upload was created with.");
    }
  }
  if (const auto size = headers.get("x-amz-mp-object-size")) {
    uint64_t total = 0;
    for (const auto& part : named) total += stored.at(part.number).size;
    if (*size != std::to_string(total)) {
      return S3Error(Code::InvalidRequest, "The object's size differs from x-amz-mp-object-size.");
    }
  }
  return {};
}

// Perhaps completed, by a request whose answer was lost or by one beside this: the store knows.
bool is_gone(const Error& error) { return error.code() == Errc::not_found && error.message() == "upload"; }

Task<S3Result<object::ObjectStore::Completion>> prepare(Call& call, std::string upload_id) {
  // The x-amz-checksum-* of this request are the object's, not the document's: check_expectations() holds them.
  CO_TRY(auto body, co_await read_document(call, kMaxXmlBody, {.etag = false, .checksum_headers = false}));
  CO_TRY(auto named, parse_complete_upload(body));
  CO_TRY(check_order(named));
  object::ObjectStore::Completion completion;
  CO_TRY(completion.conditions, write_conditions(call.request.headers()));
  std::vector<std::string> etags;
  etags.reserve(named.size());
  for (const auto& part : named) etags.push_back(part.etag);
  const auto etag = multipart_etag(etags);
  if (!etag) co_return Code::InvalidPart;
  completion.etag = *etag;
  for (const auto& part : named) {
    object::PartInfo& info = completion.parts.emplace_back();
    info.number = part.number;
    info.etag = part.etag;
  }
  auto options = co_await call.store().head_upload(call.bucket, call.key, upload_id, call.context());
  if (!options) {
    if (is_gone(options.error())) co_return completion;
    co_return to_s3_error(options.error());
  }
  auto stored = co_await load_parts(call, upload_id);
  if (!stored) {
    if (is_gone(stored.error())) co_return completion;
    co_return to_s3_error(stored.error());
  }
  CO_TRY(check_against_stored(named, *stored));
  CO_TRY(completion.checksum, whole_checksum(*options, named, *stored));
  CO_TRY(check_expectations(call.request.headers(), completion.checksum, named, *stored));
  co_return completion;
}

S3Error completion_error(const Error& error) {
  if (error.code() == Errc::invalid_argument) return S3Error(Code::InvalidPart);
  return to_s3_error(error);
}

struct Completing {
  Call& call;
  std::string upload_id;
  object::ObjectStore::Completion completion;
};

Task<S3Result<std::string>> run_completion(Completing* work) {
  Call& call = work->call;
  const auto info = co_await call.store().complete_upload(call.bucket, call.key, work->upload_id,
                                                          std::move(work->completion), call.context());
  if (!info) co_return completion_error(info.error());
  const std::string location = fmt::format("http://{}{}", call.request.host(), call.request.path());
  co_return render_complete_upload(location, call.bucket, call.key, info->etag, info->checksum, true);
}

}  // namespace

std::optional<std::string> multipart_etag(const std::vector<std::string>& part_etags) {
  Digest md5(DigestKind::md5);
  for (const std::string& etag : part_etags) {
    std::array<std::byte, 16> raw;
    if (!from_hex(etag, raw)) return std::nullopt;
    md5.update(raw);
  }
  const std::string raw = md5.finish();
  return fmt::format("{}-{}", to_hex(std::as_bytes(std::span(raw))), part_etags.size());
}

Answer create_upload(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  object::ObjectStore::UploadOptions options;
  const http::Headers& headers = call.request.headers();
  CO_TRY(options.attributes, attributes_of(headers));
  const std::string_view algorithm = headers.value("x-amz-checksum-algorithm");
  std::string type(headers.value("x-amz-checksum-type"));
  if (!algorithm.empty()) {
    const auto kind = checksum_by_name(algorithm);
    if (!kind) {
      co_return S3Error(Code::InvalidRequest,
                        "Checksum algorithm provided is unsupported. Please try again with any of "
                        "the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]");
    }
    const ChecksumInfo& info = checksum_info(*kind);
    if (type.empty()) type = info.composites ? "COMPOSITE" : "FULL_OBJECT";
    const bool possible = type == "COMPOSITE" ? info.composites : type == "FULL_OBJECT" && info.combines;
    if (!possible) {
      co_return S3Error(
          Code::InvalidRequest,
          fmt::format("The {} checksum type cannot be used with the {} checksum algorithm.", type, info.name));
    }
    options.checksum_algorithm = info.name;
    options.checksum_type = std::move(type);
  } else if (!type.empty()) {
    co_return S3Error(Code::InvalidRequest,
                      "The x-amz-checksum-type header can only be used with the "
                      "x-amz-checksum-algorithm header.");
  }
  const auto id = co_await call.store().create_upload(call.bucket, call.key, options, call.context());
  if (!id) co_return to_s3_error(id.error());
  if (!options.checksum_algorithm.empty()) {
    call.response.set_header("x-amz-checksum-algorithm", options.checksum_algorithm);
    call.response.set_header("x-amz-checksum-type", options.checksum_type);
  }
  co_return co_await send_xml(call, render_initiate_upload(call.bucket, call.key, *id));
}

Answer complete_upload(Call& call) {
  CO_TRY(check_key(call.key));
  const std::string upload_id = upload_id_of(call);
  CO_TRY(auto completion, co_await prepare(call, upload_id));
  Completing work{call, upload_id, std::move(completion)};
  co_return co_await answer_late(call, &run_completion, &work);
}

Answer abort_upload(Call& call) {
  CO_TRY(check_key(call.key));
  auto aborted = co_await call.store().abort_upload(call.bucket, call.key, upload_id_of(call), call.context());
  if (!aborted) co_return to_s3_error(aborted.error());
  co_return co_await send_nothing(call);
}

Answer list_parts(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(auto view, parse_parts(call.query, call.bucket, call.key, call.owner()));
  auto options = co_await call.store().head_upload(call.bucket, call.key, view.upload_id, call.context());
  if (!options) co_return to_s3_error(options.error());
  view.checksum_algorithm = options->checksum_algorithm;
  view.checksum_type = options->checksum_type;
  object::ObjectStore::PartList parts;
  if (view.max_parts > 0) {
    auto page = co_await call.store().list_parts(call.bucket, call.key, view.upload_id, view.after, view.max_parts,
                                                 call.context());
    if (!page) co_return to_s3_error(page.error());
    parts = *std::move(page);
  }
  co_return co_await send_xml(call, render_parts(view, parts));
}

}  // namespace cairn::s3
