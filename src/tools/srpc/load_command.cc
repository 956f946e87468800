// srpc-perf load: what a call takes and costs at a given load, for each way to wait.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "tools/srpc/child_server.h"
#include "tools/srpc/command_support.h"
#include "tools/srpc/perf_commands.h"
#include "tools/srpc/report.h"
#include "tools/srpc/svg_plot.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {
namespace {

// Calls under way when it is found out how many calls a second there can be.
constexpr uint32_t kFullDepth = 64;

// 10, 30, 100, 300, ... and just below the most: two points for each power of ten, as a logarithmic axis wants them.
std::vector<double> ladder_up_to(double most) {
  std::vector<double> rates;
  for (double power = 10; power < most; power *= 10) {
    for (const double rate : {power, 3 * power}) {
      if (rate < 0.7 * most) rates.push_back(rate);
    }
  }
  const double digit = std::pow(10, std::floor(std::log10(most)) - 1);
  rates.push_back(std::max(1.0, std::floor(0.9 * most / digit) * digit));
  return rates;
}

class LoadCommand {
 public:
  explicit LoadCommand(const LoadPlan& plan) : plan_(plan), json_(plan.client.json) {}

  std::optional<Failure> run() {
    std::error_code failed;
    std::filesystem::create_directories(plan_.folder, failed);
    // First of all: this takes minutes.
    if (failed || !write_file(path("load.json"), "")) return cannot_write(plan_.folder);
    if (!json_) print_line("offered/s " + table_header());
    for (const Mode mode : plan_.modes) {
      if (auto failure = measure_mode(mode)) return failure;
    }
    return write_all();
  }

  std::string document() const { return to_json(where_, all_).dump(2) + "\n"; }

 private:
  std::filesystem::path path(const char* name) const { return std::filesystem::path(plan_.folder) / name; }
  Failure cannot_write(const std::string& what) const {
    return {Exit::failed, "io_error", fmt::format("can't write {}", what)};
  }

  std::optional<Failure> measure_mode(Mode mode) {
    auto child = ChildServer::start(mode, plan_.poll_groups, plan_.client.key_file, plan_.client.workload.tls);
    if (!child) return failure_of(child.error());
    where_ = (*child)->address();
    const auto server = resolve_address(where_);
    if (!server) return failure_of(server.error(), Exit::unreachable);
    Workload workload = plan_.client.workload;
    workload.mode = mode;
    workload.way = plan_.client.ways.front();
    workload.size = plan_.client.sizes.front();
    workload.keys = keys_of(plan_.client.keys);
    if (rates_.empty()) {
      // Once, so that all modes are asked for the same.
      rates_ = plan_.rates;
      workload.depth = kFullDepth;
      if (rates_.empty()) {
        auto full = measure(*server, workload);
        if (!full) return std::move(full).error();
        rates_ = ladder_up_to(full->calls_per_second());
      }
    }
    workload.depth = plan_.client.depths.front();
    for (const double rate : rates_) {
      workload.calls_per_second = rate;
      auto measured = measure(*server, workload);
      if (!measured) return std::move(measured).error();
      if (!json_) print_line(fmt::format("{:>9.0f} {} {}", rate, table_row(*measured), mode_name(mode)));
      all_.push_back(*std::move(measured));
    }
    return std::nullopt;
  }

  using Value = double (*)(const Measured&);
  // A line for each mode and value, over the rate that was asked for.
  Plot plot(std::string title, std::string y_label, const std::vector<std::pair<const char*, Value>>& values) const {
    Plot plot{.title = std::move(title),
              .x_label = "calls a second, offered",
              .y_label = std::move(y_label),
              .series = {},
              .logarithmic = true};
    for (const auto& [name, value] : values) {
      for (const Mode mode : plan_.modes) {
        Series series{fmt::format("{}, {}", mode_name(mode), name), {}};
        for (const Measured& measured : all_) {
          if (measured.workload.mode != mode) continue;
          series.points.emplace_back(measured.workload.calls_per_second, value(measured));
        }
        plot.series.push_back(std::move(series));
      }
    }
    return plot;
  }

  std::optional<Failure> write_all() const {
    const std::string what = fmt::format("SRPC {} over {}", operation_name(plan_.client.workload.operation),
                                         all_.empty() ? "" : all_.front().transport);
    const Plot latency =
        plot(what + ": latency", "us",
             {{"p50", [](const Measured& m) { return static_cast<double>(m.latency.percentile_ns(0.5)) / 1e3; }},
              {"p99", [](const Measured& m) { return static_cast<double>(m.latency.percentile_ns(0.99)) / 1e3; }}});
    Plot cpu = plot(what + ": processor time", "cores",
                    {{"server", [](const Measured& m) { return m.cores(m.server_cpu_us); }},
                     {"client", [](const Measured& m) { return m.cores(m.client_cpu_us); }}});
    cpu.logarithmic = false;
    const std::pair<const char*, std::string> files[] = {
        {"load.json", document()}, {"load-latency.svg", draw_svg(latency)}, {"load-cpu.svg", draw_svg(cpu)}};
    for (const auto& [name, content] : files) {
      if (!write_file(path(name), content)) return cannot_write(path(name).string());
    }
    return std::nullopt;
  }

  const LoadPlan& plan_;
  bool json_;
  std::string where_;
  std::vector<double> rates_;
  std::vector<Measured> all_;
};

}  // namespace

int run_load(const LoadPlan& plan) {
  LoadCommand command(plan);
  if (const auto failure = command.run()) return report(kPerfProgram, *failure, plan.client.json);
  if (plan.client.json) {
    fmt::print("{}", command.document());
  } else {
    fmt::print("\nwritten to {}: load.json, load-latency.svg, load-cpu.svg\n", plan.folder);
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace cairn::srpc::tools
