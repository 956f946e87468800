#include "replica/kv_frames.h"

#include <fmt/core.h>

#include "replica/methods.h"

namespace cairn::replica {
namespace {

template <typename T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a structure off the front; false when there are too few bytes.
template <typename T>
bool take(std::string_view& in, T& value) {
  if (in.size() < sizeof value) return false;
  in.copy(reinterpret_cast<char*>(&value), sizeof value);
  in.remove_prefix(sizeof value);
  return true;
}

bool take(std::string_view& in, size_t size, std::string& value) {
  if (in.size() < size) return false;
  value.assign(in.substr(0, size));
  in.remove_prefix(size);
  return true;
}

Error bad(std::string_view what) { return {Errc::invalid_argument, fmt::format("key-value batch: {}", what)}; }

Result<void> check_key(std::string_view key) {
  if (key.size() <= methods::kMaxKeyBytes) return {};
  return Error(Errc::too_large, fmt::format("a key of {} bytes; the limit is {}", key.size(), methods::kMaxKeyBytes));
}

bool known(uint16_t kind) { return kind <= static_cast<uint16_t>(kv::Condition::Kind::equals); }

}  // namespace

Result<std::string> encode_batch_frames(const kv::Batch& batch) {
  std::string out;
  for (const kv::Condition& condition : batch.conditions) {
    TRY(check_key(condition.key));
    ConditionFrame frame;
    frame.kind = static_cast<uint16_t>(condition.kind);
    frame.key_bytes = static_cast<uint16_t>(condition.key.size());
    const bool has_value = condition.kind == kv::Condition::Kind::equals;
    frame.value_bytes = has_value ? static_cast<uint32_t>(condition.value.size()) : 0;
    put(out, frame);
    out += condition.key;
    if (has_value) out += condition.value;
  }
  for (const kv::Mutation& mutation : batch.mutations) {
    TRY(check_key(mutation.key));
    MutationFrame frame;
    frame.kind = mutation.value ? MutationFrame::kPut : MutationFrame::kDelete;
    frame.key_bytes = static_cast<uint16_t>(mutation.key.size());
    frame.value_bytes = mutation.value ? static_cast<uint32_t>(mutation.value->size()) : 0;
    put(out, frame);
    out += mutation.key;
    if (mutation.value) out += *mutation.value;
  }
  return out;
}

Result<kv::Batch> decode_batch_frames(std::string_view bytes, uint32_t conditions, uint32_t mutations) {
  // Counts are only claims until the bytes have been seen.
  if (conditions > bytes.size() / sizeof(ConditionFrame)) return bad("more conditions than it can hold");
  if (mutations > bytes.size() / sizeof(MutationFrame)) return bad("more mutations than it can hold");
  kv::Batch batch;
  batch.conditions.reserve(conditions);
  for (uint32_t i = 0; i < conditions; ++i) {
    ConditionFrame frame;
    kv::Condition condition;
    if (!take(bytes, frame)) return bad("cut short");
    if (!known(frame.kind)) return bad("an unknown condition");
    condition.kind = static_cast<kv::Condition::Kind>(frame.kind.get());
    if (condition.kind != kv::Condition::Kind::equals && frame.value_bytes != 0) return bad("a value for nothing");
    if (frame.key_bytes > methods::kMaxKeyBytes) return bad("a key over the limit");
    if (!take(bytes, frame.key_bytes, condition.key)) return bad("cut short");
    if (!take(bytes, frame.value_bytes, condition.value)) return bad("cut short");
    batch.conditions.push_back(std::move(condition));
  }
  batch.mutations.reserve(mutations);
  for (uint32_t i = 0; i < mutations; ++i) {
    MutationFrame frame;
    kv::Mutation mutation;
    if (!take(bytes, frame)) return bad("cut short");
    if (frame.kind != MutationFrame::kPut && frame.kind != MutationFrame::kDelete) return bad("an unknown mutation");
    if (frame.kind == MutationFrame::kDelete && frame.value_bytes != 0) return bad("a delete with a value");
    if (frame.key_bytes > methods::kMaxKeyBytes) return bad("a key over the limit");
    if (!take(bytes, frame.key_bytes, mutation.key)) return bad("cut short");
    if (frame.kind == MutationFrame::kPut && !take(bytes, frame.value_bytes, mutation.value.emplace())) {
      return bad("cut short");
    }
    batch.mutations.push_back(std::move(mutation));
  }
  if (!bytes.empty()) return bad("bytes behind the last mutation");
  return batch;
}

std::string encode_items(const kv::ScanResult& result) {
  std::string out;
  for (const kv::KeyValue& item : result.items) {
    ItemFrame frame;
    frame.key_bytes = static_cast<uint32_t>(item.key.size());
    frame.value_bytes = static_cast<uint32_t>(item.value.size());
    put(out, frame);
    out += item.key;
    out += item.value;
  }
  return out;
}

Result<kv::ScanResult> decode_items(std::string_view bytes, uint32_t count) {
  const Error error(Errc::protocol_error, "scanned items: malformed");
  if (count > bytes.size() / sizeof(ItemFrame)) return error;
  kv::ScanResult result;
  result.items.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    ItemFrame frame;
    kv::KeyValue item;
    if (!take(bytes, frame) || !take(bytes, frame.key_bytes, item.key) || !take(bytes, frame.value_bytes, item.value)) {
      return error;
    }
    result.items.push_back(std::move(item));
  }
  if (!bytes.empty()) return error;
  return result;
}

}  // namespace cairn::replica
