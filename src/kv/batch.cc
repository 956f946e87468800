#include "kv/batch.h"

#include <fmt/core.h>

#include <cstring>

#include "base/assert.h"
#include "base/crc32c.h"

namespace cairn::kv {
namespace {

template <typename T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a structure off the front; false when there are too few bytes.
template <typename T>
bool take(std::string_view& in, T& value) {
  if (in.size() < sizeof value) return false;
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return true;
}

uint32_t crc_of(BatchHeader header, std::string_view after_header) {
  header.crc = 0u;
  return crc32c(after_header.data(), after_header.size(), crc32c(&header, sizeof header));
}

Error bad(std::string_view what) { return {Errc::corrupt, fmt::format("key-value batch: {}", what)}; }

}  // namespace

Result<std::string> encode_batch(std::span<const Mutation> mutations) {
  size_t bytes = sizeof(BatchHeader);
  for (const Mutation& mutation : mutations) {
    if (mutation.key.size() > kMaxKeyBytes) {
      return Error(Errc::too_large,
                   fmt::format("a key of {} bytes; the limit is {}", mutation.key.size(), kMaxKeyBytes));
    }
    // Checked at each step, so that the sum can't overflow.
    const size_t value_bytes = mutation.value ? mutation.value->size() : 0;
    if (value_bytes > kMaxBatchBytes) return Error(Errc::too_large, fmt::format("a value of {} bytes", value_bytes));
    bytes += sizeof(MutationHeader) + mutation.key.size() + value_bytes;
    if (bytes > kMaxBatchBytes) {
      return Error(Errc::too_large, fmt::format("a batch of more than {} bytes; split it", kMaxBatchBytes));
    }
  }
  BatchHeader header;
  header.magic = BatchHeader::kMagic;
  header.version = BatchHeader::kVersion;
  header.count = static_cast<uint32_t>(mutations.size());
  header.bytes = static_cast<uint32_t>(bytes);

  std::string out;
  out.reserve(bytes);
  put(out, header);
  for (const Mutation& mutation : mutations) {
    MutationHeader item;
    item.kind = mutation.value ? MutationHeader::kPut : MutationHeader::kDelete;
    item.key_bytes = static_cast<uint32_t>(mutation.key.size());
    item.value_bytes = static_cast<uint32_t>(mutation.value ? mutation.value->size() : 0);
    put(out, item);
    out += mutation.key;
    if (mutation.value) out += *mutation.value;
  }
  ASSERT(out.size() == bytes);
  header.crc = crc_of(header, std::string_view(out).substr(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

Result<std::vector<Mutation>> decode_batch(std::string_view bytes) {
  std::string_view in = bytes;
  BatchHeader header;
  if (!take(in, header)) return bad("too short for its header");
  if (header.magic != BatchHeader::kMagic) return bad("wrong magic");
  // Before the version: a checksum that doesn't match says more than a version that may be wrong itself.
  if (header.bytes != bytes.size() || bytes.size() > kMaxBatchBytes) return bad("wrong length");
  if (header.crc != crc_of(header, in)) return bad("wrong checksum");
  if (header.version != BatchHeader::kVersion) {
    return Error(Errc::unsupported,
                 fmt::format("key-value batch of version {}, newer than this build: upgrade it", header.version.get()));
  }
  if (header.reserved != 0 || header.reserved2 != 0) return bad("reserved fields are not zero");
  // The count is only a claim until the bytes have been seen.
  if (header.count > in.size() / sizeof(MutationHeader)) return bad("more mutations than its length can hold");

  std::vector<Mutation> mutations;
  mutations.reserve(header.count);
  for (uint32_t i = 0; i < header.count; ++i) {
    MutationHeader item;
    if (!take(in, item)) return bad("too short");
    if (item.kind != MutationHeader::kPut && item.kind != MutationHeader::kDelete) return bad("unknown mutation");
    if (item.key_bytes > kMaxKeyBytes || item.key_bytes > in.size()) return bad("a key longer than the batch");
    if (item.value_bytes > in.size() - item.key_bytes) return bad("a value longer than the batch");
    if (item.kind == MutationHeader::kDelete && item.value_bytes != 0) return bad("a delete with a value");
    Mutation mutation{.key = std::string(in.substr(0, item.key_bytes)), .value = std::nullopt};
    in.remove_prefix(item.key_bytes);
    if (item.kind == MutationHeader::kPut) mutation.value = std::string(in.substr(0, item.value_bytes));
    in.remove_prefix(item.value_bytes);
    mutations.push_back(std::move(mutation));
  }
  if (!in.empty()) return bad("bytes behind the last mutation");
  return mutations;
}

}  // namespace cairn::kv
