#include "replica/service.h"

#include <algorithm>
#include <utility>

#include "engine/types.h"
#include "replica/kv_frames.h"
#include "replica/small_or_data.h"

namespace cairn::replica {
namespace {

constexpr size_t kMaxScanItems = 10'000;
constexpr size_t kMaxScanBytes = size_t{4} << 20;
constexpr size_t kMaxListed = 65'536;
// Conditions may repeat records of the size of a whole batch.
constexpr size_t kMaxBatchData = 4 * kv::kMaxBatchBytes;

constexpr srpc::MethodOptions kNoPayload{.max_data = 0};

Error reserved_not_zero() { return {Errc::invalid_argument, "a reserved field is not zero"}; }

}  // namespace

void Service::register_with(srpc::Server& server) {
  using namespace methods;
  server.register_method<ChunkWrite>(*this, &Service::chunk_write, {.max_data = engine::kChunkBytes});
  server.register_method<ChunkRead>(*this, &Service::chunk_read, kNoPayload);
  server.register_method<ChunkDelete>(*this, &Service::chunk_delete, kNoPayload);
  server.register_method<ChunkList>(*this, &Service::chunk_list, {.max_concurrent = 16, .max_data = 0});
  server.register_method<KvGet>(*this, &Service::kv_get, {.max_data = 0, .max_tail = kMaxKeyBytes});
  server.register_method<KvScan>(*this, &Service::kv_scan,
                                 {.max_concurrent = 256, .max_data = 0, .max_tail = 2 * kMaxKeyBytes});
  server.register_method<KvBatch>(*this, &Service::kv_batch, {.max_data = kMaxBatchData, .max_tail = kSmallBytes});
  server.register_method<LeaseRenew>(*this, &Service::lease_renew, kNoPayload);
  server.register_method<LeaseCheck>(*this, &Service::lease_check, {.max_data = 0, .max_tail = kMaxTail});
  server.register_method<GroupStatusMethod>(*this, &Service::group_status, kNoPayload);
}

Result<Group*> Service::find(srpc::CallContext& context, Le32 group) {
  Result<Group*> found = host_.find(engine::GroupId(group), context.map_epoch);
  if (found.code() == Errc::stale_epoch) {
    const std::string bytes = host_.map().encode();
    // Best effort: without it the client asks the map's store.
    if (bytes.size() <= mem::kMaxBlock) {
      if (Result<mem::Buf> buf = context.pool.try_alloc(bytes.size(), mem::Purpose::internal)) {
        // cairn-allow(memcpy): the cluster map
        std::memcpy(buf->writable(), bytes.data(), bytes.size());
        context.error_data = mem::BufChain(*std::move(buf));
      }
    }
  }
  return found;
}

Result<Group*> Service::find_for_chunk(srpc::CallContext& context, Le32 group, const Id128& chunk) {
  TRY(Group * found, find(context, group));
  // A chunk under a wrong group would never be found again.
  if (host_.map().group_of_chunk(chunk) != found->id()) {
    return Error(Errc::invalid_argument, "the chunk belongs to another group");
  }
  return found;
}

Service::Reply<methods::ChunkWrite> Service::chunk_write(srpc::CallContext& context,
                                                         Request<methods::ChunkWrite> request) {
  CO_TRY(Group * group, find_for_chunk(context, request.meta.group, request.meta.chunk));
  CO_TRY(co_await group->chunk_write(request.meta.chunk, request.meta.offset, std::move(request.data), context.cancel));
  co_return srpc::Message<srpc::None>{};
}

Service::Reply<methods::ChunkRead> Service::chunk_read(srpc::CallContext& context,
                                                       Request<methods::ChunkRead> request) {
  CO_TRY(Group * group, find_for_chunk(context, request.meta.group, request.meta.chunk));
  const uint32_t length = std::min<uint32_t>(request.meta.length, engine::kChunkBytes);
  srpc::Message<srpc::None> reply;
  // By reference the caller keeps what was read for as long as its own client takes.
  const auto purpose = context.by_reference ? mem::Purpose::client : mem::Purpose::request;
  CO_TRY(reply.data,
         co_await group->chunk_read(request.meta.chunk, request.meta.offset, length, context.cancel, purpose));
  co_return reply;
}

Service::Reply<methods::ChunkDelete> Service::chunk_delete(srpc::CallContext& context,
                                                           Request<methods::ChunkDelete> request) {
  CO_TRY(Group * group, find_for_chunk(context, request.meta.group, request.meta.chunk));
  CO_TRY(co_await group->chunk_delete(request.meta.chunk, context.cancel));
  co_return srpc::Message<srpc::None>{};
}

Service::Reply<methods::ChunkList> Service::chunk_list(srpc::CallContext& context,
                                                       Request<methods::ChunkList> request) {
  CO_TRY(Group * group, find(context, request.meta.group));
  const size_t limit = std::min<size_t>(request.meta.limit, kMaxListed);
  CO_TRY(const auto ids, co_await group->chunk_list(request.meta.after, limit, context.cancel));
  srpc::Message<methods::CountReply> reply;
  reply.meta.count = static_cast<uint32_t>(ids.size());
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id128));
  CO_TRY(reply.data, co_await metadata_chain(&context.pool, bytes, mem::Purpose::request, context.cancel));
  co_return reply;
}

