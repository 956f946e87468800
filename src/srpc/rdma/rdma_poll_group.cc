#include "srpc/rdma/rdma_poll_group.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace cairn::srpc::rdma {
namespace {

// Completions that are handed on in one round.
constexpr size_t kPollBudget = 256;
// For a queue pair in error to give back what was posted. A device that doesn't is destroyed all the same.
constexpr Duration kFlush = seconds(1);

size_t block_bytes(const QueueOptions& options) { return (2U * options.slots + 2U) * size_t{options.slot_bytes}; }

}  // namespace

class RdmaPollGroup::Pending final : public PendingLink {
 public:
  Pending(RdmaPollGroup& group, std::unique_ptr<Link> link, std::string rail)
      : group_(group), link_(std::move(link)), local_(link_->local()), rail_(std::move(rail)) {
    group_.add_link(*link_);
  }
  ~Pending() override {
    if (link_ != nullptr) group_.bury(std::move(link_), {}, {});
  }

  const QpAddress& local() const override { return local_; }
  const std::string& rail() const override { return rail_; }

  Result<std::unique_ptr<RdmaStream>> connect(const QpAddress& remote, std::string peer) override {
    ASSERT(link_ != nullptr);
    TRY(check_remote(remote, local_));
    if (auto connected = link_->connect(remote); !connected) {
      group_.metrics_.setup_failed(connected.error());
      return link_->rail().device().explain(connected.error());
    }
    return std::make_unique<RdmaStream>(group_, std::move(link_), std::move(peer));
  }

 private:
  RdmaPollGroup& group_;
  std::unique_ptr<Link> link_;  // null: connected
  QpAddress local_;
  std::string rail_;
};

RdmaPollGroup::RdmaPollGroup(Reactor& reactor, Registry& registry, mem::Pool& pool, const std::vector<Device*>& rails,
                             QueueOptions options, mem::Purpose requests)
    // No stream is tried each round: one look into the completion queue serves them all.
    : StreamGroup(reactor, pool, requests, {.most = 0}),
      options_(options),
      metrics_(registry),
      dying_timer_(&on_dying, this),
      all_dead_(reactor) {
  options_.slots = std::clamp(options_.slots, kMinSlots, kMaxSlots);
  options_.slot_bytes = std::clamp(options_.slot_bytes, kMinSlotBytes, kMaxSlotBytes);
  for (Device* device : rails) {
    rails_.push_back(std::make_unique<Rail>(reactor, metrics_, *device, static_cast<Rail::Events&>(*this),
                                            block_bytes(options_), options_.port_grace));
  }
  all_dead_.set();
}

RdmaPollGroup::~RdmaPollGroup() {
  reactor().disarm(dying_timer_);
  dying_.clear();
  abandoned_.clear();
}

Task<void> RdmaPollGroup::close() {
  while (!dying_.empty()) (void)co_await all_dead_.wait();
  co_await StreamGroup::close();
  // Here and not in the destructor, which may be called on a thread that must not touch the reactor's ring.
  for (const auto& rail : rails_) rail->close();
}

// --- Coming ---

Result<std::unique_ptr<PendingLink>> RdmaPollGroup::prepare(Role role, const Address& local) {
  std::string problems;
  // First those that have the address; then any, for networks where ports have addresses of their own.
  for (const Address& wanted : {local, Address()}) {
    for (const auto& rail : rails_) {
      if (!rail->device().has(role)) continue;
      auto prepared = prepare_on(*rail, role, wanted);
      if (prepared) return prepared;
      problems += (problems.empty() ? "" : "\n") + prepared.error().message();
    }
    if (local.family() == AF_UNSPEC) break;
  }
  return Error(Errc::unavailable, problems.empty() ? "no RDMA device" : problems);
}

Result<std::unique_ptr<PendingLink>> RdmaPollGroup::prepare_on(Rail& rail, Role role, const Address& local) {
  TRY(const Rail::Choice choice, rail.choose(local));
  const auto failed = [&](const VerbError& error) {
    metrics_.setup_failed(error);
    return rail.device().explain(error);
  };
  if (auto opened = rail.open(); !opened) return failed(opened.error());
  const uint32_t number = next_number_++;
  const auto psn = static_cast<uint32_t>(reactor().rng().below(uint64_t{1} << 24));
  auto link = Link::make(rail, choice, role, number, psn, options_, metrics_);
  if (!link) return failed(link.error());
  std::string name = fmt::format("{}, {}, MTU {}", rail.device().name(), choice.gid.why, choice.gid.path_mtu_bytes);
  return std::make_unique<Pending>(*this, *std::move(link), std::move(name));
}

// --- Working ---

