// KvModel: what a key-value machine's state must be at every index of its log.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kv/kv_machine.h"
#include "kv/ordered_store.h"

namespace cairn::scenarios {

class KvModel {
 public:
  // `key_overhead`: bytes that the store below counts for each key besides the key itself (a view's prefix).
  explicit KvModel(size_t key_overhead) : key_overhead_(key_overhead) {}

  // The log's next entry. Returns its index, from 1.
  uint64_t append(const std::vector<kv::Mutation>& mutations);
  // Entries above `index` never happened.
  void cut(uint64_t index);
  uint64_t last() const { return last_; }

  std::optional<std::string> get(const std::string& key, uint64_t at) const;
  kv::ScanResult scan(const kv::ScanOptions& options, uint64_t at) const;
  std::optional<size_t> first_failed(const std::vector<kv::Condition>& conditions, uint64_t at) const;

 private:
  struct Version {
    uint64_t index;
    std::optional<std::string> value;
  };
  size_t key_overhead_;
  uint64_t last_ = 0;
  std::map<std::string, std::vector<Version>> keys_;  // versions ascend by index; none is empty
};

bool same_items(const kv::ScanResult& a, const kv::ScanResult& b);

}  // namespace cairn::scenarios
