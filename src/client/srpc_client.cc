#include "client/srpc_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "reactor/deadline.h"
#include "replica/kv_frames.h"
#include "replica/methods.h"
#include "replica/small_or_data.h"

namespace cairn::client {

namespace methods = replica::methods;
static_assert(Client::kMaxKeyBytes == methods::kMaxKeyBytes);

struct SrpcClient::Metrics {
  explicit Metrics(Registry& registry)
      : retries(registry.counter("client_retries_total", "Calls sent again: refused, or their connection was lost")),
        map_updates(registry.counter("client_map_updates_total", "Newer cluster maps taken")) {}

  Counter& retries;
  Counter& map_updates;
};

// Whether a failed call is tried again, and when.
class SrpcClient::Retry {
 public:
  Retry(Loop& loop, Repeat repeat, uint32_t lost_tries) : loop_(loop), repeat_(repeat), lost_left_(lost_tries - 1) {}

  bool wanted(Errc code) {
    switch (code) {
      case Errc::busy:
      case Errc::unavailable:
      case Errc::stale_epoch:
        return true;
      case Errc::closed:
        if (repeat_ == Repeat::when_refused || lost_left_ == 0) return false;
        --lost_left_;
        return true;
      default:
        return false;
    }
  }
  // Half of it is chance, so that those who were refused together don't come back together.
  Duration pause(Duration server_asks) {
    const Duration base = std::max(server_asks, pause_);
    pause_ = std::min(pause_ * 2, milliseconds(200));
    return nanoseconds(base.ns / 2 + static_cast<int64_t>(loop_.rng().below(static_cast<uint64_t>(base.ns / 2) + 1)));
  }

 private:
  Loop& loop_;
  Repeat repeat_;
  uint32_t lost_left_;
  Duration pause_ = milliseconds(1);
};

SrpcClient::SrpcClient(Context context, control::ClusterMap map, Options options)
    : context_(context),
      map_(std::move(map)),
      options_(options),
      metrics_(std::make_unique<Metrics>(context.registry)),
      channel_metrics_(context.registry) {
  ASSERT(map_.group_count() > 0);
  ASSERT(options_.lost_tries > 0);
}

SrpcClient::~SrpcClient() { ASSERT(links_.empty() && retired_.empty()); }

Task<void> SrpcClient::close() {
  closing_ = true;
  for (auto& [key, link] : links_) co_await link.channel->close();
  for (auto& channel : retired_) co_await channel->close();
  links_.clear();
  retired_.clear();
}

void SrpcClient::set_map(control::ClusterMap map) {
  if (map.epoch <= map_.epoch) return;
  ASSERT(map.group_count() == map_.group_count());  // fixed when the cluster was formed
  map_ = std::move(map);
  metrics_->map_updates.add();
}

void SrpcClient::take_map(const mem::BufChain& bytes) {
  if (bytes.empty()) return;
  Result<control::ClusterMap> map = control::ClusterMap::decode(replica::metadata_bytes(bytes));
  if (!map || map->cluster != map_.cluster || map->group_count() != map_.group_count()) {
    LOG(warn, "a server sent a cluster map that can't be used: {}",
        map ? std::string("it is of another cluster") : map.error().to_string());
    return;
  }
  set_map(*std::move(map));
}

std::vector<engine::GroupId> SrpcClient::all_groups() const {
  std::vector<engine::GroupId> all;
  all.reserve(map_.group_count());
  for (uint32_t group = 0; group < map_.group_count(); ++group) all.emplace_back(group);
  return all;
}

Result<srpc::Channel*> SrpcClient::channel_to(engine::GroupId group) {
  if (closing_) return Error(Errc::closed, "the client is closed");
  const auto location = map_.locate(group);
  if (!location) return Error(Errc::invalid_argument, fmt::format("there is no group {}", group.value));
  const control::NodeEntry& node = *map_.find_node(location->node);
  Link& link = links_[{location->node, location->poll_group}];
  if (link.channel != nullptr && link.address != node.address) retired_.push_back(std::move(link.channel));
  if (link.channel == nullptr) {
    link.address = node.address;
    link.channel = std::make_unique<srpc::Channel>(
        context_.loop, channel_metrics_, context_.connectors.make(node, location->poll_group),
        srpc::ChannelOptions{
            .poll_group = location->poll_group, .client_id = context_.client_id, .keys = options_.keys});
  }
  return link.channel.get();
}

template <srpc::Method M>
Task<Result<srpc::Message<typename M::Reply>>> SrpcClient::call(engine::GroupId group,
                                                                srpc::Message<typename M::Request> request,
                                                                Repeat repeat, CallContext context,
                                                                size_t reply_bytes) {
  request.meta.group = group.value;
  const Time deadline = std::min(context.deadline, context_.loop.now() + options_.call_timeout);
  Retry retry(context_.loop, repeat, options_.lost_tries);
  for (;;) {
    srpc::ErrorDetail detail;
    CO_TRY(srpc::Channel * channel, channel_to(group));
    // Taken before it is asked for: the answer of a server that had to wait for our memory would hold up all answers
    // behind it, and with them those who wait for them and hold that memory.
    mem::BufChain memory;
    if (reply_bytes > 0 && !channel->by_reference()) {
      Deadline until(context_.loop, deadline, context.cancel);
      CO_TRY(memory, co_await context_.pool.alloc_chain(reply_bytes, mem::Purpose::client, until.token()));
      CO_TRY(channel, channel_to(group));  // after the wait: it may be another now
    }
    // A copy holds payload by reference and costs little; it is what a second try sends.
    auto reply =
        co_await channel->call<M>(srpc::Message<typename M::Request>(request), {.deadline = deadline,
                                                                                .cancel = context.cancel,
                                                                                .map_epoch = map_.epoch,
                                                                                .reply_memory = std::move(memory),
                                                                                .trace = context.trace,
                                                                                .detail = &detail});
    if (reply || !retry.wanted(reply.code())) co_return reply;
    if (reply.code() == Errc::stale_epoch) take_map(detail.data);
    const Duration pause = retry.pause(detail.retry_after);
    // What the server said is worth more than that there was no time to ask again.
    if (context_.loop.now() + pause >= deadline || closing_) co_return reply;
    metrics_->retries.add();
    CO_TRY(co_await context_.loop.sleep(pause, context.cancel));
  }
}

Task<Result<void>> SrpcClient::chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data,
                                           CallContext context) {
  srpc::Message<methods::ChunkWriteRequest> request;
  request.meta.chunk = chunk;
  request.meta.offset = offset;
  request.data = std::move(data);
  CO_TRY(co_await call<methods::ChunkWrite>(group_of_chunk(chunk), std::move(request), Repeat::when_refused, context));
  co_return Result<void>{};
}

