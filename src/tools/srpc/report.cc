#include "tools/srpc/report.h"

#include <fmt/format.h>

#include "base/units.h"
#include "base/version.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {
namespace {

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }
// Whatever is behind the third decimal is noise.
double rounded(double value) { return static_cast<double>(static_cast<int64_t>(value * 1000 + 0.5)) / 1000; }

}  // namespace

std::string table_header() {
  return fmt::format("{:9} {:>5} {:>9} {:>5} {:>3} {:>11} {:>10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}", "transport",
                     "op", "size", "depth", "thr", "calls/s", "MiB/s", "p50 us", "p90 us", "p99 us", "p99.9 us",
                     "cpu us", "srv cpu");
}

std::string table_row(const Measured& m) {
  const auto percentile = [&m](double part) { return us(m.latency.percentile_ns(part)); };
  return fmt::format(
      "{:9} {:>5} {:>9} {:>5} {:>3} {:>11.0f} {:>10.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>8.2f} {:>8.2f}",
      m.transport, operation_name(m.workload.operation), format_size_exact(m.workload.size), m.workload.depth,
      m.workload.threads, m.calls_per_second(), m.bytes_per_second() / (1 << 20), percentile(0.5), percentile(0.9),
      percentile(0.99), percentile(0.999), m.per_call(m.client_cpu_us), m.per_call(m.server_cpu_us));
}

nlohmann::ordered_json to_json(const Measured& m) {
  const auto percentile = [&m](double part) { return us(m.latency.percentile_ns(part)); };
  return {{"transport", m.transport},
          {"asked_for", way_name(m.workload.way)},
          {"operation", operation_name(m.workload.operation)},
          {"size_bytes", m.workload.size},
          {"depth", m.workload.depth},
          {"threads", m.workload.threads},
          {"mode", mode_name(m.workload.mode)},
          {"poll_groups", m.poll_groups},
          {"seconds", rounded(m.seconds)},
          {"offered_calls_per_second", rounded(m.workload.calls_per_second)},
          {"calls", m.latency.count()},
          {"calls_per_second", rounded(m.calls_per_second())},
          {"bytes_per_second", rounded(m.bytes_per_second())},
          {"latency_us",
           {{"min", us(m.latency.min_ns())},
            {"mean", rounded(m.latency.mean_ns() / 1e3)},
            {"p50", percentile(0.5)},
            {"p90", percentile(0.9)},
            {"p99", percentile(0.99)},
            {"p999", percentile(0.999)},
            {"max", us(m.latency.max_ns())}}},
          {"cpu_us_per_call",
           {{"client", rounded(m.per_call(m.client_cpu_us))}, {"server", rounded(m.per_call(m.server_cpu_us))}}},
          {"cpu_cores", {{"client", rounded(m.cores(m.client_cpu_us))}, {"server", rounded(m.cores(m.server_cpu_us))}}},
          {"hops", {{"client", m.client_hops}, {"server", m.server_hops}}}};
}

nlohmann::ordered_json to_json(const std::string& server, const std::vector<Measured>& all) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const Measured& measured : all) runs.push_back(to_json(measured));
  return {{"program", "srpc-perf"}, {"version", kVersion}, {"server", server}, {"runs", std::move(runs)}};
}

}  // namespace cairn::srpc::tools
