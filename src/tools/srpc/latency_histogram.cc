#include "tools/srpc/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cairn::srpc::tools {

// Below 64 ns a bucket for each; above, the 7 leading bits and how many follow them.
size_t LatencyHistogram::bucket_of(uint64_t ns) {
  const uint64_t value = std::min(ns, (uint64_t{1} << kMaxBits) - 1);
  const auto bits = static_cast<unsigned>(std::bit_width(value));
  if (bits <= kSubBits) return value;
  const unsigned shift = bits - kSubBits - 1;
  return (size_t{shift} << kSubBits) + (value >> shift);
}

uint64_t LatencyHistogram::upper_bound(size_t bucket) {
  if (bucket < (size_t{1} << kSubBits)) return bucket;
  const auto shift = static_cast<unsigned>((bucket >> kSubBits) - 1);
  const uint64_t leading = bucket - (size_t{shift} << kSubBits);
  return ((leading + 1) << shift) - 1;
}

void LatencyHistogram::record(int64_t ns) {
  const int64_t value = std::max<int64_t>(ns, 0);
  ++buckets_[bucket_of(static_cast<uint64_t>(value))];
  ++count_;
  min_ns_ = std::min(min_ns_, value);
  max_ns_ = std::max(max_ns_, value);
  sum_ns_ += static_cast<double>(value);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
}

double LatencyHistogram::mean_ns() const { return count_ == 0 ? 0 : sum_ns_ / static_cast<double>(count_); }

int64_t LatencyHistogram::percentile_ns(double part) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(part * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::clamp(static_cast<int64_t>(upper_bound(i)), min_ns_, max_ns_);
  }
  return max_ns_;
}

}  // namespace cairn::srpc::tools
