// Upgrades: what the TCP connections of one reactor need to become RDMA connections. Make it together with the TCP poll
// group, before anything connects; the RDMA poll group may come later, or never, and what is connected by then goes
// over to it at its next attempt. So it doesn't matter which of the two starts first.
//
//   rdma::Upgrades upgrades(reactor, registry, "poll group 0");
//   tcp_group.allow_upgrades(upgrades);
//   ...
//   upgrades.open(rdma_group);
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "reactor/loop.h"
#include "srpc/rdma/upgrade_history.h"
#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma {

class RdmaPollGroup;

struct UpgradeOptions {
  RetryOptions retry = {};
  // False: that it isn't used is nothing to worry about, and no warning in the log.
  bool expected = true;
  // For the bytes that show that the way is open to both sides.
  Duration proof_timeout = seconds(5);
};

class Upgrades {
 public:
  // `name`: of this side's poll group, for the log.
  Upgrades(Loop& loop, Registry& registry, const std::string& name, UpgradeOptions options = {});
  Upgrades(const Upgrades&) = delete;
  Upgrades& operator=(const Upgrades&) = delete;

  // `group` outlives the connections.
  void open(RdmaPollGroup& group) {
    group_ = &group;
    is_said_ = false;
  }
  // Connections stay as they are; no other one is upgraded. `why` is what clients are told; this side has said it.
  void close(std::string why);

  RdmaPollGroup* group() { return group_; }
  const std::string& why_closed() const { return why_closed_; }
  const UpgradeOptions& options() const { return options_; }
  Loop& loop() { return loop_; }

  // One for each channel; those that accept share one.
  std::shared_ptr<UpgradeHistory> make_history(const std::string& whom) const;
  const std::shared_ptr<UpgradeHistory>& accepted() { return accepted_; }

  // `problem`: an error's text, in which the call that failed is named.
  void count_fallback(std::string_view problem);
  void count_peers() { peer_fallbacks_->add(); }
  void count_broken() { link_losses_.add(); }
  Gauge& over_tcp() { return over_tcp_; }
  Gauge& over_rdma() { return over_rdma_; }

 private:
  Loop& loop_;
  UpgradeOptions options_;
  RdmaPollGroup* group_ = nullptr;
  std::string why_closed_ = "RDMA is not open yet";
  bool is_said_ = false;
  std::shared_ptr<UpgradeHistory> accepted_;
  std::array<Counter*, kVerbs> verb_fallbacks_{};
  Counter* peer_fallbacks_;   // the other side's doing
  Counter* proof_fallbacks_;  // the queue pairs came up, and nothing arrived
  Counter* other_fallbacks_;
  Counter& link_losses_;
  Gauge& over_tcp_;
  Gauge& over_rdma_;
};

// Error texts that count_fallback() tells apart from those of verbs.
inline constexpr std::string_view kNoProof = "nothing arrives over RDMA";

}  // namespace cairn::srpc::rdma
