// bucket list, create, delete, info.
#include <fmt/format.h>

#include <memory>

#include "base/units.h"
#include "cli/commands.h"

namespace cairn::cli {
namespace {

using nlohmann::json;

std::string created_of(const json& object) {
  return local_time(static_cast<int64_t>(number_of(object, "created_unix_ns")));
}

}  // namespace

std::string render_buckets(const json& answer, const Style& style) {
  if (list_of(answer, "buckets").empty()) return "no buckets; make one with: cairn bucket create NAME\n";
  Table table({{"BUCKET"}, {"CREATED"}, {"OWNER"}});
  for (const auto& bucket : list_of(answer, "buckets")) {
    table.add({{text_of(bucket, "name"), Tone::strong}, created_of(bucket), text_of(bucket, "owner")});
  }
  return table.render(style);
}

std::string render_bucket(const json& answer, const Style& style) {
  std::string out =
      fmt::format("bucket   {}\ncreated  {}\n", style(Tone::strong, text_of(answer, "name")), created_of(answer));
  if (const auto owner = text_of(answer, "owner"); !owner.empty()) out += fmt::format("owner    {}\n", owner);
  if (answer.contains("objects")) {
    out += fmt::format("objects  {}\nsize     {}\n", number_of(answer, "objects"),
                       format_size(number_of(answer, "bytes")));
  }
  return out;
}

void add_bucket_commands(CLI::App& app, Action& chosen) {
  auto* bucket = app.add_subcommand("bucket", "list, create, delete and inspect buckets");
  bucket->require_subcommand(1);
  bucket->footer(
      "Examples:\n  cairn bucket create photos\n  cairn bucket info photos --count\n  cairn bucket delete photos");

  bucket->add_subcommand("list", "list all buckets")->callback([&chosen] {
    chosen = [](Session& s) { return show(s, s.client.get("/v1/buckets"), &render_buckets); };
  });

  // Options are written by the parser after this function has returned, so their values live with the callbacks.
  const auto name = std::make_shared<std::string>();
  const auto count = std::make_shared<bool>(false);
  const auto add_named = [&](const char* command, const char* help) {
    auto* sub = bucket->add_subcommand(command, help);
    sub->add_option("name", *name, "the bucket's name")->required()->type_name("NAME");
    return sub;
  };

  add_named("create", "create a bucket")->callback([&chosen, name] {
    chosen = [name](Session& s) {
      return show(s, s.client.post("/v1/buckets", {{"name", *name}}), [](const json& answer, const Style&) {
        return fmt::format("created bucket {}\n", text_of(answer, "name"));
      });
    };
  });
  add_named("delete", "delete an empty bucket")->callback([&chosen, name] {
    chosen = [name](Session& s) {
      return show(s, s.client.remove("/v1/buckets/" + percent_encode(*name)), [](const json& answer, const Style&) {
        return fmt::format("deleted bucket {}\n", text_of(answer, "deleted"));
      });
    };
  });
  auto* info = add_named("info", "show a bucket");
  info->add_flag("--count", *count, "also count its objects and bytes, which reads the whole index");
  info->callback([&chosen, name, count] {
    chosen = [name, count](Session& s) {
      return show(s, s.client.get("/v1/buckets/" + percent_encode(*name) + (*count ? "?count=true" : "")),
                  &render_bucket);
    };
  });
}

}  // namespace cairn::cli
