// Service: the groups of one reactor as SRPC methods (methods.h).
#pragma once

#include "mem/pool.h"
#include "replica/group_host.h"
#include "replica/methods.h"
#include "srpc/server.h"

namespace cairn::replica {

class Service {
 public:
  // The host outlives the service, the service the server.
  explicit Service(GroupHost& host) : host_(host) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Before the server accepts anything.
  void register_with(srpc::Server& server);

 private:
  template <typename M>
  using Reply = Task<Result<srpc::Message<typename M::Reply>>>;
  template <typename M>
  using Request = srpc::Message<typename M::Request>;

  Reply<methods::ChunkWrite> chunk_write(srpc::CallContext& context, Request<methods::ChunkWrite> request);
  Reply<methods::ChunkRead> chunk_read(srpc::CallContext& context, Request<methods::ChunkRead> request);
  Reply<methods::ChunkDelete> chunk_delete(srpc::CallContext& context, Request<methods::ChunkDelete> request);
  Reply<methods::ChunkList> chunk_list(srpc::CallContext& context, Request<methods::ChunkList> request);
  Reply<methods::KvGet> kv_get(srpc::CallContext& context, Request<methods::KvGet> request);
  Reply<methods::KvScan> kv_scan(srpc::CallContext& context, Request<methods::KvScan> request);
  Reply<methods::KvBatch> kv_batch(srpc::CallContext& context, Request<methods::KvBatch> request);
  Reply<methods::LeaseRenew> lease_renew(srpc::CallContext& context, Request<methods::LeaseRenew> request);
  Reply<methods::LeaseCheck> lease_check(srpc::CallContext& context, Request<methods::LeaseCheck> request);
  Reply<methods::GroupStatusMethod> group_status(srpc::CallContext& context,
                                                 Request<methods::GroupStatusMethod> request);

  // Tells a client with an old map the new one.
  Result<Group*> find(srpc::CallContext& context, Le32 group);
  Result<Group*> find_for_chunk(srpc::CallContext& context, Le32 group, const Id128& chunk);

  GroupHost& host_;
};

}  // namespace cairn::replica
