// Objects: looking up, replacing and removing what stands under a key.
//
// A replacement is one batch in the bucket's group: the new record, the old one's data into the delete queue, under the
// condition that the old record is still the one that was read. Who loses the race reads again and, conditions of the
// user permitting, tries again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "object/buckets.h"
#include "object/commit.h"
#include "object/core.h"
#include "object/data_sink.h"
#include "object/records.h"
#include "object/session.h"

namespace cairn::object {

class Objects {
 public:
  Objects(Core& core, Buckets& buckets, Session& session) : core_(core), buckets_(buckets), session_(session) {}

  struct Found {
    Buckets::Ref bucket;
    ObjectRecord record;
    ObjectInfo info;
    std::optional<PartTable> parts;
    Time looked_up;  // not later than the moment the record was read
  };
  // not_found "bucket" or "key".
  Task<Result<Found>> find(std::string bucket, std::string key, CallContext context);

  struct Replacement {
    std::string key;
    ObjectRecord record;
    std::optional<std::string> table{};  // encoded, stands under record.data.id
    WriteConditions conditions{};
    DataSink* sink = nullptr;                    // flushed before the batch
    std::function<void(Commit&)> add = nullptr;  // more conditions and mutations
  };
  struct Outcome {
    // What failed when it isn't the record: clear_way() and try again.
    std::optional<Guard> blocked{};
    // Or: already_exists, condition_failed, not_found "key" (the user's conditions), busy (too many at once), the
    // client's. Neither: done.
    std::optional<Error> error{};
    // With an error: the replacement may have taken effect, or may still.
    bool unknown = false;
  };
  Task<Outcome> replace(Buckets::Ref bucket, const Replacement& replacement, CallContext context);
  // Does what is needed before a commit that `guard` stopped can be tried again; an error when it can't.
  Task<Result<void>> clear_way(Guard guard, std::string bucket, Buckets::Ref& ref, CallContext context);

  // Takes the data's ownership from the sink, or gives it up, as the outcome demands.
  Task<Result<ObjectInfo>> commit_put(std::string bucket, std::string key, DataSink& sink, Writer::Commit commit,
                                      CallContext context);
  Task<Result<void>> remove(std::string bucket, std::string key, WriteConditions conditions, CallContext context);

 private:
  struct Stored {
    std::optional<std::string> bytes;
    std::optional<ObjectRecord> record;
  };
  Task<Result<std::optional<Guard>>> replace_once(Buckets::Ref bucket, const Replacement& replacement,
                                                  const Stored& old, CallContext context);
  Task<Result<Stored>> read(Buckets::Ref bucket, std::string key, CallContext context);
  // Puts the record's data into the group's delete queue.
  void discard(Commit& commit, Buckets::Ref bucket, const ObjectRecord& record) const;

  Core& core_;
  Buckets& buckets_;
  Session& session_;
};

}  // namespace cairn::object
