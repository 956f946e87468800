#include "scenarios/srpc_scenario.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/srpc_world.h"

namespace cairn::scenarios {
namespace {

constexpr size_t kServers = 2;
constexpr size_t kClients = 3;
constexpr Duration kDuration = milliseconds(1500);
// What may pass between a deadline and the end of its call: rounds of a loop.
constexpr Duration kSlack = milliseconds(1);
// Longer than either end waits for a word from the other one.
constexpr Duration kIdle = seconds(3);

class World {
 public:
  explicit World(const RunInput& input);
  RunOutcome run();

 private:
  static Task<void> caller(World* world, SimClient* client, uint64_t seed, Time until);
  size_t payload_bytes(Rng& rng) const;
  static Task<void> one_call(World* world, SimClient* client, srpc::Channel* channel, uint64_t number, WorkBody body,
                             size_t bytes, Duration patience, Duration cancel_after);
  static Task<void> one_notice(World* world, SimClient* client, srpc::Channel* channel, uint64_t number, WorkBody body,
                               Duration patience);
  static Task<void> cancel_later(SimLoop* loop, Duration after, CancelSource* source, CancelToken stop);
  static Task<void> trouble(World* world, Time until);
  static Task<void> hog(SimServer* server, size_t bytes, Duration how_long);
  static Task<void> change_keys(World* world, Time until);
  static Task<void> intrude(World* world, Time until);
  static Task<void> restart(SimServer* server, SimServer::Stop how, Duration pause);
  static Task<Result<void>> small_call(World* world, SimClient* client, srpc::Channel* channel);
  static Task<void> check_channel(World* world, SimClient* client, srpc::Channel* channel);
  Task<void> settle();
  enum class Repeated : uint8_t { no, may_be, sent_again };
  void judge_lost(uint64_t number, const Error& error);
  void judge(uint64_t number, const Result<srpc::Message<WorkBody>>& reply, size_t bytes, Repeated repeated);

