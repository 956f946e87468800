#include "node/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "base/units.h"

namespace cairn::node {
namespace {

std::string format_number(uint64_t value, Unit unit) {
  switch (unit) {
    case Unit::none:
      return std::to_string(value);
    case Unit::bytes:
      return format_size_exact(value);
    case Unit::duration:
      return format_duration_exact({static_cast<int64_t>(value)});
  }
  return {};
}

Result<uint64_t> parse_number(std::string_view text, Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return parse_size(text);
    case Unit::duration: {
      TRY(const Duration duration, parse_duration(text));
      return static_cast<uint64_t>(duration.ns);
    }
    case Unit::none:
      break;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return Error(Errc::invalid_argument, fmt::format("'{}' is not a whole number", text));
  }
  return value;
}

Result<uint64_t> parse_in_range(const Setting& setting, std::string_view text) {
  TRY(const uint64_t value, parse_number(text, setting.unit));
  if (value < setting.min || value > setting.max) {
    return Error(Errc::invalid_argument,
                 fmt::format("{} is out of range: it must be {} to {}", text, format_number(setting.min, setting.unit),
                             format_number(setting.max, setting.unit)));
  }
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t at = text.find(separator);
    std::string_view part = text.substr(0, at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
    text = at == std::string_view::npos ? "" : text.substr(at + 1);
  }
  return parts;
}

// Parses `text` into the member that the setting names.
struct Parse {
  NodeSettings& values;
  const Setting& setting;
  std::string_view text;

  Result<void> operator()(uint64_t NodeSettings::* member) const {
    TRY(values.*member, parse_in_range(setting, text));
    return {};
  }
  Result<void> operator()(std::optional<uint64_t> NodeSettings::* member) const {
    if (text == "auto") {
      (values.*member).reset();
      return {};
    }
    TRY(values.*member, parse_in_range(setting, text));
    return {};
  }
  Result<void> operator()(Duration NodeSettings::* member) const {
    TRY(const uint64_t ns, parse_in_range(setting, text));
    values.*member = {static_cast<int64_t>(ns)};
    return {};
  }
  Result<void> operator()(std::string NodeSettings::* member) const {
    if (!setting.choices.empty()) {
      const auto choices = split(setting.choices, '|');
      if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
        return Error(Errc::invalid_argument, fmt::format("'{}' is not one of {}", text, fmt::join(choices, ", ")));
      }
    }
    values.*member = text;
    return {};
  }
  Result<void> operator()(std::vector<std::string> NodeSettings::* member) const {
    values.*member = split(text, ',');
    return {};
  }
};

struct Format {
  const NodeSettings& values;
  const Setting& setting;

  std::string operator()(uint64_t NodeSettings::* member) const { return format_number(values.*member, setting.unit); }
  std::string operator()(std::optional<uint64_t> NodeSettings::* member) const {
    return values.*member ? format_number(*(values.*member), setting.unit) : "auto";
  }
  std::string operator()(Duration NodeSettings::* member) const { return format_duration_exact(values.*member); }
  std::string operator()(std::string NodeSettings::* member) const { return values.*member; }
  std::string operator()(std::vector<std::string> NodeSettings::* member) const {
    return fmt::format("{}", fmt::join(values.*member, ","));
  }
};

// Edits (insert, delete, replace) that turn one into the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Setting::type_text() const {
  if (!choices.empty()) return fmt::format("one of {}", fmt::join(split(choices, '|'), ", "));
  if (std::holds_alternative<std::string NodeSettings::*>(member)) return "text";
  if (std::holds_alternative<std::vector<std::string> NodeSettings::*>(member)) return "list of texts";
  const std::string_view kind = unit == Unit::bytes ? "size" : unit == Unit::duration ? "duration" : "number";
  const bool automatic = std::holds_alternative<std::optional<uint64_t> NodeSettings::*>(member);
  return fmt::format("{}, {} to {}{}", kind, format_number(min, unit), format_number(max, unit),
                     automatic ? ", or auto" : "");
}

std::string_view nearest_setting(std::string_view name) {
  std::string_view best;
  // Further than a third of the name isn't a slip of the finger.
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const auto& setting : setting_table()) {
    // "arena" for "memory.arena": the last part alone is near too.
    const auto tail = setting.name.substr(setting.name.rfind('.') + 1);
    const size_t distance = tail == name ? 1 : edit_distance(name, setting.name);
    if (distance < best_distance) {
      best = setting.name;
      best_distance = distance;
    }
  }
  return best;
}

Settings::Settings() : origins_(setting_table().size(), "default") {
  for (const auto& setting : setting_table()) {
    const auto parsed = std::visit(Parse{values_, setting, setting.default_text}, setting.member);
    ASSERT(parsed);
  }
}

Result<void> Settings::set(std::string_view name, std::string_view text, std::string_view origin) {
  const auto table = setting_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Setting& s) { return s.name == name; });
  if (found == table.end()) {
    const auto near = nearest_setting(name);
    return Error(Errc::invalid_argument,
                 near.empty() ? fmt::format("unknown setting '{}'; cairnd --print-config lists all", name)
                              : fmt::format("unknown setting '{}'; did you mean {}?", name, near));
  }
  if (auto parsed = std::visit(Parse{values_, *found, text}, found->member); !parsed) {
    return std::move(parsed.error()).with_context(name);
  }
  origins_[static_cast<size_t>(found - table.begin())] = origin;
  return {};
}

Result<void> Settings::set_assignment(std::string_view assignment, std::string_view origin) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Error(Errc::invalid_argument, fmt::format("'{}' is not of the form key=value", assignment));
  }
  return set(assignment.substr(0, equals), assignment.substr(equals + 1), origin);
}

std::vector<Settings::Row> Settings::rows() const {
  std::vector<Row> rows;
  const auto table = setting_table();
  rows.reserve(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    rows.push_back({&table[i], std::visit(Format{values_, table[i]}, table[i].member), origins_[i]});
  }
  return rows;
}

}  // namespace cairn::node
