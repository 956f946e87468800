// Store: the ObjectStore over a client::Client.
//
//   object::Store store({.loop = loop, .client = client, .registry = registry, .wall = wall},
//                       {.owner = node_id, .life = Id128::random(rng)});
//   ...
//   co_await store.close();   // when its writers and readers are gone, before it and the client are destroyed
//
// Making visible is always one conditional batch on the bucket's group, so any number of Stores may work side by side.
// What they leave behind (replaced and deleted data, finished uploads) is removed by a Janitor (janitor.h), of which
// the nodes that hold the groups run one for each group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "object/access_keys.h"
#include "object/buckets.h"
#include "object/core.h"
#include "object/object_store.h"
#include "object/objects.h"
#include "object/session.h"
#include "object/uploads.h"

namespace cairn::object {

// A batch that completes an upload holds this many parts with room to spare.
inline constexpr uint32_t kMaxParts = 10'000;

class Store final : public ObjectStore {
 public:
  // All outlive the store.
  struct Context {
    Loop& loop;
    client::Client& client;
    Registry& registry;
    const WallClock& wall;
  };
  Store(Context context, Identity identity);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  // Closed before.
  ~Store() override = default;

  // Ends background work (what it had to delete is left to a sweep) and the write session.
  Task<void> close();

  Task<Result<BucketInfo>> create_bucket(std::string name, std::string owner, CallContext context) override;
  Task<Result<BucketInfo>> head_bucket(std::string name, CallContext context) override;
  Task<Result<void>> remove_bucket(std::string name, CallContext context) override;
  Task<Result<std::vector<BucketInfo>>> list_buckets(CallContext context) override;

  Task<Result<std::unique_ptr<Writer>>> put(std::string bucket, std::string key, CallContext context) override;
  Task<Result<ObjectInfo>> head(std::string bucket, std::string key, CallContext context) override;
  Task<Result<std::unique_ptr<Reader>>> open(std::string bucket, std::string key, RangeChooser* chooser,
                                             CallContext context) override;
  Task<Result<void>> remove(std::string bucket, std::string key, WriteConditions conditions,
                            CallContext context) override;
  Task<Result<ListResult>> list(std::string bucket, ListQuery query, CallContext context) override;

  Task<Result<std::string>> create_upload(std::string bucket, std::string key, UploadOptions options,
                                          CallContext context) override;
  Task<Result<UploadOptions>> head_upload(std::string bucket, std::string key, std::string upload_id,
                                          CallContext context) override;
  Task<Result<std::unique_ptr<Writer>>> put_part(std::string bucket, std::string key, std::string upload_id,
                                                 uint32_t number, CallContext context) override;
  Task<Result<PartList>> list_parts(std::string bucket, std::string key, std::string upload_id, uint32_t after,
                                    size_t limit, CallContext context) override;
  Task<Result<ObjectInfo>> complete_upload(std::string bucket, std::string key, std::string upload_id,
                                           Completion completion, CallContext context) override;
  Task<Result<void>> abort_upload(std::string bucket, std::string key, std::string upload_id,
                                  CallContext context) override;
  Task<Result<UploadList>> list_uploads(std::string bucket, UploadQuery query, CallContext context) override;

  Task<Result<void>> put_access_key(AccessKey key, CallContext context) override;
  Task<Result<AccessKey>> get_access_key(std::string access_key, CallContext context) override;
  Task<Result<void>> remove_access_key(std::string access_key, CallContext context) override;
  Task<Result<std::vector<AccessKey>>> list_access_keys(CallContext context) override;

 private:
  Metrics metrics_;
  Scope background_;
  Core core_;
  Buckets buckets_;
  Session session_;
  Objects objects_;
  Uploads uploads_;
  AccessKeys access_keys_;
};

}  // namespace cairn::object
