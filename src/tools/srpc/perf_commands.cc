#include "tools/srpc/perf_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "reactor/stop_signals.h"
#include "srpc/server_process.h"
#include "tools/srpc/child_server.h"
#include "tools/srpc/command_support.h"
#include "tools/srpc/perf_service.h"
#include "tools/srpc/reach.h"
#include "tools/srpc/report.h"
#include "tools/srpc/svg_plot.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {
namespace {

constexpr Duration kGrace = seconds(2);

// With what to do about it.
Failure cannot_serve(const Error& error) {
  Failure failure = failure_of(error);
  const bool busy = error.code() == Errc::busy;
  if (error.message().starts_with("can't listen")) {
    failure.message += busy ? ": stop that one, or choose another port with --listen HOST:PORT"
                            : ": choose an address of this machine with --listen HOST:PORT";
  } else if (busy) {
    failure.message += ": ask for less with --memory or --poll-groups";
  }
  return failure;
}

using Results = std::expected<std::vector<Measured>, Failure>;

// Every combination, in the order of ways, sizes, depths; `each` sees it at once.
Results measure_all(const ClientPlan& plan, const Address& server, const std::function<void(const Measured&)>& each) {
  std::vector<Measured> all;
  for (const Way way : plan.ways) {
    for (const size_t size : plan.sizes) {
      for (const uint32_t depth : plan.depths) {
        Workload workload = plan.workload;
        workload.way = way;
        workload.size = size;
        workload.depth = depth;
        workload.keys = keys_of(plan.keys);
        auto measured = measure(server, workload);
        if (!measured) return std::unexpected(std::move(measured).error());
        each(*measured);
        all.push_back(*std::move(measured));
      }
    }
  }
  return all;
}

// A line for each way and size, `value` over the depth.
Plot plot_of(const std::vector<Measured>& all, std::string title, std::string y_label,
             double (*value)(const Measured&)) {
  Plot plot{.title = std::move(title), .x_label = "calls under way", .y_label = std::move(y_label), .series = {}};
  for (const Measured& measured : all) {
    const std::string name = fmt::format("{}, {}", measured.transport, format_size_exact(measured.workload.size));
    auto series = std::ranges::find(plot.series, name, &Series::name);
    if (series == plot.series.end()) series = plot.series.insert(series, {name, {}});
    series->points.emplace_back(measured.workload.depth, value(measured));
  }
  return plot;
}

double median_us(const Measured& m) { return static_cast<double>(m.latency.percentile_ns(0.5)) / 1e3; }
double rate(const Measured& m) { return m.calls_per_second(); }
double mib_per_second(const Measured& m) { return m.bytes_per_second() / (1 << 20); }

}  // namespace

int run_server(const ServerPlan& plan) {
  StopSignals signals;
  const auto at = resolve_address(plan.listen);
  if (!at) return report(kPerfProgram, failure_of(at.error(), Exit::usage), false);
  std::optional<rdma::RdmaOptions> rdma;
  if (plan.rdma) {
    rdma = {.verbs = &this_machine(),
            .roles = {.client = false, .server = true},
            .upgrades = {.expected = plan.rdma_expected}};
  }
  const auto hops = std::make_shared<PerfService::Hops>();
  auto process = ServerProcess::start({.at = *at,
                                       .poll_groups = static_cast<uint16_t>(plan.poll_groups),
                                       .mode = plan.mode,
                                       .memory = plan.memory,
                                       .shared_memory = plan.shared_memory,
                                       .tls = plan.tls ? Tls::required : Tls::off,
                                       .rdma = std::move(rdma),
                                       .server = {.keys = keys_of(plan.keys)}},
                                      [&hops](Server& server, ReactorHost& host) {
                                        hops->push_back(&hops_of(host));
                                        return std::make_shared<PerfService>(server, hops);
                                      });
  if (!process) {
    return report(kPerfProgram, cannot_serve(process.error()), false);
  }
  const std::string address = (*process)->address().to_string();
  if (plan.print_address) {
    fmt::print("{}\n", address);
  } else {
    fmt::print("srpc-perf: serving at {}, {} poll group{}, {} mode; Ctrl-C stops it\n", address, plan.poll_groups,
               plan.poll_groups == 1 ? "" : "s", mode_name(plan.mode));
    fmt::print("srpc-perf: measure with: srpc-perf client {}\n", address);
  }
  std::fflush(stdout);
  signals.wait();
  signals.let_the_next_one_kill();
  (*process)->stop(kGrace);
  if (!plan.print_address) fmt::print("srpc-perf: stopped\n");
  return static_cast<int>(Exit::ok);
}

