// What the echo programs of other RPC systems share: their arguments, and the line they print (the same as
// srpc_bench's).
//
//   NAME SIZE DEPTH SECONDS
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace peer {

struct Plan {
  size_t size = 0;
  size_t depth = 0;
  double seconds = 0;
};

inline Plan plan_of(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SIZE DEPTH SECONDS\n", argv[0]);
    std::exit(2);
  }
  return {std::strtoul(argv[1], nullptr, 10), std::strtoul(argv[2], nullptr, 10), std::atof(argv[3])};
}

inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Filled by one thread.
struct Outcome {
  double start = now();
  double cpu = -cpu_seconds();
  std::vector<double> latencies_s;

  void print() {
    const double elapsed = now() - start;
    cpu += cpu_seconds();
    if (latencies_s.empty()) std::exit(1);
    std::sort(latencies_s.begin(), latencies_s.end());
    const auto count = static_cast<double>(latencies_s.size());
    const auto percentile = [&](double p) { return latencies_s[static_cast<size_t>(p * (count - 1))] * 1e6; };
    std::printf("{\"calls\": %zu, \"p50_us\": %.3f, \"p99_us\": %.3f, \"kops\": %.3f, \"cpu_us_per_call\": %.3f}\n",
                latencies_s.size(), percentile(0.5), percentile(0.99), count / elapsed / 1e3, cpu / count * 1e6);
  }
};

}  // namespace peer
