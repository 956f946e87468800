// LatencyHistogram: latencies in nanoseconds in bounded memory, each to 1.6 %: 64 buckets for each power of two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::srpc::tools {

class LatencyHistogram {
 public:
  void record(int64_t ns);
  void add(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  // 0 while there is none.
  int64_t min_ns() const { return count_ == 0 ? 0 : min_ns_; }
  int64_t max_ns() const { return max_ns_; }
  double mean_ns() const;
  // The smallest value that at least `part` (0 to 1) of them don't exceed.
  int64_t percentile_ns(double part) const;

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr unsigned kMaxBits = 40;  // 18 minutes; what is longer counts as that
  static constexpr size_t kBuckets = (kMaxBits - kSubBits + 1) << kSubBits;
  static size_t bucket_of(uint64_t ns);
  // The largest value of a bucket.
  static uint64_t upper_bound(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  int64_t min_ns_ = INT64_MAX;
  int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace cairn::srpc::tools