int run_client(const ClientPlan& plan) {
  const auto server = resolve_address(plan.server);
  if (!server) return report(kPerfProgram, failure_of(server.error(), Exit::unreachable), plan.json);
  if (!plan.json) print_line(table_header());
  const auto all = measure_all(plan, *server, [&plan](const Measured& measured) {
    if (!plan.json) print_line(table_row(measured));
  });
  if (!all) return report(kPerfProgram, all.error(), plan.json);
  if (plan.json) fmt::print("{}\n", to_json(server->to_string(), *all).dump(2));
  return static_cast<int>(Exit::ok);
}

int run_sweep(const SweepPlan& plan) {
  const bool json = plan.client.json;
  // First of all: a sweep takes minutes.
  std::error_code failed;
  std::filesystem::create_directories(plan.folder, failed);
  const std::filesystem::path folder(plan.folder);
  if (failed || !write_file(folder / "sweep.json", "")) {
    return report(kPerfProgram, {Exit::failed, "io_error", fmt::format("can't write to {}", plan.folder)}, json);
  }
  std::unique_ptr<ChildServer> child;
  std::string where = plan.client.server;
  if (where.empty()) {
    auto started =
        ChildServer::start(plan.client.workload.mode, plan.poll_groups, plan.client.key_file, plan.client.workload.tls);
    if (!started) return report(kPerfProgram, failure_of(started.error()), json);
    child = *std::move(started);
    where = child->address();
  }
  const auto server = resolve_address(where);
  if (!server) return report(kPerfProgram, failure_of(server.error(), Exit::unreachable), json);

  if (!json) print_line(table_header());
  const auto show = [json](const Measured& measured) {
    if (!json) print_line(table_row(measured));
  };
  const Results small = measure_all(plan.client, *server, show);
  if (!small) return report(kPerfProgram, small.error(), json);
  ClientPlan bulk_plan = plan.client;
  bulk_plan.sizes = {plan.bulk_size};
  const Results bulk = measure_all(bulk_plan, *server, show);
  if (!bulk) return report(kPerfProgram, bulk.error(), json);

  std::vector<Measured> all = *small;
  all.insert(all.end(), bulk->begin(), bulk->end());
  const std::string document = to_json(server->to_string(), all).dump(2) + "\n";
  const std::string operation(operation_name(plan.client.workload.operation));
  const std::pair<const char*, std::string> files[] = {
      {"sweep.json", document},
      {"latency.svg", draw_svg(plot_of(*small, "SRPC " + operation + ": median latency", "us", &median_us))},
      {"rate.svg", draw_svg(plot_of(*small, "SRPC " + operation + ": rate", "calls a second", &rate))},
      {"throughput.svg", draw_svg(plot_of(*bulk, "SRPC " + operation + ": throughput", "MiB/s", &mib_per_second))}};
  for (const auto& [name, content] : files) {
    if (!write_file(folder / name, content)) {
      return report(kPerfProgram, {Exit::failed, "io_error", fmt::format("can't write {}", (folder / name).string())},
                    json);
    }
  }
  if (json) {
    fmt::print("{}", document);
  } else {
    fmt::print("\nwritten to {}: sweep.json, latency.svg, rate.svg, throughput.svg\n", plan.folder);
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace cairn::srpc::tools
