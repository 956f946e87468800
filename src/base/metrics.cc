#include "base/metrics.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "base/assert.h"

namespace cairn {
namespace {

std::string join_labels(std::string_view a, std::string_view b) {
  std::string text(a);
  if (!a.empty() && !b.empty()) text.push_back(',');
  text.append(b);
  return text;
}

std::string braces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

void expose_histogram(std::string& out, const std::string& name, const std::string& labels, const Histogram& h) {
  uint64_t cumulative = 0;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    cumulative += h.count(i);
    const std::string bound =
        i + 1 == Histogram::kBuckets ? "+Inf" : fmt::format("{:.9g}", static_cast<double>(uint64_t{1} << i) / 1e6);
    out += fmt::format("{}_bucket{{{}}} {}\n", name, join_labels(labels, "le=\"" + bound + "\""), cumulative);
  }
  out += fmt::format("{}_sum{} {:.6f}\n", name, braces(labels), static_cast<double>(h.sum_us()) / 1e6);
  out += fmt::format("{}_count{} {}\n", name, braces(labels), cumulative);
}

}  // namespace

void Histogram::record_us(uint64_t us) {
  const auto bucket = static_cast<int>(std::bit_width(us));
  buckets_[static_cast<size_t>(bucket < kBuckets ? bucket : kBuckets - 1)].add();
  sum_us_.add(us);
}

template <typename Metric>
Metric& Registry::find_or_add(std::deque<Metric>& owner, Kind kind, std::string_view name, std::string_view help,
                              std::string_view labels) {
  for (const Series& series : series_) {
    if (series.name != name) continue;
    ASSERT(series.kind == kind);
    if (series.labels == labels) return *static_cast<Metric*>(series.metric);
  }
  auto& metric = owner.emplace_back();
  series_.push_back({kind, std::string(name), std::string(help), std::string(labels), &metric});
  return metric;
}

Counter& Registry::counter(std::string_view name, std::string_view help, std::string_view labels) {
  return find_or_add(counters_, Kind::counter, name, help, labels);
}

Gauge& Registry::gauge(std::string_view name, std::string_view help, std::string_view labels) {
  return find_or_add(gauges_, Kind::gauge, name, help, labels);
}

Histogram& Registry::histogram(std::string_view name, std::string_view help, std::string_view labels) {
  return find_or_add(histograms_, Kind::histogram, name, help, labels);
}

std::string Registry::expose(const std::vector<Source>& sources) {
  // A family's series must stand together, under one HELP and TYPE line, whatever registry they come from.
  std::map<std::string, std::vector<std::pair<const Series*, std::string>>> families;
  for (const auto& source : sources) {
    for (const auto& series : source.registry->series_) {
      families[series.name].emplace_back(&series, join_labels(series.labels, source.label));
    }
  }
  std::string out;
  for (const auto& [name, members] : families) {
    const Series& first = *members.front().first;
    const char* type = first.kind == Kind::counter ? "counter" : first.kind == Kind::gauge ? "gauge" : "histogram";
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, first.help, name, type);
    for (const auto& [series, labels] : members) {
      switch (series->kind) {
        case Kind::counter:
          out += fmt::format("{}{} {}\n", name, braces(labels), static_cast<const Counter*>(series->metric)->value());
          break;
        case Kind::gauge:
          out += fmt::format("{}{} {}\n", name, braces(labels), static_cast<const Gauge*>(series->metric)->value());
          break;
        case Kind::histogram:
          expose_histogram(out, name, labels, *static_cast<const Histogram*>(series->metric));
          break;
      }
    }
  }
  return out;
}

}  // namespace cairn
