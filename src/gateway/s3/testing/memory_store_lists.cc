// Listings and uploads of the MemoryStore.
#include <fmt/format.h>

#include <utility>

#include "gateway/s3/testing/memory_store.h"

namespace cairn::s3::testing {

using object::CallContext;
using object::ObjectInfo;

namespace {

// The common prefix that `key` falls under, or "".
std::string common_prefix(const std::string& key, const std::string& prefix, const std::string& delimiter) {
  if (delimiter.empty()) return "";
  const size_t at = key.find(delimiter, prefix.size());
  return at == std::string::npos ? "" : key.substr(0, at + delimiter.size());
}

}  // namespace

Task<Result<object::ListResult>> MemoryStore::list(std::string bucket, object::ListQuery query, CallContext) {
  CO_TRY(Bucket* const in, find(bucket));
  object::ListResult result;
  for (const auto& [key, object] : in->objects) {
    if (!key.starts_with(query.prefix) || key <= query.start_after) continue;
    if (query.start_after_is_prefix && key.starts_with(query.start_after)) continue;
    const std::string group = common_prefix(key, query.prefix, query.delimiter);
    if (!group.empty() && !result.common_prefixes.empty() && result.common_prefixes.back() == group) continue;
    if (result.objects.size() + result.common_prefixes.size() == query.max_keys) {
      result.truncated = query.max_keys > 0;
      break;
    }
    result.next_is_prefix = !group.empty();
    if (group.empty()) {
      result.objects.push_back(object->info);
      result.next = key;
    } else {
      result.common_prefixes.push_back(group);
      result.next = group;
    }
  }
  co_return result;
}

Task<Result<std::string>> MemoryStore::create_upload(std::string bucket, std::string key, UploadOptions options,
                                                     CallContext) {
  CO_TRY(Bucket* const in, find(bucket));
  const std::string id = fmt::format("upload-{}", next_upload_++);
  in->uploads[id] = {key, id, clock_.unix_ns(), std::move(options), {}};
  co_return id;
}

Task<Result<object::ObjectStore::UploadOptions>> MemoryStore::head_upload(std::string bucket, std::string key,
                                                                          std::string upload_id, CallContext) {
  CO_TRY(Upload* const upload, find_upload(bucket, key, upload_id));
  co_return upload->options;
}

Task<Result<object::ObjectStore::PartList>> MemoryStore::list_parts(std::string bucket, std::string key,
                                                                    std::string upload_id, uint32_t after, size_t limit,
                                                                    CallContext) {
  if (faults.completed_beside) {
    CO_TRY(finish_upload(bucket, key, upload_id, *std::exchange(faults.completed_beside, std::nullopt)));
  }
  CO_TRY(Upload* const upload, find_upload(bucket, key, upload_id));
  PartList list;
  for (const auto& [number, part] : upload->parts) {
    if (number <= after) continue;
    if (list.parts.size() == limit) {
      list.more = true;
      break;
    }
    list.parts.push_back(part.info);
  }
  co_return list;
}

Task<Result<ObjectInfo>> MemoryStore::complete_upload(std::string bucket, std::string key, std::string upload_id,
                                                      Completion completion, CallContext) {
  if (faults.completion_takes.ns > 0) (void)co_await loop_.sleep(faults.completion_takes);
  if (faults.commit) co_return *faults.commit;
  co_return finish_upload(bucket, key, upload_id, std::move(completion));
}

Result<ObjectInfo> MemoryStore::finish_upload(const std::string& bucket, const std::string& key,
                                              const std::string& upload_id, Completion completion) {
  TRY(Bucket* const in, find(bucket));
  const auto upload = find_upload(bucket, key, upload_id);
  if (!upload) {
    // A repeat, as long as what it made stands.
    const auto done = in->completed.find(upload_id);
    const auto object = in->objects.find(key);
    if (done == in->completed.end() || object == in->objects.end() || done->second.etag != completion.etag ||
        object->second->info.etag != done->second.etag) {
      return upload.error();
    }
    return done->second;
  }
  mem::BufChain data;
  std::vector<object::PartInfo> parts;
  for (const object::PartInfo& named : completion.parts) {
    const auto found = (*upload)->parts.find(named.number);
    if (found == (*upload)->parts.end() || found->second.info.etag != named.etag) {
      return Error(Errc::invalid_argument, fmt::format("part {}", named.number));
    }
    data.append(found->second.data);
    parts.push_back(found->second.info);
  }
  object::Writer::Commit commit{std::move(completion.etag), (*upload)->options.attributes,
                                std::move(completion.checksum), std::move(completion.conditions)};
  TRY(auto info, store(bucket, key, std::move(commit), std::move(data), std::move(parts)));
  in->uploads.erase(upload_id);
  in->completed[upload_id] = info;
  ++completions;
  return info;
}

Task<Result<std::unique_ptr<object::Writer>>> MemoryStore::put_part(std::string bucket, std::string key,
                                                                    std::string upload_id, uint32_t number,
                                                                    CallContext) {
  CO_TRY(find_upload(bucket, key, upload_id));
  co_return make_part_writer(std::move(bucket), std::move(key), std::move(upload_id), number);
}

Task<Result<void>> MemoryStore::abort_upload(std::string bucket, std::string key, std::string upload_id, CallContext) {
  CO_TRY(find_upload(bucket, key, upload_id));
  buckets_[bucket].uploads.erase(upload_id);
  co_return Result<void>();
}

Task<Result<object::ObjectStore::UploadList>> MemoryStore::list_uploads(std::string bucket, UploadQuery query,
                                                                        CallContext) {
  CO_TRY(Bucket* const in, find(bucket));
  std::map<std::pair<std::string, std::string>, const Upload*> sorted;
  for (const auto& [id, upload] : in->uploads) sorted[{upload.key, id}] = &upload;
  UploadList list;
  for (const auto& [place, upload] : sorted) {
    const auto& [key, id] = place;
    if (!key.starts_with(query.prefix)) continue;
    if (key < query.key_marker ||
        (key == query.key_marker && (query.upload_id_marker.empty() || id <= query.upload_id_marker))) {
      continue;
    }
    const std::string group = common_prefix(key, query.prefix, query.delimiter);
    if (!group.empty() && !list.common_prefixes.empty() && list.common_prefixes.back() == group) continue;
    if (list.uploads.size() + list.common_prefixes.size() == query.max_uploads) {
      list.truncated = query.max_uploads > 0;
      break;
    }
    list.next_key_marker = group.empty() ? key : group;
    list.next_upload_id_marker = group.empty() ? id : "";
    if (group.empty()) {
      list.uploads.push_back({key, id, upload->initiated_unix_ns});
    } else {
      list.common_prefixes.push_back(group);
    }
  }
  co_return list;
}

}  // namespace cairn::s3::testing
