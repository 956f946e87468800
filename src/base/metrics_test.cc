#include "base/metrics.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Metrics, ExposesFamiliesTogether) {
  Registry first, second;
  first.counter("requests_total", "Requests", "method=\"get\"").add(3);
  first.gauge("open_connections", "Connections").set(-2);
  second.counter("requests_total", "Requests", "method=\"get\"").add(4);
  second.counter("requests_total", "Requests", "method=\"put\"").add();
  EXPECT_EQ(Registry::expose({{&first, "reactor=\"0\""}, {&second, "reactor=\"1\""}}),
            "# HELP open_connections Connections\n"
            "# TYPE open_connections gauge\n"
            "open_connections{reactor=\"0\"} -2\n"
            "# HELP requests_total Requests\n"
            "# TYPE requests_total counter\n"
            "requests_total{method=\"get\",reactor=\"0\"} 3\n"
            "requests_total{method=\"get\",reactor=\"1\"} 4\n"
            "requests_total{method=\"put\",reactor=\"1\"} 1\n");
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameMetric) {
  Registry registry;
  Counter& one = registry.counter("writes_total", "Writes", "device=\"a\"");
  Counter& again = registry.counter("writes_total", "Writes", "device=\"a\"");
  Counter& other = registry.counter("writes_total", "Writes", "device=\"b\"");
  EXPECT_EQ(&one, &again);
  EXPECT_NE(&one, &other);
  EXPECT_DEATH(registry.gauge("writes_total", "Writes"), "kind");
}

TEST(Metrics, ReferencesSurviveGrowth) {
  Registry registry;
  Counter& first = registry.counter("first_total", "First");
  for (int i = 0; i < 1000; ++i) registry.counter("c" + std::to_string(i) + "_total", "Other");
  first.add(7);
  EXPECT_NE(Registry::expose({{&registry, ""}}).find("\nfirst_total 7\n"), std::string::npos);
}

TEST(Metrics, HistogramBucketsAreCumulativeAndEndInInfinity) {
  Registry registry;
  Histogram& histogram = registry.histogram("call_seconds", "Calls", "method=\"x\"");
  for (const uint64_t us : {0, 1, 2, 3, 4, 1'000'000, 100'000'000}) histogram.record_us(us);
  EXPECT_EQ(histogram.sum_us(), 101'000'010u);
  const std::string text = Registry::expose({{&registry, ""}});
  for (const char* line :
       {"# TYPE call_seconds histogram\n", "call_seconds_bucket{method=\"x\",le=\"1e-06\"} 1\n",
        "call_seconds_bucket{method=\"x\",le=\"2e-06\"} 2\n", "call_seconds_bucket{method=\"x\",le=\"4e-06\"} 4\n",
        "call_seconds_bucket{method=\"x\",le=\"8e-06\"} 5\n", "call_seconds_bucket{method=\"x\",le=\"1.048576\"} 6\n",
        "call_seconds_bucket{method=\"x\",le=\"8.388608\"} 6\n", "call_seconds_bucket{method=\"x\",le=\"+Inf\"} 7\n",
        "call_seconds_sum{method=\"x\"} 101.000010\n", "call_seconds_count{method=\"x\"} 7\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace cairn
