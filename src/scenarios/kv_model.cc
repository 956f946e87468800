#include "scenarios/kv_model.h"

#include <algorithm>

namespace cairn::scenarios {

uint64_t KvModel::append(const std::vector<kv::Mutation>& mutations) {
  ++last_;
  for (const kv::Mutation& mutation : mutations) keys_[mutation.key].push_back({last_, mutation.value});
  return last_;
}

void KvModel::cut(uint64_t index) {
  last_ = std::min(last_, index);
  for (auto key = keys_.begin(); key != keys_.end();) {
    std::erase_if(key->second, [index](const Version& version) { return version.index > index; });
    key = key->second.empty() ? keys_.erase(key) : std::next(key);
  }
}

std::optional<std::string> KvModel::get(const std::string& key, uint64_t at) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  // The last version at or before `at`; of several in one entry, the last counts.
  const auto& versions = found->second;
  const auto after =
      std::upper_bound(versions.begin(), versions.end(), at, [](uint64_t i, const Version& v) { return i < v.index; });
  return after == versions.begin() ? std::nullopt : std::prev(after)->value;
}

kv::ScanResult KvModel::scan(const kv::ScanOptions& options, uint64_t at) const {
  kv::ScanResult result;
  size_t bytes = 0;
  for (auto key = keys_.lower_bound(options.begin); key != keys_.end(); ++key) {
    if (!options.end.empty() && key->first >= options.end) break;
    const auto value = get(key->first, at);
    if (!value) continue;
    const size_t size = key_overhead_ + key->first.size() + (options.keys_only ? 0 : value->size());
    if (!result.items.empty() && (result.items.size() >= options.max_items || bytes + size > options.max_bytes)) {
      result.more = true;
      break;
    }
    bytes += size;
    result.items.push_back({key->first, options.keys_only ? std::string() : *value});
  }
  return result;
}

std::optional<size_t> KvModel::first_failed(const std::vector<kv::Condition>& conditions, uint64_t at) const {
  for (size_t i = 0; i < conditions.size(); ++i) {
    const auto value = get(conditions[i].key, at);
    const bool holds = conditions[i].kind == kv::Condition::Kind::absent    ? !value
                       : conditions[i].kind == kv::Condition::Kind::present ? value.has_value()
                                                                            : value == conditions[i].value;
    if (!holds) return i;
  }
  return std::nullopt;
}

bool same_items(const kv::ScanResult& a, const kv::ScanResult& b) {
  return a.more == b.more && std::ranges::equal(a.items, b.items, [](const kv::KeyValue& x, const kv::KeyValue& y) {
           return x.key == y.key && x.value == y.value;
         });
}

}  // namespace cairn::scenarios
