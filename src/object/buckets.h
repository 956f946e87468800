// Buckets: the directory in the system group, each bucket's own state in its group, and a cache of names.
//
// Creating and removing touch two groups, so each is a sequence of steps of which one decides, and what a crash leaves
// half done is finished by whoever meets it:
//
//   create   put b/ in the bucket's group, then (decides) B/ in the system group.
//            Left behind by a crash: a b/ that no B/ names. Harmless; the sweep deletes it.
//   remove   freeze the bucket, see that it is empty, then (decides) delete b/ and queue what is left of uploads, then
//            delete B/. Left behind: a B/ without b/. Whoever meets it deletes it.
//
// A removed bucket's name may come back with another id. Writers notice by the condition on b/; readers that find
// nothing under a cached id ask again before they say so.
#pragma once

#include <map>
#include <string>

#include "object/core.h"
#include "object/records.h"

namespace cairn::object {

class Buckets {
 public:
  explicit Buckets(Core& core) : core_(core) {}

  struct Ref {
    Id128 id;
    engine::GroupId group;
  };
  // From the cache, or as fresh(). not_found "bucket".
  Task<Result<Ref>> resolve(std::string name, CallContext context);
  // As the system group has it now; true when `ref` was outdated and has been replaced.
  Task<Result<bool>> refresh(std::string name, Ref& ref, CallContext context);
  void forget(const std::string& name) { cache_.erase(name); }

  Task<Result<BucketInfo>> create(std::string name, std::string owner, CallContext context);
  Task<Result<BucketInfo>> head(std::string name, CallContext context);
  Task<Result<void>> remove(std::string name, CallContext context);
  Task<Result<std::vector<BucketInfo>>> list(CallContext context);

 private:
  struct Cached {
    Ref ref;
    Time until;
  };
  struct Found {
    BucketRecord record;
    std::string bytes;
  };
  Task<Result<std::optional<Found>>> find(std::string name, CallContext context);
  // Also sees that the bucket's own state is there, and removes the entry if it isn't.
  Task<Result<std::optional<Found>>> find_whole(std::string name, CallContext context);
  Task<Result<void>> drop_entry(std::string name, std::string bytes, CallContext context);
  Task<Result<bool>> is_empty(Ref ref, CallContext context);
  Ref ref_of(const BucketRecord& record) const { return {record.id, core_.client.group_of_key(record.id)}; }
  void remember(const std::string& name, Ref ref);

  Core& core_;
  std::map<std::string, Cached> cache_;
};

}  // namespace cairn::object