  Simulator sim_;
  SeededRng rng_;
  SeededRng keys_rng_;
  SeededRng moves_rng_;
  SrpcPlan plan_;
  Check check_;
  Coverage coverage_;
  SimLoop main_;
  Net net_;
  Scope scope_;  // of the endpoints' waits
  Ledger ledger_;
  std::vector<std::unique_ptr<SimServer>> servers_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  // Doesn't know the cluster's key, if it has one.
  std::unique_ptr<SimClient> intruder_;
  std::optional<srpc::SharedKey> key_;  // with which everybody proves himself
  uint64_t next_call_ = 1;
  uint64_t open_calls_ = 0;
  std::vector<uint64_t> notices_;
};

World::World(const RunInput& input)
    : sim_(input.seed),
      rng_(sim_.make_rng("srpc workload")),
      keys_rng_(sim_.make_rng("srpc keys")),
      moves_rng_(sim_.make_rng("srpc moves")),
      plan_(SrpcPlan::draw(rng_, keys_rng_, moves_rng_)),
      main_(sim_),
      net_(sim_),
      scope_(main_) {
  sim_.trace().print_to(input.trace);
  NetFaults faults;
  if (plan_.small_buffers) {
    faults.buffer_bytes = 1 + rng_.below(8000);
    faults.piece_bytes = 1 + rng_.below(faults.buffer_bytes);
  }
  faults.one_sided = plan_.one_sided;
  if (plan_.losses) faults.loss_ppm = static_cast<uint32_t>(rng_.below(3000));
  net_.set_faults(faults);
  std::optional<srpc::KeyRing> keys;
  if (plan_.keys) {
    key_ = srpc::SharedKey::random(keys_rng_);
    keys.emplace(std::vector{*key_});
  }
  const auto memory = input.arena.memory();
  size_t at = 0;
  const auto take = [&](size_t bytes) { return memory.subspan(std::exchange(at, at + bytes), bytes); };
  const size_t server_memory = plan_.small_server_memory ? size_t{1} << 20 : size_t{6} << 20;
  for (size_t i = 0; i < kServers; ++i) {
    servers_.push_back(std::make_unique<SimServer>(sim_, net_, scope_, take(server_memory), ledger_, plan_.few_credits,
                                                   input.sabotage != Sabotage::lives_look_alike, keys));
  }
  for (size_t i = 0; i < kClients; ++i) {
    clients_.push_back(std::make_unique<SimClient>(sim_, net_, scope_, take(size_t{4} << 20), servers_, keys));
  }
  if (plan_.keys) {
    std::optional<srpc::KeyRing> wrong;
    if (keys_rng_.chance(1, 2)) wrong.emplace(std::vector{srpc::SharedKey::random(keys_rng_)});
    if (input.sabotage == Sabotage::intruder_has_the_key) wrong = keys;
    intruder_ = std::make_unique<SimClient>(sim_, net_, scope_, take(size_t{1} << 20), servers_, wrong);
  }
}

void World::judge(uint64_t number, const Result<srpc::Message<WorkBody>>& reply, size_t bytes, Repeated repeated) {
  const uint32_t executions = ledger_.executions(number);
  check_.that(executions <= 1 || repeated == Repeated::may_be, "call {} was executed {} times", number, executions);
  if (executions > 1) coverage_.hit("srpc.repeated");
  if (reply) {
    check_.that(executions >= 1, "call {} was answered and executed {} times", number, executions);
    check_.that(reply->meta.number == number, "call {} got the answer of call {}", number, reply->meta.number.get());
    check_.that(reply->data.size() == bytes && is_payload_of(reply->data, number), "call {} got another payload",
                number);
    coverage_.hit("srpc.ok");
    return;
  }
  coverage_.hit("srpc." + std::string(errc_name(reply.code())));
  switch (reply.code()) {
    case Errc::closed:
      if (repeated == Repeated::sent_again) judge_lost(number, reply.error());
      break;
    case Errc::timed_out:
    case Errc::cancelled:
    case Errc::busy:
    case Errc::unavailable:
      break;
    default:
      check_.fail("call {} failed with {}", number, reply.error().to_string());
  }
}

void World::judge_lost(uint64_t number, const Error& error) {
  const bool forgotten = error.message().find("has forgotten") != std::string::npos;
  coverage_.hit(forgotten ? "srpc.sequence_forgotten" : "srpc.sequence_lost");
  check_.that(forgotten || plan_.ends_servers(), "call {} was lost with its connection: {}", number, error.to_string());
}

Task<void> World::cancel_later(SimLoop* loop, Duration after, CancelSource* source, CancelToken stop) {
  if (co_await loop->sleep(after, stop)) source->cancel();
}

Task<void> World::one_call(World* world, SimClient* client, srpc::Channel* channel, uint64_t number, WorkBody body,
                           size_t bytes, Duration patience, Duration cancel_after) {
  ++world->open_calls_;
  SimLoop& loop = client->loop();
  const Time deadline = loop.now() + patience;
  // Waiting for memory is the caller's own affair.
  auto data = co_await payload_of(&client->pool(), number, bytes);
  ASSERT(data.has_value());
  mem::BufChain reply_memory;
  if (world->plan_.one_sided && body.bytes > 0) {
    // Without waiting: the call has memory already.
    if (auto memory = client->pool().try_alloc(body.bytes)) reply_memory = *std::move(memory);
  }
  CancelSource source;
  {
    Scope cancelling(loop);
    if (cancel_after.ns > 0) {
      cancelling.spawn(&World::cancel_later, &loop, cancel_after, &source, cancelling.token());
    }
    const Time began = loop.now();
    const srpc::CallOptions options{.deadline = deadline, .cancel = source, .reply_memory = std::move(reply_memory)};
    const auto repeated = number % 4 == 0 ? Repeated::may_be : number % 4 == 1 ? Repeated::sent_again : Repeated::no;
    srpc::Message<WorkBody> request{.meta = body, .data = *std::move(data)};
    auto reply = repeated == Repeated::no       ? co_await channel->call<Work>(std::move(request), options)
                 : repeated == Repeated::may_be ? co_await channel->call<RepeatableWork>(std::move(request), options)
                                                : co_await channel->call<SequencedWork>(std::move(request), options);
    const Time late = std::max(deadline, began) + kSlack;
    world->check_.that(loop.now() <= late, "call {} ended {} us after its deadline", number,
                       (loop.now() - deadline).us());
    world->sim_.trace().event("srpc.call", number, static_cast<uint64_t>(reply.code()));
    world->judge(number, reply, body.bytes, repeated);
    co_await cancelling.close();
  }
  --world->open_calls_;
}

// It may be executed or not, but not twice, whatever happened to its connection.
Task<void> World::one_notice(World* world, SimClient* client, srpc::Channel* channel, uint64_t number, WorkBody body,
                             Duration patience) {
  ++world->open_calls_;
  auto sent = co_await channel->notify<Work>({.meta = body}, {.deadline = client->loop().now() + patience});
  world->sim_.trace().event("srpc.notice", number, static_cast<uint64_t>(sent.code()));
  world->coverage_.hit(sent ? "srpc.notice" : "srpc.notice_not_sent");
  world->notices_.push_back(number);
  --world->open_calls_;
}

// Payloads cost most of what a seed costs: large ones are rare, and rarer where the network takes a few bytes at a time
// and makes some events of each; there those that take some twenty pieces are the rule.
size_t World::payload_bytes(Rng& rng) const {
  const bool any = rng.chance(1, 2);
  const uint64_t large = rng.chance(1, 60) ? 200'000 : 20'000;
  const uint64_t enough = rng.chance(1, 100) ? large : uint64_t{net_.faults().piece_bytes} * 10;
  return rng.below(any ? std::min(large, enough) : std::min(uint64_t{300}, enough));
}

// Calls come in bursts: what overtakes and what waits needs many at a time, what keeps idle connections alive needs
// none, and what strikes once in a while needs time. Calls all the time would show no more, but take most of the time.
Task<void> World::caller(World* world, SimClient* client, uint64_t seed, Time until) {
  SeededRng rng(seed);
  Scope calls(client->loop());
  const auto sleep_below_us = [&](uint64_t us) {
    return client->loop().sleep(microseconds(static_cast<int64_t>(rng.below(us))));
  };
  while (client->loop().now() < until && world->check_.ok()) {
    if (!world->plan_.busy_callers) (void)co_await sleep_below_us(rng.chance(1, 4) ? 600'000 : 60'000);
    for (uint64_t left = 1 + rng.below(60); left > 0 && client->loop().now() < until; --left) {
      if (calls.running() < 60) {
        const uint64_t number = world->next_call_++;
        WorkBody body;
        body.number = number;
        body.delay_us = static_cast<uint32_t>(rng.chance(1, 2) ? 0 : rng.below(rng.chance(1, 10) ? 200'000 : 3000));
        body.bytes = static_cast<uint32_t>(world->payload_bytes(rng));
        const Duration patience =
            microseconds(static_cast<int64_t>(1 + rng.below(rng.chance(1, 4) ? 3000 : 2'000'000)));
        const Duration cancel_after =
            rng.chance(1, 4) ? microseconds(static_cast<int64_t>(1 + rng.below(4000))) : Duration{};
        auto& channel = client->channels[rng.below(client->channels.size())];
        if (rng.chance(1, 8)) {
          calls.spawn(&World::one_notice, world, client, channel.get(), number, body, patience);
          continue;
        }
        calls.spawn(&World::one_call, world, client, channel.get(), number, body, world->payload_bytes(rng), patience,
                    cancel_after);
      }
      if (rng.chance(3, 4)) (void)co_await sleep_below_us(2000);
    }
  }
  co_await calls.join();
}

Task<void> World::hog(SimServer* server, size_t bytes, Duration how_long) {
  auto memory = co_await server->pool().alloc_chain(bytes);
  (void)co_await server->loop().sleep(how_long);
}

Task<void> World::restart(SimServer* server, SimServer::Stop how, Duration pause) {
  co_await server->stop(how);
  (void)co_await server->loop().sleep(pause);
  server->start();
}

// In three steps, each done everywhere before the next one begins, in any order and at any pace.
Task<void> World::change_keys(World* world, Time until) {
  SeededRng& rng = world->keys_rng_;
  SimLoop& loop = world->main_;
  std::vector<std::optional<srpc::KeyRing>*> rings;
  rings.reserve(kServers + kClients);
  for (auto& server : world->servers_) rings.push_back(&server->keys());
  for (auto& client : world->clients_) rings.push_back(&client->keys());
  while (loop.now() < until) {
    const srpc::SharedKey old = *world->key_;
    const auto fresh = srpc::SharedKey::random(rng);
    for (const auto& step : {std::vector{old, fresh}, std::vector{fresh, old}, std::vector{fresh}}) {
      for (size_t i = rings.size(); i > 1; --i) std::swap(rings[i - 1], rings[rng.below(i)]);
      for (auto* ring : rings) {
        (void)co_await loop.sleep(microseconds(static_cast<int64_t>(rng.below(40'000))));
        (*ring)->replace(step);
      }
    }
    world->key_ = fresh;
    world->coverage_.hit("srpc.key_change");
  }
}

// Tries all the time, and never gets a call executed.
Task<void> World::intrude(World* world, Time until) {
  SimClient& client = *world->intruder_;
  while (client.loop().now() < until && world->check_.ok()) {
    const uint64_t number = world->next_call_++;
    WorkBody body;
    body.number = number;
    srpc::Channel& channel = *client.channels[number % client.channels.size()];
    auto reply = co_await channel.call<Work>({.meta = body}, {.deadline = client.loop().now() + milliseconds(50)});
    world->check_.that(!reply && world->ledger_.executions(number) == 0, "call {} of an intruder was executed", number);
    world->check_.that(client.metrics().connects.value() == 0, "an intruder was let in");
  }
}

Task<void> World::trouble(World* world, Time until) {
  SeededRng& rng = world->rng_;
  SimLoop& loop = world->main_;
  const SrpcPlan& plan = world->plan_;
  std::vector<std::unique_ptr<Scope>> scopes;
  scopes.reserve(world->servers_.size());
  for (auto& server : world->servers_) scopes.push_back(std::make_unique<Scope>(server->loop()));
  while (loop.now() < until) {
    (void)co_await loop.sleep(microseconds(static_cast<int64_t>(rng.below(100'000))));
    const size_t which = rng.below(kServers);
    SimServer& server = *world->servers_[which];
    const Net::Node client = world->clients_[rng.below(kClients)]->node();
    const Duration pause = milliseconds(static_cast<int64_t>(rng.below(100)));
    switch (rng.below(6)) {
      case 0:
        if (!plan.cuts) break;
        world->coverage_.hit("srpc.cut");
        world->net_.cut(client, server.node());
        (void)co_await loop.sleep(milliseconds(static_cast<int64_t>(rng.below(400))));
        world->net_.heal(client, server.node());
        break;
      case 1:
        if (!plan.losses) break;
        world->coverage_.hit("srpc.break");
        world->net_.break_any();
        break;
      case 2:
      case 3:
      case 4: {
        const auto how = static_cast<SimServer::Stop>(rng.below(3));
        const bool wanted = how == SimServer::Stop::drain  ? plan.drains
                            : how == SimServer::Stop::kill ? plan.kills
                                                           : plan.power_losses;
        if (!wanted || scopes[which]->running() > 0) break;
        world->coverage_.hit(how == SimServer::Stop::drain  ? "srpc.drain"
                             : how == SimServer::Stop::kill ? "srpc.kill"
                                                            : "srpc.power_loss");
        scopes[which]->spawn(&World::restart, &server, how, pause);
        break;
      }
      default:
        if (!plan.memory_hogs || scopes[which]->running() > 0) break;
        world->coverage_.hit("srpc.memory_hog");
        scopes[which]->spawn(&World::hog, &server, server.pool().total_bytes() / 2, pause);
    }
  }
  for (auto& scope : scopes) {
    while (scope->running() > 0) (void)co_await loop.sleep(milliseconds(1));
  }
}

Task<Result<void>> World::small_call(World* world, SimClient* client, srpc::Channel* channel) {
  const uint64_t number = world->next_call_++;
  WorkBody body;
  body.number = number;
  auto reply = co_await channel->call<Work>({.meta = body}, {.deadline = client->loop().now() + seconds(5)});
  world->judge(number, reply, 0, Repeated::no);
  if (!reply) co_return std::move(reply).error();
  co_return Result<void>();
}

// The connection may have been dead for a while without anybody knowing, but then it serves: more calls than there are
// credits, so that a lost one would show.
Task<void> World::check_channel(World* world, SimClient* client, srpc::Channel* channel) {
  const Time limit = client->loop().now() + seconds(10);
  for (;;) {
    auto first = co_await small_call(world, client, channel);
    if (first) break;
    if (!world->check_.that(client->loop().now() < limit, "no call succeeds any more: {}", first.error().to_string())) {
      co_return;
    }
  }
  for (int i = 0; i < 12; ++i) {
    auto next = co_await small_call(world, client, channel);
    world->check_.that(next.has_value(), "a call after all faults failed: {}", next ? "" : next.error().to_string());
  }
}

Task<void> World::settle() {
  if (!plan_.ends_connections()) {
    // Only keepalive keeps them. (Where something is dead, nobody shall have the time to notice.)
    coverage_.hit("srpc.idle");
    (void)co_await main_.sleep(kIdle);
  }
  for (auto& client : clients_) {
    for (auto& channel : client->channels) co_await check_channel(this, client.get(), channel.get());
  }
}

RunOutcome World::run() {
  const Time until = sim_.now() + kDuration;
  std::deque<Scope> scopes;
  for (auto& client : clients_) {
    for (int i = 0; i < 2; ++i) {
      scopes.emplace_back(client->loop()).spawn(&World::caller, this, client.get(), rng_.next(), until);
    }
  }
  scopes.emplace_back(main_).spawn(&World::trouble, this, until);
  if (plan_.key_changes) scopes.emplace_back(main_).spawn(&World::change_keys, this, until);
  if (intruder_) scopes.emplace_back(intruder_->loop()).spawn(&World::intrude, this, until);
  const auto all_ended = [&] { return std::ranges::all_of(scopes, [](const Scope& s) { return s.running() == 0; }); };
  const auto stop = sim_.run_until(all_ended, seconds(60));
  check_.that(stop == Simulator::Stop::done, "{} calls haven't ended a minute after the last fault", open_calls_);
  if (!check_.ok()) {
    // Nothing can be taken down in order: leak the world rather than trip over it.
    RunOutcome outcome{.failure = check_.failure(), .plan = plan_.to_string(), .coverage = {}};
    return outcome;
  }
  NetFaults calm = net_.faults();
  calm.loss_ppm = 0;
  net_.set_faults(calm);
  sim_.run(main_, +[](World* world) -> Task<void> { co_await world->settle(); }, this);

  if (intruder_) {
    const auto turned_away = static_cast<size_t>(srpc::CloseReason::not_authenticated);
    coverage_.hit("srpc.turned_away", intruder_->metrics().closed[turned_away]->value());
    for (auto& client : clients_) {
      // A connection that began with a key may hear of it when that key has been taken back.
      check_.that(plan_.key_changes || client->metrics().closed[turned_away]->value() == 0,
                  "a client with the key was turned away");
    }
    sim_.run(intruder_->loop(), +[](SimClient* c) -> Task<void> { co_await c->close(); }, intruder_.get());
  }
  for (auto& client : clients_)
    sim_.run(client->loop(), +[](SimClient* c) -> Task<void> { co_await c->close(); }, client.get());
  for (auto& server : servers_) {
    sim_.run(
        server->loop(), +[](SimServer* s) -> Task<void> { co_await s->stop(SimServer::Stop::drain); }, server.get());
  }
  sim_.run(main_, +[](Scope* scope) -> Task<void> { co_await scope->close(); }, &scope_);
  sim_.run_for(seconds(1));
  coverage_.hit("srpc.pulled", net_.pulls());
  coverage_.hit("srpc.pushed", net_.pushes());
  for (const uint64_t number : notices_) {
    const uint32_t executions = ledger_.executions(number);
    check_.that(executions <= 1, "notice {} was executed {} times", number, executions);
    if (executions == 1) coverage_.hit("srpc.notice_served");
  }
  check_.that(net_.connections() == 0, "{} connections are left", net_.connections());
  for (auto& client : clients_) {
    coverage_.hit("srpc.sent_again", client->metrics().repeats.value());
    check_.that(client->pool().free_bytes() == client->pool().total_bytes(), "a client holds memory in the end");
    if (!plan_.ends_connections()) {
      check_.that(client->metrics().connects.value() == kServers,
                  "{} connections were made to {} servers, without cause", client->metrics().connects.value(),
                  kServers);
    }
    coverage_.hit("srpc.late_reply", client->metrics().late_replies.value());
    coverage_.hit("srpc.reconnect", client->metrics().connects.value() -
                                        std::min<uint64_t>(client->metrics().connects.value(), kServers));
  }
  for (auto& server : servers_) {
    check_.that(server->pool().free_bytes() == server->pool().total_bytes(), "a server holds memory in the end");
  }
  return {.failure = check_.failure(),
          .plan = plan_.to_string(),
          .trace_hash = sim_.trace().hash(),
          .events = sim_.trace().events(),
          .simulated_ns = sim_.now().ns,
          .coverage = coverage_};
}

}  // namespace

RunOutcome run_srpc_scenario(const RunInput& input) {
  auto world = std::make_unique<World>(input);
  RunOutcome outcome = world->run();
  // A world that broke its promises can't be taken down in order.
  if (outcome.failure) (void)world.release();
  return outcome;
}

}  // namespace cairn::scenarios