Service::Reply<methods::KvGet> Service::kv_get(srpc::CallContext& context, Request<methods::KvGet> request) {
  CO_TRY(Group * group, find(context, request.meta.group));
  CO_TRY(auto value, co_await group->kv_get(std::move(request.tail), context.cancel));
  srpc::Message<methods::KvValueReply> reply;
  reply.meta.found = value ? 1 : 0;
  if (value) {
    reply.meta.bytes = static_cast<uint32_t>(value->size());
    CO_TRY(co_await put_small_or_data(&reply, &context.pool, *std::move(value), mem::Purpose::request, context.cancel));
  }
  co_return reply;
}

Service::Reply<methods::KvScan> Service::kv_scan(srpc::CallContext& context, Request<methods::KvScan> request) {
  if (request.meta.reserved != 0 || request.meta.keys_only > 1) co_return reserved_not_zero();
  if (request.meta.begin_bytes > request.tail.size()) {
    co_return Error(Errc::invalid_argument, "the range's begin is longer than the message");
  }
  CO_TRY(Group * group, find(context, request.meta.group));
  kv::ScanOptions options{.begin = request.tail.substr(0, request.meta.begin_bytes),
                          .end = request.tail.substr(request.meta.begin_bytes),
                          .max_items = std::clamp<size_t>(request.meta.max_items, 1, kMaxScanItems),
                          .max_bytes = std::min<size_t>(request.meta.max_bytes, kMaxScanBytes),
                          .keys_only = request.meta.keys_only != 0};
  CO_TRY(const kv::ScanResult result, co_await group->kv_scan(std::move(options), context.cancel));
  srpc::Message<methods::KvItemsReply> reply;
  reply.meta.count = static_cast<uint32_t>(result.items.size());
  reply.meta.more = result.more ? 1 : 0;
  std::string items = encode_items(result);
  reply.meta.bytes = static_cast<uint32_t>(items.size());
  CO_TRY(co_await put_small_or_data(&reply, &context.pool, std::move(items), mem::Purpose::request, context.cancel));
  co_return reply;
}

Service::Reply<methods::KvBatch> Service::kv_batch(srpc::CallContext& context, Request<methods::KvBatch> request) {
  if (request.meta.purpose > 1 || !std::ranges::all_of(request.meta.reserved, [](uint8_t b) { return b == 0; })) {
    co_return reserved_not_zero();
  }
  CO_TRY(Group * group, find(context, request.meta.group));
  const auto purpose = request.meta.purpose == 0 ? mem::Purpose::client : mem::Purpose::internal;
  const std::string bytes = take_small_or_data(request);
  CO_TRY(kv::Batch batch, decode_batch_frames(bytes, request.meta.conditions, request.meta.mutations));
  CO_TRY(co_await group->kv_batch(std::move(batch), purpose, context.cancel));
  co_return srpc::Message<srpc::None>{};
}

Service::Reply<methods::LeaseRenew> Service::lease_renew(srpc::CallContext& context,
                                                         Request<methods::LeaseRenew> request) {
  CO_TRY(Group * group, find(context, request.meta.group));
  CO_TRY(LeaseTable * leases, group->leases());
  CO_TRY(leases->renew(request.meta.what, milliseconds(request.meta.milliseconds)));
  co_return srpc::Message<srpc::None>{};
}

Service::Reply<methods::LeaseCheck> Service::lease_check(srpc::CallContext& context,
                                                         Request<methods::LeaseCheck> request) {
  CO_TRY(Group * group, find(context, request.meta.group));
  CO_TRY(const LeaseTable* leases, group->leases());
  if (request.tail.size() % sizeof(Id128) != 0) co_return Error(Errc::invalid_argument, "part of an id");
  srpc::Message<methods::LeaseMemoryReply> reply;
  reply.meta.milliseconds = static_cast<uint64_t>(leases->memory().ms());
  for (size_t at = 0; at < request.tail.size(); at += sizeof(Id128)) {
    Id128 id;
    // cairn-allow(memcpy): an identifier
    std::memcpy(&id, request.tail.data() + at, sizeof id);
    reply.tail += leases->held(id) ? '\x01' : '\0';
  }
  co_return reply;
}

Service::Reply<methods::GroupStatusMethod> Service::group_status(srpc::CallContext& context,
                                                                 Request<methods::GroupStatusMethod> request) {
  CO_TRY(const Group* group, find(context, request.meta.group));
  const GroupStatus status = group->status();
  srpc::Message<methods::StatusReply> reply;
  reply.meta.term = status.term.value;
  reply.meta.last_index = status.last_index.value;
  reply.meta.applied_index = status.applied_index.value;
  reply.meta.leads = status.leads ? 1 : 0;
  reply.meta.health = static_cast<uint16_t>(status.health.code());
  if (!status.health) reply.tail = status.health.error().message().substr(0, methods::kSmallBytes);
  co_return reply;
}

}  // namespace cairn::replica
