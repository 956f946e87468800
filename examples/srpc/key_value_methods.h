// What key_value serves. Keys travel as tails, values as payload.
#pragma once

#include <srpc/message.h>

#include <string_view>

#include <base/endian.h>

struct ValueSize {
  cairn::Le32 bytes;
};

struct Put {
  static constexpr cairn::srpc::MethodId kId{0x10};
  static constexpr std::string_view kName = "put";
  using Request = cairn::srpc::None;
  using Reply = ValueSize;
};

struct Get {
  static constexpr cairn::srpc::MethodId kId{0x11};
  static constexpr std::string_view kName = "get";
  using Request = cairn::srpc::None;
  using Reply = ValueSize;
};

inline constexpr size_t kMaxKey = 255;
// Two poll groups don't share anything: a key belongs to one of them, and clients ask that one.
inline uint16_t poll_group_of(std::string_view key, uint16_t poll_groups) {
  uint32_t hash = 2166136261;
  for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return static_cast<uint16_t>(hash % poll_groups);
}
