#include "scenarios/srpc_world.h"

#include <algorithm>
#include <utility>

#include "engine/types.h"
#include "scenarios/page_pattern.h"

namespace cairn::scenarios {
namespace {

// Cuts `bytes`, which begin `at` bytes into a payload, where the payload's pages end:
// function(piece, number of the page, where in the page the piece begins).
template <typename Bytes, typename Function>
void for_each_page(Bytes bytes, size_t at, Function function) {
  while (!bytes.empty()) {
    const size_t offset = at % engine::kPageBytes;
    const size_t n = std::min(bytes.size(), engine::kPageBytes - offset);
    function(bytes.first(n), static_cast<uint32_t>(at / engine::kPageBytes), offset);
    bytes = bytes.subspan(n);
    at += n;
  }
}

}  // namespace

Task<Result<mem::BufChain>> payload_of(mem::Pool* pool, uint64_t number, size_t bytes, CancelToken cancel) {
  CO_TRY(auto data, co_await pool->alloc_chain(bytes, mem::Purpose::client, cancel));
  size_t at = 0;
  for (const mem::Buf& buf : data.slices()) {
    const std::span to(const_cast<std::byte*>(buf.data()), buf.size());
    for_each_page(to, at, [&](std::span<std::byte> piece, uint32_t page, size_t offset) {
      ASSERT(offset == 0);  // blocks of memory are whole pages
      fill_page(piece, number, page);
    });
    at += buf.size();
  }
  co_return data;
}

bool is_payload_of(const mem::BufChain& data, uint64_t number) {
  size_t at = 0;
  bool right = true;
  const PageVersion wanted{.version = number, .valid = engine::kPageBytes};
  data.for_each([&](std::span<const std::byte> bytes) {
    for_each_page(bytes, at, [&](std::span<const std::byte> piece, uint32_t page, size_t offset) {
      right = right && page_matches(piece, static_cast<uint32_t>(offset), wanted, page);
    });
    at += bytes.size();
  });
  return right;
}

SrpcPlan SrpcPlan::draw(Rng& rng, Rng& keys, Rng& moves) {
  SrpcPlan plan;
  plan.small_server_memory = rng.chance(1, 3);
  plan.small_buffers = rng.chance(1, 3);
  plan.few_credits = rng.chance(1, 3);
  plan.losses = rng.chance(1, 2);
  plan.cuts = rng.chance(1, 3);
  plan.kills = rng.chance(1, 3);
  plan.power_losses = rng.chance(1, 4);
  plan.drains = rng.chance(1, 3);
  plan.memory_hogs = rng.chance(1, 4);
  plan.busy_callers = rng.chance(1, 16);
  plan.keys = keys.chance(1, 3);
  plan.key_changes = plan.keys && keys.chance(2, 3);
  plan.one_sided = moves.chance(1, 2);
  return plan;
}

std::string SrpcPlan::to_string() const {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (on) text += text.empty() ? name : std::string(" ") + name;
  };
  add(small_server_memory, "small_server_memory");
  add(small_buffers, "small_buffers");
  add(few_credits, "few_credits");
  add(losses, "losses");
  add(cuts, "cuts");
  add(kills, "kills");
  add(power_losses, "power_losses");
  add(drains, "drains");
  add(memory_hogs, "memory_hogs");
  add(busy_callers, "busy_callers");
  add(keys, "keys");
  add(key_changes, "key_changes");
  add(one_sided, "one_sided");
  return text.empty() ? "no faults" : text;
}

SimServer::SimServer(Simulator& sim, Net& net, Scope& scope, std::span<std::byte> memory, Ledger& ledger,
                     bool few_credits, bool lives_differ, const std::optional<srpc::KeyRing>& keys)
    : net_(net),
      loop_(sim),
      pool_(loop_, registry_, memory, memory.size() / 4),
      node_(net.add_node(loop_, pool_, scope)),
      ledger_(ledger),
      few_credits_(few_credits),
      lives_differ_(lives_differ),
      keys_(keys) {
  start();
}

SimServer::~SimServer() { ASSERT(server_ == nullptr); }

void SimServer::start() {
  ASSERT(server_ == nullptr);
  registries_.push_back(std::make_unique<Registry>());
  srpc::ServerOptions options;
  options.server_id = Id128{{1, static_cast<uint8_t>(lives_differ_ ? registries_.size() : 0)}};
  options.hello_timeout = seconds(1);
  options.idle_timeout = seconds(2);
  options.slow_reader_timeout = seconds(2);
  options.keys = keys_ ? &*keys_ : nullptr;
  if (few_credits_) {
    options.credits = 3;
    options.max_calls = 5;
    options.byte_credits = 256 * 1024;
    options.max_data = 256 * 1024;
    options.max_unsent_bytes = 128 * 1024;
  }
  server_ = std::make_unique<srpc::Server>(loop_, *registries_.back(), pool_, options);
  server_->register_method<Work>(*this, &SimServer::work, {.max_concurrent = 40});
  server_->register_method<RepeatableWork>(*this, &SimServer::work, {.max_concurrent = 40});
  server_->register_method<SequencedWork>(*this, &SimServer::work, {.max_concurrent = 40});
  net_.listen(node_, server_.get());
}

Task<void> SimServer::stop(Stop how) {
  stopping_ = true;
  net_.listen(node_, nullptr);
  if (how == Stop::power_loss) net_.silence(node_);
  if (how == Stop::kill) net_.break_connections(node_);
  co_await server_->drain(loop_.now() + (how == Stop::drain ? milliseconds(300) : Duration{}));
  server_.reset();
  stopping_ = false;
}

Task<Result<srpc::Message<WorkBody>>> SimServer::work(srpc::CallContext& context, srpc::Message<WorkBody> request) {
  const uint64_t number = request.meta.number;
  ledger_.execute(number);
  if (!is_payload_of(request.data, number)) co_return Error(Errc::corrupt, "the request's payload is another call's");
  // From here on the payload goes its own way, as it would to a disk.
  request.data.clear();
  if (request.meta.delay_us > 0) {
    CO_TRY(co_await context.loop.sleep(microseconds(request.meta.delay_us), context.cancel));
  }
  CO_TRY(auto data, co_await payload_of(&context.pool, number, request.meta.bytes, context.cancel));
  co_return srpc::Message<WorkBody>{.meta = request.meta, .data = std::move(data)};
}

SimClient::SimClient(Simulator& sim, Net& net, Scope& scope, std::span<std::byte> memory,
                     const std::vector<std::unique_ptr<SimServer>>& servers, const std::optional<srpc::KeyRing>& keys)
    : loop_(sim),
      keys_(keys),
      pool_(loop_, registry_, memory, memory.size() / 4),
      metrics_(registry_),
      node_(net.add_node(loop_, pool_, scope)) {
  for (const auto& server : servers) {
    srpc::ChannelOptions options;
    options.connect_timeout = milliseconds(500);
    options.backoff_min = milliseconds(1);
    options.backoff_max = milliseconds(100);
    options.keepalive = milliseconds(300);
    options.silence_timeout = seconds(1);
    options.keys = keys_ ? &*keys_ : nullptr;
    channels.push_back(std::make_unique<srpc::Channel>(loop_, metrics_, net.connector(node_, server->node()), options));
  }
}

Task<void> SimClient::close() {
  for (auto& channel : channels) co_await channel->close();
}

}  // namespace cairn::scenarios
