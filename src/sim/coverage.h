// Coverage: which interesting cases the seeds of a run have reached, by name and count. A fault that never strikes and
// a recovery case that never comes up test nothing; the runner prints this so that it shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cairn::sim {

class Coverage {
 public:
  void hit(std::string_view name, uint64_t times = 1) {
    if (times == 0) return;
    const auto at = counts_.find(name);
    if (at == counts_.end()) {
      counts_.emplace(name, times);
    } else {
      at->second += times;
    }
  }
  // Makes the name appear even when it stays at zero.
  void expect(std::string_view name) { counts_.try_emplace(std::string(name), 0); }
  void add(const Coverage& other) {
    for (const auto& [name, times] : other.counts_) counts_[name] += times;
  }
  uint64_t count(std::string_view name) const {
    const auto at = counts_.find(name);
    return at == counts_.end() ? 0 : at->second;
  }
  const std::map<std::string, uint64_t, std::less<>>& counts() const { return counts_; }

 private:
  std::map<std::string, uint64_t, std::less<>> counts_;
};

}  // namespace cairn::sim
