// The two sides of the SRPC soak (soak.py drives them): a server that says what it holds, and a client that makes calls
// of all kinds until it is killed.
//
//   srpc_soak server [LEAK]            prints "serving at ADDRESS"; for each line on standard input its metrics and a
//   line
//                                      "# end"; ends when standard input does. LEAK: what it shall lose, to show that
//                                      the soak notices: memory, pool, descriptors, mappings, calls.
//   srpc_soak client ADDRESS WAY SEED  WAY: tcp, shm. Ends by itself only when a call ends otherwise than it may.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/endian.h"
#include "base/log.h"
#include "base/rng.h"
#include "mem/buf_chain.h"
#include "reactor/scope.h"
#include "srpc/channel.h"
#include "srpc/key_ring.h"
#include "srpc/push_target.h"
#include "srpc/reactor_host.h"
#include "srpc/server_process.h"
#include "tools/srpc/target.h"

namespace cairn::srpc {
namespace {

constexpr uint16_t kPollGroups = 2;

// Takes payload, waits, and gives it back; pushes once in between.
struct HoldRequest {
  Le32 hold_us;
  Le32 push;
};
static_assert(sizeof(HoldRequest) == 8);
struct Hold {
  static constexpr MethodId kId{0x7e11};
  static constexpr std::string_view kName = "soak_hold";
  using Request = HoldRequest;
  using Reply = None;
};
struct Pushed {
  static constexpr MethodId kId{0x7e12};
  static constexpr std::string_view kName = "soak_pushed";
  using Request = None;
  using Reply = None;
};
struct Noticed {
  static constexpr MethodId kId{0x7e13};
  static constexpr std::string_view kName = "soak_noticed";
  using Request = None;
  using Reply = None;
};

// Both sides know it, so that each connection goes through the proofs.
KeyRing make_ring() {
  std::array<std::byte, SharedKey::kBytes> bytes{};
  bytes.fill(std::byte{0x5a});
  return KeyRing({SharedKey(bytes)});
}

// --- The server ---

class Service {
 public:
  Service(Server& server, std::string_view leak) : leak_(leak) {
    server.register_method<Hold>(*this, &Service::hold, {.max_concurrent = 4096});
    server.register_method<Noticed>(*this, &Service::noticed);
  }

 private:
  Task<Result<Message<None>>> hold(CallContext& context, Message<HoldRequest> request);
  Task<Result<Message<None>>> noticed(CallContext&, Message<None>) { co_return Message<None>{}; }
  void lose_something(const mem::BufChain& data);

  std::string leak_;
  uint64_t calls_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> lost_memory_;
  std::vector<mem::BufChain> lost_payload_;
};

Task<Result<Message<None>>> Service::hold(CallContext& context, Message<HoldRequest> request) {
  ++calls_;
  if (!leak_.empty() && calls_ % 16 == 0) lose_something(request.data);
  if (leak_ == "calls" && calls_ == 200) (void)co_await context.loop.sleep_until(Time::never());
  if (request.meta.push != 0) (void)context.client->push<Pushed>({});
  if (request.meta.hold_us != 0) {
    CO_TRY(co_await context.loop.sleep(microseconds(request.meta.hold_us), context.cancel));
  }
  co_return Message<None>{.data = std::move(request.data)};
}

void Service::lose_something(const mem::BufChain& data) {
  constexpr size_t kLost = 64 << 10;
  if (leak_ == "memory") {
    lost_memory_.push_back(std::make_unique<std::byte[]>(kLost));  // zeroed, so touched
  } else if (leak_ == "pool") {
    if (data.size() > 0 && lost_payload_.size() < 64) lost_payload_.push_back(data.slice(0, 1));
  } else if (leak_ == "descriptors") {
    (void)::dup(STDOUT_FILENO);
  } else if (leak_ == "mappings") {
    // Neighbours of the same kind would be merged into one.
    const int protection = calls_ % 32 == 0 ? PROT_NONE : PROT_READ;
    (void)::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
}

int serve(std::string_view leak) {
  const KeyRing ring = make_ring();
  auto process = ServerProcess::start(
      {.at = Address::loopback(0), .poll_groups = kPollGroups, .memory = size_t{64} << 20, .server = {.keys = &ring}},
      [leak](Server& server, ReactorHost&) { return std::make_shared<Service>(server, leak); });
  if (!process) {
    fmt::print(stderr, "srpc_soak: {}\n", process.error().to_string());
    return 1;
  }
  fmt::print("serving at {}\n", (*process)->address().to_string());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<Registry::Source> sources;
    for (uint16_t i = 0; i < kPollGroups; ++i) {
      sources.push_back({&(*process)->host(i).registry(), fmt::format("reactor=\"{}\"", i)});
    }
    fmt::print("{}# end\n", Registry::expose(sources));
    std::fflush(stdout);
  }
  (*process)->stop(seconds(10));
  return 0;
}

// --- The client ---

class Client {
 public:
  Client(ReactorHost& host, const Address& to, Way way, uint64_t seed) : host_(host), to_(to), way_(way), rng_(seed) {}

  // Until a call goes wrong: why.
  Task<std::string> run();

 private:
  struct Plan {
    size_t size;
    HoldRequest request;
    Duration cancel_after;  // zero: not
    Duration time;          // zero: the channel's
  };
  Plan draw();
  Task<void> live();
  Task<void> call(Channel* channel, Plan plan, uint64_t tag);
  void on_pushed(Message<None>) {}
  void complain(std::string what) {
    if (!problem_) problem_ = std::move(what);
  }

