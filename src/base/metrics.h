// Metrics: each reactor owns a Registry and writes to it without synchronisation; whoever scrapes reads it from any
// thread. Values are relaxed atomics with a single writer, so an update is a plain load, add and store.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

// Only ever grows.
class Counter {
 public:
  void add(uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {
 public:
  void set(int64_t v) { value_.store(v, std::memory_order_relaxed); }
  void add(int64_t n) { set(value() + n); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// Durations in microseconds in powers of two: bucket i counts values below 2^i us, the last one everything.
class Histogram {
 public:
  static constexpr int kBuckets = 25;  // the largest bound is 8.4 s

  void record_us(uint64_t us);
  uint64_t count(int bucket) const { return buckets_[static_cast<size_t>(bucket)].value(); }
  uint64_t sum_us() const { return sum_us_.value(); }

 private:
  std::array<Counter, kBuckets> buckets_;
  Counter sum_us_;
};

// Names follow Prometheus: snake case, unit, "_total" for counters. `labels` is what stands between the braces, such as
// `method="chunk_write"`, or empty. Registering the same name and labels again gives the same metric: two devices of
// one reactor count together. Everything is registered before the reactor's thread starts; the references live as long
// as the registry.
class Registry {
 public:
  Counter& counter(std::string_view name, std::string_view help, std::string_view labels = "");
  Gauge& gauge(std::string_view name, std::string_view help, std::string_view labels = "");
  Histogram& histogram(std::string_view name, std::string_view help, std::string_view labels = "");

  // The Prometheus text format of several registries, each series with the label of its registry, such as
  // `reactor="0"`.
  struct Source {
    const Registry* registry;
    std::string label;
  };
  static std::string expose(const std::vector<Source>& sources);

 private:
  enum class Kind { counter, gauge, histogram };
  struct Series {
    Kind kind;
    std::string name;
    std::string help;
    std::string labels;
    void* metric;
  };
  template <typename Metric>
  Metric& find_or_add(std::deque<Metric>& owner, Kind kind, std::string_view name, std::string_view help,
                      std::string_view labels);

  std::deque<Counter> counters_;
  std::deque<Gauge> gauges_;
  std::deque<Histogram> histograms_;
  std::vector<Series> series_;
};

}  // namespace cairn
