#include "srpc/rdma/upgrades.h"

#include <fmt/format.h>

#include <utility>

namespace cairn::srpc::rdma {
namespace {

Counter& fallbacks(Registry& registry, std::string_view reason) {
  return registry.counter("srpc_rdma_fallbacks_total", "Attempts to go over to RDMA that ended with TCP",
                          fmt::format("reason=\"{}\"", reason));
}

Gauge& connections(Registry& registry, std::string_view transport) {
  return registry.gauge("srpc_upgradable_connections", "Connections that can go over to RDMA, by what carries them now",
                        fmt::format("transport=\"{}\"", transport));
}

}  // namespace

Upgrades::Upgrades(Loop& loop, Registry& registry, const std::string& name, UpgradeOptions options)
    : loop_(loop),
      options_(options),
      accepted_(make_history("clients of " + name)),
      peer_fallbacks_(&fallbacks(registry, "peer")),
      proof_fallbacks_(&fallbacks(registry, "no_way")),
      other_fallbacks_(&fallbacks(registry, "unavailable")),
      link_losses_(registry.counter("srpc_rdma_links_lost_total", "RDMA links that broke while they carried messages")),
      over_tcp_(connections(registry, "tcp")),
      over_rdma_(connections(registry, "rdma")) {
  for (size_t i = 0; i < kVerbs; ++i) verb_fallbacks_[i] = &fallbacks(registry, verb_name(static_cast<Verb>(i)));
}

void Upgrades::close(std::string why) {
  group_ = nullptr;
  why_closed_ = std::move(why);
  is_said_ = true;
  accepted_->said(why_closed_);
}

std::shared_ptr<UpgradeHistory> Upgrades::make_history(const std::string& whom) const {
  auto history = std::make_shared<UpgradeHistory>(whom, options_.retry, options_.expected);
  if (is_said_) history->said(why_closed_);
  return history;
}

void Upgrades::count_fallback(std::string_view problem) {
  for (size_t i = 0; i < kVerbs; ++i) {
    if (problem.find(verb_name(static_cast<Verb>(i))) != std::string_view::npos) return verb_fallbacks_[i]->add();
  }
  (problem.find(kNoProof) != std::string_view::npos ? proof_fallbacks_ : other_fallbacks_)->add();
}

}  // namespace cairn::srpc::rdma
