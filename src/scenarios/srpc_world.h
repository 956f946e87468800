// The world of the SRPC scenario: servers and clients, each with a loop and memory of its own, on one simulated
// network.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "mem/pool.h"
#include "reactor/scope.h"
#include "scenarios/scenario.h"
#include "sim/check.h"
#include "sim/net.h"
#include "sim/simulator.h"
#include "srpc/channel.h"
#include "srpc/server.h"

namespace cairn::scenarios {

struct WorkBody {
  Le64 number;    // of the call, never used twice
  Le32 delay_us;  // before it is answered
  Le32 bytes;     // of the reply's payload
};
// Executes call `number`: counts that, waits, answers with payload that depends on the number.
struct Work {
  static constexpr srpc::MethodId kId{0x0201};
  static constexpr std::string_view kName = "work";
  using Request = WorkBody;
  using Reply = WorkBody;
};

// The same, and may be executed twice.
struct RepeatableWork {
  static constexpr srpc::MethodId kId{0x0202};
  static constexpr std::string_view kName = "repeatable_work";
  static constexpr bool kIdempotent = true;
  using Request = WorkBody;
  using Reply = WorkBody;
};

// The same, and is sent again, but not executed again.
struct SequencedWork {
  static constexpr srpc::MethodId kId{0x0203};
  static constexpr std::string_view kName = "sequenced_work";
  static constexpr bool kSequenced = true;
  using Request = WorkBody;
  using Reply = WorkBody;
};

// The payload of call `number`, in either direction.
Task<Result<mem::BufChain>> payload_of(mem::Pool* pool, uint64_t number, size_t bytes, CancelToken cancel = {});
bool is_payload_of(const mem::BufChain& data, uint64_t number);

struct SrpcPlan {
  bool small_server_memory = false;
  bool small_buffers = false;  // of the network
  bool losses = false;
  bool cuts = false;
  bool kills = false;
  bool power_losses = false;
  bool drains = false;
  bool memory_hogs = false;
  bool few_credits = false;
  bool busy_callers = false;  // without pauses
  bool keys = false;          // of the cluster; somebody without them tries, too
  bool key_changes = false;
  bool one_sided = false;  // servers move payload

  // Nothing else may end a server's life.
  bool ends_servers() const { return kills || power_losses || drains; }
  // Nothing else may end a connection.
  bool ends_connections() const { return losses || cuts || kills || power_losses || drains; }
  // `keys`, `moves`: drawn apart, so that what else a seed means stayed the same when they came.
  static SrpcPlan draw(Rng& rng, Rng& keys, Rng& moves);
  std::string to_string() const;
};

// Which calls were executed: the checker's ledger, shared by all lives of all servers.
class Ledger {
 public:
  void execute(uint64_t number) { ++executions_[number]; }
  uint32_t executions(uint64_t number) const {
    const auto at = executions_.find(number);
    return at == executions_.end() ? 0 : at->second;
  }

 private:
  std::unordered_map<uint64_t, uint32_t> executions_;  // looked up, never walked
};

// One server process; stop() and start() make it another one at the same place.
class SimServer {
 public:
  SimServer(Simulator& sim, Net& net, Scope& scope, std::span<std::byte> memory, Ledger& ledger, bool few_credits,
            bool lives_differ, const std::optional<srpc::KeyRing>& keys);
  ~SimServer();
  void start();
  // The process ends: what runs is cancelled, and connections end as `how` says.
  enum class Stop : uint8_t { drain, kill, power_loss };
  Task<void> stop(Stop how);

  bool running() const { return server_ != nullptr && !stopping_; }
  Net::Node node() const { return node_; }
  srpc::Server& server() { return *server_; }
  // Those of the process in all its lives.
  std::optional<srpc::KeyRing>& keys() { return keys_; }
  mem::Pool& pool() { return pool_; }
  SimLoop& loop() { return loop_; }

 private:
  Task<Result<srpc::Message<WorkBody>>> work(srpc::CallContext& context, srpc::Message<WorkBody> request);

  Net& net_;
  SimLoop loop_;
  Registry registry_;
  mem::Pool pool_;
  Net::Node node_;
  Ledger& ledger_;
  bool few_credits_;
  bool lives_differ_;
  std::optional<srpc::KeyRing> keys_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Registry>> registries_;  // one for each life
  std::unique_ptr<srpc::Server> server_;
};

// One client process with a channel to each server.
class SimClient {
 public:
  SimClient(Simulator& sim, Net& net, Scope& scope, std::span<std::byte> memory,
            const std::vector<std::unique_ptr<SimServer>>& servers, const std::optional<srpc::KeyRing>& keys);
  Task<void> close();

  std::vector<std::unique_ptr<srpc::Channel>> channels;
  SimLoop& loop() { return loop_; }
  std::optional<srpc::KeyRing>& keys() { return keys_; }
  mem::Pool& pool() { return pool_; }
  Net::Node node() const { return node_; }
  const srpc::ChannelMetrics& metrics() const { return metrics_; }

 private:
  SimLoop loop_;
  Registry registry_;
  std::optional<srpc::KeyRing> keys_;
  mem::Pool pool_;
  srpc::ChannelMetrics metrics_;
  Net::Node node_;
};

}  // namespace cairn::scenarios
