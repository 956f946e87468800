#include "scenarios/object_model.h"

#include <algorithm>
#include <numeric>

namespace cairn::scenarios {

uint64_t ObjectContent::size() const {
  return std::accumulate(pieces.begin(), pieces.end(), uint64_t{0},
                         [](uint64_t sum, const Piece& piece) { return sum + piece.size; });
}

std::vector<uint64_t>& ObjectModel::versions(const std::string& key) {
  auto& found = keys_[key];
  if (found.empty()) found.push_back(0);
  return found;
}

void ObjectModel::tell_lookers(const std::string& key) {
  for (Look& look : looks_) {
    if (look.key != key) continue;
    for (const uint64_t version : versions(key)) {
      if (std::ranges::find(look.versions, version) == look.versions.end()) look.versions.push_back(version);
    }
  }
}

void ObjectModel::begin_change(const std::string& key, uint64_t version) {
  versions(key).push_back(version);
  tell_lookers(key);
}

void ObjectModel::acknowledge(const std::string& key, uint64_t version) { versions(key) = {version}; }

void ObjectModel::refuse(const std::string& key, uint64_t version) {
  auto& all = versions(key);
  const auto last = std::find(all.rbegin(), all.rend(), version);
  if (last != all.rend()) all.erase(std::next(last).base());
}

void ObjectModel::settle(const std::string& key, uint64_t version) { versions(key) = {version}; }

bool ObjectModel::may_be(const std::string& key, uint64_t version) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return version == 0;
  return std::ranges::find(found->second, version) != found->second.end();
}

ObjectModel::LookHandle ObjectModel::begin_look(const std::string& key) {
  return looks_.insert(looks_.end(), Look{.key = key, .versions = versions(key)});
}

}  // namespace cairn::scenarios