Task<Result<mem::BufChain>> SrpcClient::chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length,
                                                   CallContext context) {
  srpc::Message<methods::ChunkReadRequest> request;
  request.meta.chunk = chunk;
  request.meta.offset = offset;
  request.meta.length = length;
  CO_TRY(auto reply,
         co_await call<methods::ChunkRead>(group_of_chunk(chunk), std::move(request), Repeat::always, context, length));
  if (reply.data.size() > length) co_return Error(Errc::protocol_error, "chunk_read: more bytes than asked for");
  co_return std::move(reply.data);
}

Task<Result<void>> SrpcClient::chunk_delete(engine::ChunkId chunk, CallContext context) {
  srpc::Message<methods::ChunkDeleteRequest> request;
  request.meta.chunk = chunk;
  CO_TRY(co_await call<methods::ChunkDelete>(group_of_chunk(chunk), std::move(request), Repeat::always, context));
  co_return Result<void>{};
}

Task<Result<std::vector<engine::ChunkId>>> SrpcClient::chunk_list(engine::GroupId group, engine::ChunkId after,
                                                                  size_t limit, CallContext context) {
  srpc::Message<methods::ChunkListRequest> request;
  request.meta.after = after;
  request.meta.limit = static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX));
  CO_TRY(auto reply, co_await call<methods::ChunkList>(group, std::move(request), Repeat::always, context));
  if (reply.data.size() != uint64_t{reply.meta.count} * sizeof(Id128)) {
    co_return Error(Errc::protocol_error, "chunk_list: the count doesn't match the data");
  }
  std::vector<engine::ChunkId> ids(reply.meta.count);
  reply.data.copy_metadata_to(std::as_writable_bytes(std::span(ids)));
  co_return ids;
}

Task<Result<std::optional<std::string>>> SrpcClient::kv_get(engine::GroupId group, std::string key,
                                                            CallContext context) {
  if (key.size() > kMaxKeyBytes) co_return Error(Errc::too_large, "a key over the limit");
  srpc::Message<methods::GroupOnly> request;
  request.tail = std::move(key);
  CO_TRY(auto reply, co_await call<methods::KvGet>(group, std::move(request), Repeat::always, context));
  if (reply.meta.found == 0) co_return std::optional<std::string>();
  const size_t bytes = reply.meta.bytes;
  std::string value = replica::take_small_or_data(reply);
  if (value.size() != bytes) co_return Error(Errc::protocol_error, "kv_get: the length doesn't match");
  co_return std::optional<std::string>(std::move(value));
}