  ReactorHost& host_;
  Address to_;
  Way way_;
  SeededRng rng_;
  KeyRing ring_ = make_ring();
  std::optional<std::string> problem_;
};

Client::Plan Client::draw() {
  constexpr size_t kSizes[] = {0, 1, 100, 4096, 5000, 65536, 200'000};
  Plan plan{.size = kSizes[rng_.below(std::size(kSizes))], .request = {}, .cancel_after = {}, .time = {}};
  plan.request.hold_us = rng_.below(3) == 0 ? static_cast<uint32_t>(rng_.below(20'000)) : 0;
  plan.request.push = rng_.below(8) == 0 ? 1 : 0;
  if (rng_.below(10) == 0) plan.cancel_after = microseconds(static_cast<int64_t>(1 + rng_.below(5'000)));
  if (rng_.below(10) == 0) plan.time = microseconds(static_cast<int64_t>(1 + rng_.below(10'000)));
  return plan;
}

Task<std::string> Client::run() {
  while (!problem_) co_await live();
  co_return *problem_;
}

// One channel's life.
Task<void> Client::live() {
  constexpr uint64_t kCallsAtOnce = 4;
  Channel channel(host_.reactor(), host_.metrics(), host_.connector(to_, way_),
                  {.poll_group = static_cast<uint16_t>(rng_.below(kPollGroups)), .keys = &ring_});
  channel.on_push<Pushed>(*this, &Client::on_pushed);
  for (uint64_t round = 1 + rng_.below(8); round > 0 && !problem_; --round) {
    Scope scope(host_.reactor());
    for (uint64_t n = 1 + rng_.below(kCallsAtOnce); n > 0; --n) {
      scope.spawn(&Client::call, this, &channel, draw(), rng_.next());
    }
    (void)co_await channel.notify<Noticed>({});
    co_await scope.join();
    (void)co_await host_.reactor().sleep(microseconds(static_cast<int64_t>(rng_.below(200'000))));
  }
  co_await channel.close();
}

Task<void> Client::call(Channel* channel, Plan plan, uint64_t tag) {
  auto payload = co_await host_.pool().alloc_chain(plan.size);
  if (!payload) co_return complain("no memory: " + payload.error().to_string());
  mem::BufChain data;
  for (mem::Buf buf : payload->slices()) {
    // cairn-allow(memcpy): the test's own pattern
    if (buf.size() >= sizeof tag) std::memcpy(buf.writable(), &tag, sizeof tag);
    data.append(std::move(buf));
  }
  payload->clear();
  CancelSource source;
  Timer cancel([](void* s) { static_cast<CancelSource*>(s)->cancel(Errc::cancelled); }, &source);
  if (plan.cancel_after.ns > 0) host_.reactor().arm_in(cancel, plan.cancel_after);
  const Time deadline = plan.time.ns > 0 ? host_.reactor().now() + plan.time : Time::never();
  auto reply = co_await channel->call<Hold>({.meta = plan.request, .data = std::move(data)},
                                            {.deadline = deadline, .cancel = source});
  host_.reactor().disarm(cancel);
  if (!reply) {
    const Errc code = reply.error().code();
    // A machine that is busy with other things may take longer than any deadline.
    if (code == Errc::timed_out || (code == Errc::cancelled && plan.cancel_after.ns > 0)) co_return;
    co_return complain(fmt::format("a call of {} bytes: {}", plan.size, reply.error().to_string()));
  }
  if (reply->data.size() != plan.size)
    co_return complain(fmt::format("{} bytes for {}", reply->data.size(), plan.size));
  const auto& slices = reply->data.slices();
  if (plan.size >= mem::kMaxBlock || plan.size < sizeof tag) co_return;
  // cairn-allow(memcpy): the test's own pattern
  if (std::memcmp(slices.begin()->data(), &tag, sizeof tag) != 0) complain("another call's payload");
}

int be_client(const std::string& where, std::string_view way_text, uint64_t seed) {
  const auto at = Address::parse(where);
  const auto way = tools::parse_way(way_text);
  if (!at || !way) return 2;
  // Economy, and the cost of a wake-up isn't measured: there are 64 of these, and they start all the time.
  auto host = ReactorHost::create({.mode = Mode::economy, .wake_cost = microseconds(50), .memory = size_t{8} << 20});
  if (!host) {
    fmt::print(stderr, "srpc_soak: {}\n", host.error().to_string());
    return 1;
  }
  Client client(**host, *at, *way, seed);
  fmt::print(stderr, "srpc_soak: client of {} over {}, seed {}: {}\n", where, way_text, seed,
             (*host)->run(&Client::run, &client));
  return 1;
}

}  // namespace
}  // namespace cairn::srpc

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  cairn::log::setup(cairn::log::Level::error, cairn::log::Format::text);
  if (!words.empty() && words[0] == "server" && words.size() <= 2) {
    return cairn::srpc::serve(words.size() == 2 ? words[1] : "");
  }
  if (words.size() == 4 && words[0] == "client") {
    return cairn::srpc::be_client(words[1], words[2], std::strtoull(words[3].c_str(), nullptr, 10));
  }
  fmt::print(stderr, "usage: srpc_soak server [LEAK] | client ADDRESS tcp|shm SEED\n");
  return 2;
}
