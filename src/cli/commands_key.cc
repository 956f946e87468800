// key list, create, delete.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"

namespace cairn::cli {
namespace {

using nlohmann::json;

std::string render_new_key(const json& answer, const Style& style) {
  return fmt::format("access key  {}\nsecret key  {}\n\n{}\n", style(Tone::strong, text_of(answer, "access_key")),
                     style(Tone::strong, text_of(answer, "secret_key")),
                     style(Tone::faint, "The secret is shown only now."));
}

}  // namespace

std::string render_keys(const json& answer, const Style& style) {
  if (list_of(answer, "keys").empty()) return "no access keys; make one with: cairn key create\n";
  Table table({{"ACCESS KEY"}, {"CREATED"}, {"NOTE"}});
  for (const auto& key : list_of(answer, "keys")) {
    table.add({{text_of(key, "access_key"), Tone::strong},
               local_time(static_cast<int64_t>(number_of(key, "created_unix_ns"))),
               text_of(key, "note")});
  }
  return table.render(style);
}

void add_key_commands(CLI::App& app, Action& chosen) {
  auto* key = app.add_subcommand("key", "list, create and delete access keys for S3 clients");
  key->require_subcommand(1);
  key->footer(
      "Examples:\n  cairn key create --note 'backups of host a'\n  cairn --json key create | jq -r .secret_key\n"
      "  cairn key delete CAXXXXXXXXXXXXXXXXXX");

  key->add_subcommand("list", "list all access keys, without their secrets")->callback([&chosen] {
    chosen = [](Session& s) { return show(s, s.client.get("/v1/keys"), &render_keys); };
  });

  struct Values {
    std::string access_key;
    std::string secret_key;
    std::string note;
  };
  const auto values = std::make_shared<Values>();
  auto* create = key->add_subcommand("create", "create an access key; what isn't given is random");
  create->add_option("--access-key", values->access_key, "the access key")->type_name("KEY");
  create->add_option("--secret-key", values->secret_key, "the secret; note that other users see arguments")
      ->type_name("SECRET");
  create->add_option("--note", values->note, "what it is for")->type_name("TEXT");
  create->callback([&chosen, values] {
    chosen = [values](Session& s) {
      json body = json::object();
      if (!values->access_key.empty()) body["access_key"] = values->access_key;
      if (!values->secret_key.empty()) body["secret_key"] = values->secret_key;
      if (!values->note.empty()) body["note"] = values->note;
      return show(s, s.client.post("/v1/keys", body), &render_new_key);
    };
  });

  const auto name = std::make_shared<std::string>();
  auto* remove = key->add_subcommand("delete", "delete an access key; requests signed with it fail within seconds");
  remove->add_option("key", *name, "the access key")->required()->type_name("KEY");
  remove->callback([&chosen, name] {
    chosen = [name](Session& s) {
      return show(s, s.client.remove("/v1/keys/" + percent_encode(*name)), [](const json& answer, const Style&) {
        return fmt::format("deleted access key {}\n", text_of(answer, "deleted"));
      });
    };
  });
}

}  // namespace cairn::cli
