// status, config, check, checkpoint.
#include <fmt/format.h>

#include "base/units.h"
#include "cli/commands.h"

namespace cairn::cli {
namespace {

using nlohmann::json;
using Align = Table::Align;

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

Table::Cell health_cell(const std::string& health) { return {health, health == "ok" ? Tone::good : Tone::bad}; }

std::string render_devices(const json& status, const Style& style) {
  Table table({{"DEVICE"},
               {"SIZE", Align::right},
               {"SHARDS", Align::right},
               {"USED", Align::right},
               {"FREEING", Align::right},
               {"HEALTH"}});
  for (const auto& device : list_of(status, "devices")) {
    uint64_t used = 0;
    uint64_t freeing = 0;
    std::string health = "ok";
    for (const auto& shard : list_of(device, "shards")) {
      used += number_of(shard, "used_bytes");
      freeing += number_of(shard, "freeing_bytes");
      if (health == "ok") health = text_of(shard, "health");
    }
    table.add({text_of(device, "path"), format_size(number_of(device, "size_bytes")),
               std::to_string(list_of(device, "shards").size()), format_size(used), format_size(freeing),
               health_cell(health)});
  }
  return table.render(style);
}

std::string render_reactors(const json& status, const Style& style) {
  Table table({{"REACTOR", Align::right},
               {"MODE"},
               {"BUSY", Align::right},
               {"ASLEEP", Align::right},
               {"ARENA", Align::right},
               {"FREE", Align::right}});
  for (const auto& reactor : list_of(status, "reactors")) {
    table.add({std::to_string(number_of(reactor, "id")), text_of(reactor, "mode"),
               percent(real_of(reactor, "busy_share")), percent(real_of(reactor, "asleep_share")),
               format_size(number_of(reactor, "arena_bytes")), format_size(number_of(reactor, "arena_free_bytes"))});
  }
  return table.render(style);
}

std::string render_gateways(const json& status, const Style& style) {
  Table table({{"SERVICE"}, {"ADDRESS"}});
  for (const auto& gateway : list_of(status, "gateways")) {
    table.add({text_of(gateway, "service"), text_of(gateway, "address")});
  }
  return table.render(style);
}

}  // namespace

std::string render_status(const json& answer, const Style& style) {
  const bool healthy = text_of(answer, "health") == "ok";
  std::string out = fmt::format("{}  {}\n", style(Tone::strong, "Cairn " + text_of(answer, "version")),
                                style(healthy ? Tone::good : Tone::bad, text_of(answer, "health")));
  out +=
      fmt::format("cluster  {}\nnode     {}\nup       {}\n", text_of(answer, "cluster_id"), text_of(answer, "node_id"),
                  format_duration(seconds(static_cast<int64_t>(number_of(answer, "uptime_seconds")))));
  out += fmt::format("groups   {}\n", list_of(answer, "groups").size());
  for (const auto& problem : list_of(answer, "problems")) {
    if (problem.is_string()) out += style(Tone::bad, "problem  " + problem.get<std::string>()) + "\n";
  }
  out += '\n';
  for (const auto& pool : list_of(answer, "pools")) {
    const uint64_t used = number_of(pool, "used_bytes");
    const uint64_t total = number_of(pool, "total_bytes");
    out += fmt::format("pool {}  {}  {} used of {}, {} available, {} {}\n", text_of(pool, "name"), bar(used, total, 30),
                       format_size(used), format_size(total), format_size(number_of(pool, "available_bytes")),
                       number_of(pool, "replicas"), number_of(pool, "replicas") == 1 ? "replica" : "replicas");
  }
  return out + "\n" + render_devices(answer, style) + "\n" + render_reactors(answer, style) + "\n" +
         render_gateways(answer, style);
}

std::string render_config(const json& answer, const Style& style) {
  Table table({{"SETTING"}, {"VALUE"}, {"DEFAULT"}, {"FROM"}});
  for (const auto& row : list_of(answer, "settings")) {
    const bool changed = text_of(row, "origin") != "default";
    table.add({text_of(row, "name"),
               {text_of(row, "value"), changed ? Tone::strong : Tone::plain},
               text_of(row, "default"),
               {text_of(row, "origin"), Tone::faint}});
  }
  return table.render(style);
}

std::string render_orphans(const json& answer, const Style& style) {
  const uint64_t orphans = number_of(answer, "orphans");
  std::string out = fmt::format("chunks      {}\nreferenced  {}\nto delete   {}\nin flight   {}\norphans     {}\n",
                                number_of(answer, "chunks"), number_of(answer, "referenced"),
                                number_of(answer, "queued"), number_of(answer, "in_flight"),
                                style(orphans == 0 ? Tone::good : Tone::warning, std::to_string(orphans)));
  for (const auto& example : list_of(answer, "examples")) {
    if (example.is_string()) out += "  " + example.get<std::string>() + "\n";
  }
  return out;
}

void add_node_commands(CLI::App& app, Action& chosen) {
  auto* status = app.add_subcommand("status", "show the node's health, space, devices, reactors and addresses");
  status->footer("Examples:\n  cairn status\n  cairn --json status | jq '.pools[0].available_bytes'");
  status->callback(
      [&chosen] { chosen = [](Session& s) { return show(s, s.client.get("/v1/status"), &render_status); }; });

  auto* config = app.add_subcommand("config", "show the node's settings and where each comes from");
  config->footer(
      "Settings are changed in cairnd's config file or with --set, and take effect at its next start.\n"
      "cairnd --print-config explains each.");
  config->callback(
      [&chosen] { chosen = [](Session& s) { return show(s, s.client.get("/v1/config"), &render_config); }; });

  auto* check = app.add_subcommand("check", "look for what shouldn't be there");
  check->require_subcommand(1);
  auto* orphans = check->add_subcommand("orphans", "compare stored chunks with the objects that use them");
  orphans->footer("Reads all indexes; nothing is changed. The exit code is 1 when orphans were found.");
  orphans->callback([&chosen] {
    chosen = [](Session& s) -> std::expected<std::string, Failure> {
      const auto answer = s.client.post("/v1/check/orphans", json::object());
      auto text = show(s, answer, &render_orphans);
      if (text && number_of(*answer, "orphans") > 0) return std::unexpected(Failure{Exit::error, "orphans", *text});
      return text;
    };
  });

  auto* checkpoint = app.add_subcommand("checkpoint", "write everything home now, so that the next start is quick");
  checkpoint->callback([&chosen] {
    chosen = [](Session& s) {
      return show(s, s.client.post("/v1/checkpoint", json::object()),
                  [](const json&, const Style&) -> std::string { return "all shards are checkpointed\n"; });
    };
  });
}

}  // namespace cairn::cli
