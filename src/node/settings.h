// Settings of a node: one table (settings_table.cc) says for each its name, type, default, range and help; from it come
// the parser, the errors, `cairnd --print-config`, `cairn config` and docs/operations.md.
//
// Precedence, weakest first: default, config file, --set. A value's origin is kept for those who ask where it came
// from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace cairn::node {

// The typed values. Whatever is optional can be "auto": resources.h decides it from the machine.
struct NodeSettings {
  std::optional<uint64_t> reactors;
  std::string mode;
  std::optional<uint64_t> memory_arena;

  std::string device_path;  // empty: DATA/device0
  std::optional<uint64_t> device_size;
  std::optional<uint64_t> device_shards;
  std::optional<uint64_t> engine_cache;
  Duration engine_checkpoint_interval;
  std::optional<uint64_t> store_cache;
  uint64_t store_write_buffer = 0;

  std::string listen_default;
  std::string listen_s3;     // empty: listen_default
  std::string listen_admin;  // likewise
  std::string listen_srpc;
  std::string srpc_keys;
  std::optional<uint64_t> ports_base;
  std::optional<uint64_t> ports_s3;
  std::optional<uint64_t> ports_admin;
  std::optional<uint64_t> ports_srpc;

  std::vector<std::string> s3_domains;
  std::vector<std::string> s3_public_hosts;
  std::string s3_region;
  uint64_t s3_max_connections = 0;
  Duration s3_header_timeout;
  Duration s3_idle_timeout;
  Duration s3_stall_timeout;
  Duration s3_request_timeout;

  Duration stop_timeout;
  std::string log_level;
  std::string log_format;
};

enum class Unit { none, bytes, duration };

struct Setting {
  using Member =
      std::variant<uint64_t NodeSettings::*, std::optional<uint64_t> NodeSettings::*, Duration NodeSettings::*,
                   std::string NodeSettings::*, std::vector<std::string> NodeSettings::*>;

  std::string_view name;  // "table.key" as in the config file
  Member member;
  Unit unit = Unit::none;
  std::string_view default_text;  // parsed like any other value; "auto" for optionals
  uint64_t min = 0;               // numbers, in the unit's base (bytes, nanoseconds)
  uint64_t max = UINT64_MAX;
  std::string_view choices = "";  // "a|b|c" for texts that must be one of these
  std::string_view help = "";     // one sentence, without a full stop

  // "size, 64MiB to 1TiB, or auto": for people.
  std::string type_text() const;
};

// In the order in which they are shown.
std::span<const Setting> setting_table();

class Settings {
 public:
  // All defaults.
  Settings();

  // Unknown names, malformed and out-of-range values are Errc::invalid_argument with the cure in the message; nothing
  // has changed then. `origin` is what --print-config shows: "/etc/cairn.toml:3", "--set".
  Result<void> set(std::string_view name, std::string_view text, std::string_view origin);
  // "key=value".
  Result<void> set_assignment(std::string_view assignment, std::string_view origin);

  const NodeSettings& values() const { return values_; }

  struct Row {
    const Setting* setting;
    std::string value;
    std::string origin;  // "default" or as given to set
  };
  std::vector<Row> rows() const;

 private:
  NodeSettings values_;
  std::vector<std::string> origins_;  // parallel to setting_table()
};

// The name in the table that is nearest to `name`, or empty when none is near.
std::string_view nearest_setting(std::string_view name);

}  // namespace cairn::node