void RdmaPollGroup::on_completion(const WorkCompletion& completion) {
  const auto found = links_.find(static_cast<uint32_t>(completion.id >> 32));
  // Of one that was destroyed before it gave back everything.
  if (found == links_.end()) return;
  const auto low = static_cast<uint32_t>(completion.id);
  found->second->on_completion((low & Link::kReceive) != 0, low & ~static_cast<uint32_t>(Link::kReceive), completion);
}

void RdmaPollGroup::on_rail_failed(Rail& rail, const std::string& why) {
  LOG(warn, "srpc: {}; its RDMA connections end", why);
  std::vector<Link*> over_it;
  for (const auto& [number, link] : links_) {
    if (&link->rail() == &rail) over_it.push_back(link);
  }
  std::ranges::sort(over_it, {}, &Link::number);
  // Links are destroyed by help_dying() only.
  for (Link* link : over_it) link->fail(why);
}

size_t RdmaPollGroup::poll(size_t budget) {
  size_t work = StreamGroup::poll(budget);
  bool drained = true;
  for (const auto& rail : rails_) work += rail->poll(kPollBudget, drained);
  work += serve_ready(drained);
  if (!dying_.empty()) work += help_dying();
  return work;
}

bool RdmaPollGroup::arm() {
  if (!StreamGroup::arm()) return false;
  for (const auto& rail : rails_) {
    if (!rail->arm()) return false;
  }
  return std::ranges::all_of(ready_, [](const RdmaStream* stream) { return stream == nullptr; });
}

size_t RdmaPollGroup::serve_ready(bool drained) {
  if (ready_.empty()) return 0;
  std::swap(ready_, serving_);
  const size_t served = serving_.size();
  for (RdmaStream*& entry : serving_) {
    if (entry == nullptr) continue;
    RdmaStream& stream = *entry;
    stream.ready_ = false;
    if (stream.hang_up_due_) {
      // Behind what had arrived before the socket ended.
      if (!drained) {
        stream.on_link_news();
      } else {
        stream.hang_up_due_ = false;
        stream.hung_up_ = true;
      }
    }
    if (stream.blocked_ && stream.sendable()) {
      stream.blocked_ = false;
      stream.events().on_sendable();
    }
    if (entry != nullptr && stream.watched_ && stream.readable()) stream.events().on_receivable();
  }
  serving_.clear();
  return served;
}

void RdmaPollGroup::forget_ready(RdmaStream& stream) {
  std::ranges::replace(ready_, &stream, static_cast<RdmaStream*>(nullptr));
  std::ranges::replace(serving_, &stream, static_cast<RdmaStream*>(nullptr));
}

// --- Going ---

void RdmaPollGroup::bury(std::unique_ptr<Link> link, std::vector<mem::BufChain>&& kept, Fd socket) {
  link->retire(std::move(kept));
  dying_.push_back({std::move(link), std::move(socket), false, reactor().now() + options_.drain});
  all_dead_.reset();
  if (!dying_timer_.armed()) reactor().arm(dying_timer_, dying_.back().deadline);
}

size_t RdmaPollGroup::help_dying() {
  const Time now = reactor().now();
  size_t work = 0;
  Time next = Time::never();
  // By index: what ends may bury others.
  for (size_t i = 0; i < dying_.size();) {
    if (!dying_[i].flushing && (dying_[i].link->sent_all() || now >= dying_[i].deadline)) {
      dying_[i].flushing = true;
      dying_[i].deadline = now + kFlush;
      dying_[i].link->flush();
      ++work;
    }
    if (!dying_[i].flushing || (!dying_[i].link->flushed() && now < dying_[i].deadline)) {
      next = std::min(next, dying_[i].deadline);
      ++i;
      continue;
    }
    ++work;
    Dying through = std::move(dying_[i]);
    dying_.erase(dying_.begin() + static_cast<ptrdiff_t>(i));
    end(std::move(through));
  }
  if (dying_.empty()) {
    reactor().disarm(dying_timer_);
    all_dead_.set();
  } else {
    reactor().arm(dying_timer_, next);
  }
  return work;
}

void RdmaPollGroup::end(Dying dying) {
  std::unique_ptr<Link> link = std::move(dying.link);
  forget_link(*link);
  // A poll in the ring may hold the file open for a moment more.
  if (dying.socket) ::shutdown(dying.socket.get(), SHUT_RDWR);
  if (const auto destroyed = link->destroy(); !destroyed) {
    LOG(error, "srpc: {}; what it may still reach is kept", link->rail().device().explain(destroyed.error()).message());
    metrics_.abandoned.add();
    abandoned_.push_back(std::move(link));
  }
}

}  // namespace cairn::srpc::rdma
