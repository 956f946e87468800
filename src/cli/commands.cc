#include "cli/commands.h"

#include <fmt/format.h>

namespace cairn::cli {

std::expected<std::string, Failure> show(const Session& session, const AdminClient::Answer& answer,
                                         std::string (*render)(const nlohmann::json&, const Style&)) {
  if (!answer) return std::unexpected(answer.error());
  return session.json ? answer->dump(2) + "\n" : render(*answer, session.style);
}

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

uint64_t number_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() && *found >= 0 ? found->get<uint64_t>() : 0;
}

double real_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

const nlohmann::json& list_of(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : kEmpty;
}

namespace {

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const auto* command : app.get_subcommands({})) words += command->get_name() + " ";
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) words += "--" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

void append_cases(const CLI::App& app, const std::string& path, std::string& cases) {
  cases += fmt::format("    '{}') words='{}' ;;\n", path, words_of(app));
  for (const auto* command : app.get_subcommands({})) append_cases(*command, path + " " + command->get_name(), cases);
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string script = R"sh(# Completion for cairn; add to ~/.bashrc:  eval "$(cairn completion bash)"
_cairn() {
  local path=cairn word words
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) ;; *) path="$path $word" ;; esac
  done
  case $path in
)sh";
  append_cases(app, app.get_name(), script);
  script += R"sh(    *) words= ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _cairn cairn
)sh";
  return script;
}

}  // namespace cairn::cli
