#include "scenarios/srpc_world.h"

#include <utility>

namespace cairn::scenarios {
namespace {

std::byte byte_of(uint64_t number, size_t at) { return static_cast<std::byte>(number * 37 + at * 11 + (at >> 9)); }

}  // namespace

Task<Result<mem::BufChain>> payload_of(mem::Pool* pool, uint64_t number, size_t bytes, CancelToken cancel) {
  CO_TRY(auto data, co_await pool->alloc_chain(bytes, mem::Purpose::client, cancel));
  size_t at = 0;
  for (const mem::Buf& buf : data.slices()) {
    auto* to = const_cast<std::byte*>(buf.data());
    for (size_t i = 0; i < buf.size(); ++i) to[i] = byte_of(number, at++);
  }
  co_return data;
}

bool is_payload_of(const mem::BufChain& data, uint64_t number) {
  size_t at = 0;
  bool right = true;
  data.for_each([&](std::span<const std::byte> piece) {
    for (const std::byte b : piece) right = right && b == byte_of(number, at++);
  });
  return right;
}

SrpcPlan SrpcPlan::draw(Rng& rng) {
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
  return text.empty() ? "no faults" : text;
}

SimServer::SimServer(Simulator& sim, Net& net, Scope& scope, std::span<std::byte> memory, Ledger& ledger,
                     bool few_credits)
    : net_(net),
      loop_(sim),
      pool_(loop_, registry_, memory, memory.size() / 4),
      node_(net.add_node(loop_, pool_, scope)),
      ledger_(ledger),
      few_credits_(few_credits) {
  start();
}

SimServer::~SimServer() { ASSERT(server_ == nullptr); }

void SimServer::start() {
  ASSERT(server_ == nullptr);
  registries_.push_back(std::make_unique<Registry>());
  srpc::ServerOptions options;
  options.hello_timeout = seconds(1);
  options.idle_timeout = seconds(2);
  options.slow_reader_timeout = seconds(2);
  if (few_credits_) {
    options.credits = 3;
    options.max_calls = 5;
    options.byte_credits = 256 * 1024;
    options.max_data = 256 * 1024;
    options.max_unsent_bytes = 128 * 1024;
  }
  server_ = std::make_unique<srpc::Server>(loop_, *registries_.back(), pool_, options);
  server_->register_method<Work>(*this, &SimServer::work, {.max_concurrent = 40});
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
                     const std::vector<std::unique_ptr<SimServer>>& servers)
    : loop_(sim),
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
    channels.push_back(std::make_unique<srpc::Channel>(loop_, metrics_, net.connector(node_, server->node()), options));
  }
}

Task<void> SimClient::close() {
  for (auto& channel : channels) co_await channel->close();
}

}  // namespace cairn::scenarios
