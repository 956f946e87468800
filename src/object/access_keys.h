// AccessKeys: kept in the system group. Every request needs one, so found keys are cached for a few seconds; a removed
// key may work that much longer on other reactors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "object/core.h"

namespace cairn::object {

class AccessKeys {
 public:
  explicit AccessKeys(Core& core) : core_(core) {}

  Task<Result<void>> put(ObjectStore::AccessKey key, CallContext context);
  Task<Result<ObjectStore::AccessKey>> get(std::string access_key, CallContext context);
  Task<Result<void>> remove(std::string access_key, CallContext context);
  Task<Result<std::vector<ObjectStore::AccessKey>>> list(CallContext context);

 private:
  struct Cached {
    ObjectStore::AccessKey key;
    Time until;
  };

  Core& core_;
  std::map<std::string, Cached, std::less<>> cache_;
};

}  // namespace cairn::object
