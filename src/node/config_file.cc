#include "node/config_file.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <optional>

#include "node/files.h"

namespace cairn::node {
namespace {

// A value as the text that Settings parses, or none for kinds that no setting has.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* array = node.as_array()) {
    std::string joined;
    for (const auto& element : *array) {
      if (element.is_array() || element.is_table()) return std::nullopt;
      const auto text = text_of(element);
      if (!text || text->find(',') != std::string::npos) return std::nullopt;
      if (!joined.empty()) joined += ',';
      joined += *text;
    }
    return joined;
  }
  return std::nullopt;
}

Result<void> apply_table(const toml::table& table, const std::string& prefix, const std::string& path,
                         Settings& settings) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* nested = node.as_table()) {
      TRY(apply_table(*nested, name + ".", path, settings));
      continue;
    }
    const std::string place = fmt::format("{}:{}", path, key.source().begin.line);
    const auto text = text_of(node);
    if (!text)
      return Error(Errc::invalid_argument, fmt::format("{}: {}: no setting has values of this type", place, name));
    if (auto set = settings.set(name, *text, place); !set) return std::move(set.error()).with_context(place);
  }
  return {};
}

}  // namespace

Result<void> apply_config_text(std::string_view text, const std::string& path, Settings& settings) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return Error(Errc::invalid_argument,
                 fmt::format("{}:{}: {}", path, parsed.error().source().begin.line, parsed.error().description()));
  }
  return apply_table(parsed.table(), "", path, settings);
}

Result<void> apply_config_file(const std::string& path, Settings& settings) {
  TRY(const std::string text, read_small_file(path));
  return apply_config_text(text, path, settings);
}

}  // namespace cairn::node