Task<Result<kv::ScanResult>> SrpcClient::kv_scan(engine::GroupId group, kv::ScanOptions options, CallContext context) {
  if (options.begin.size() > kMaxKeyBytes || options.end.size() > kMaxKeyBytes) {
    co_return Error(Errc::too_large, "a key over the limit");
  }
  srpc::Message<methods::KvScanRequest> request;
  request.meta.max_items = static_cast<uint32_t>(std::min<size_t>(options.max_items, UINT32_MAX));
  request.meta.max_bytes = static_cast<uint32_t>(std::min<size_t>(options.max_bytes, UINT32_MAX));
  request.meta.begin_bytes = static_cast<uint16_t>(options.begin.size());
  request.meta.keys_only = options.keys_only ? 1 : 0;
  request.tail = std::move(options.begin) + options.end;
  CO_TRY(auto reply, co_await call<methods::KvScan>(group, std::move(request), Repeat::always, context));
  const std::string bytes = replica::take_small_or_data(reply);
  if (bytes.size() != reply.meta.bytes) co_return Error(Errc::protocol_error, "kv_scan: the length doesn't match");
  CO_TRY(kv::ScanResult result, replica::decode_items(bytes, reply.meta.count));
  result.more = reply.meta.more != 0;
  // Callers go on behind the last item.
  if (result.more && result.items.empty()) co_return Error(Errc::protocol_error, "kv_scan: an empty page with more");
  co_return result;
}

Task<Result<void>> SrpcClient::kv_batch(engine::GroupId group, kv::Batch batch, mem::Purpose purpose,
                                        CallContext context) {
  CO_TRY(std::string bytes, replica::encode_batch_frames(batch));
  srpc::Message<methods::KvBatchRequest> request;
  request.meta.conditions = static_cast<uint32_t>(batch.conditions.size());
  request.meta.mutations = static_cast<uint32_t>(batch.mutations.size());
  request.meta.purpose = purpose == mem::Purpose::client ? 0 : 1;
  CO_TRY(co_await replica::put_small_or_data(&request, &context_.pool, std::move(bytes), purpose, context.cancel));
  CO_TRY(co_await call<methods::KvBatch>(group, std::move(request), Repeat::when_refused, context));
  co_return Result<void>{};
}

Task<Result<void>> SrpcClient::lease_renew(engine::GroupId group, Id128 what, Duration ttl, CallContext context) {
  srpc::Message<methods::LeaseRenewRequest> request;
  request.meta.what = what;
  request.meta.milliseconds = static_cast<uint32_t>(ttl.ms());
  CO_TRY(co_await call<methods::LeaseRenew>(group, std::move(request), Repeat::always, context));
  co_return Result<void>{};
}

Task<Result<Client::LeaseCheck>> SrpcClient::lease_check(engine::GroupId group, std::vector<Id128> what,
                                                         CallContext context) {
  LeaseCheck check{.held = {}, .memory = seconds(1'000'000'000)};
  for (size_t at = 0; at < what.size();) {
    const size_t count = std::min(what.size() - at, methods::LeaseCheck::kMaxIds);
    srpc::Message<methods::GroupOnly> request;
    request.tail.assign(reinterpret_cast<const char*>(&what[at]), count * sizeof(Id128));
    CO_TRY(auto reply, co_await call<methods::LeaseCheck>(group, std::move(request), Repeat::always, context));
    if (reply.tail.size() != count) co_return Error(Errc::protocol_error, "lease_check: the count doesn't match");
    for (const char held : reply.tail) check.held.push_back(held != '\0');
    const auto ms = static_cast<int64_t>(std::min<uint64_t>(reply.meta.milliseconds, INT64_MAX / 1'000'000));
    check.memory = std::min(check.memory, milliseconds(ms));
    at += count;
  }
  co_return check;
}

Task<Result<SrpcClient::GroupReport>> SrpcClient::group_status(engine::GroupId group, CallContext context) {
  CO_TRY(auto reply, co_await call<methods::GroupStatusMethod>(group, {}, Repeat::always, context));
  GroupReport report{.leads = reply.meta.leads != 0,
                     .term = reply.meta.term,
                     .last_index = reply.meta.last_index,
                     .applied_index = reply.meta.applied_index,
                     .health = {}};
  const Errc health = errc_from_wire(reply.meta.health);
  if (health != Errc::ok) report.health = Error(health, std::move(reply.tail));
  co_return report;
}

}  // namespace cairn::client
