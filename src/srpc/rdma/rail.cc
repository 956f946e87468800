#include "srpc/rdma/rail.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace cairn::srpc::rdma {
namespace {

// Of a completion queue, unless the device can't or a connection needs more.
constexpr uint32_t kQueueDepth = 4096;
constexpr size_t kPollBatch = 64;

}  // namespace

Rail::Rail(Reactor& reactor, RdmaMetrics& metrics, const Device& device, Events& events, size_t block_bytes,
           Duration port_grace)
    : reactor_(reactor),
      metrics_(metrics),
      device_(device),
      events_(events),
      block_bytes_(block_bytes),
      port_grace_(port_grace),
      ear_(*this),
      grace_(&on_grace, this) {}

Rail::~Rail() {
  close();
  if (up_) metrics_.rails_up.add(-1);
}

void Rail::close() {
  reactor_.disarm(grace_);
  if (channel_poll_ != nullptr) std::exchange(channel_poll_, nullptr)->let_go();
  if (news_poll_ != nullptr) std::exchange(news_poll_, nullptr)->let_go();
}

Result<Rail::Choice> Rail::choose(const Address& local) {
  if (removed_) return Error(Errc::unavailable, device_.name() + ": the device was removed; restart to use it again");
  auto port = device_.port();
  if (!port) {
    metrics_.setup_failed(port.error());
    return device_.explain(port.error());
  }
  auto gid = choose_gid(port->facts, local);
  if (!gid) {
    metrics_.setup_failed(gid.error().problem);
    return Error(Errc::unavailable, gid.error().to_string());
  }
  if (const auto index = device_.options().gid_index) {
    const auto wanted = std::ranges::find(port->facts.gids, *index, &Gid::index);
    if (wanted == port->facts.gids.end()) {
      metrics_.setup_failed(GidProblem::no_gid);
      return Error(Errc::unavailable,
                   fmt::format("{}: GID index {} is empty; choose another, or none", describe(port->facts), *index));
    }
    gid->index = *index;
    gid->gid = wanted->bytes;
    gid->type = wanted->type;
    gid->why = fmt::format("{} {}", gid_type_name(wanted->type), gid_text(wanted->bytes));
  }
  if (channel_ != nullptr) port_came_back();
  if (device_.options().mtu != 0) gid->path_mtu_bytes = std::min(gid->path_mtu_bytes, device_.options().mtu);
  return Choice{*std::move(port), *std::move(gid)};
}

VerbResult<void> Rail::open() {
  if (channel_ != nullptr) return {};
  auto news = device_.open_again();
  if (!news) return std::unexpected(news.error());
  auto channel = device_.verbs().make_channel();
  if (!channel) return std::unexpected(channel.error());
  news_ = *std::move(news);
  channel_ = *std::move(channel);
  news_poll_ = stream::SocketPoll::make(reactor_, news_->async_fd(), ear_);
  news_poll_->arm_in();
  channel_poll_ = stream::SocketPoll::make(reactor_, channel_->fd(), *this);
  channel_poll_->arm_in();
  port_came_back();
  return {};
}

VerbResult<Rail::Queue*> Rail::reserve(uint32_t completions) {
  const auto fits = [&](const auto& queue) { return !queue->broken && queue->depth - queue->reserved >= completions; };
  auto found = std::ranges::find_if(queues_, fits);
  if (found == queues_.end()) {
    if (auto made = make_queue(completions); !made) return std::unexpected(made.error());
    found = queues_.end() - 1;
  }
  (*found)->reserved += completions;
  return found->get();
}

VerbResult<void> Rail::make_queue(uint32_t at_least) {
  auto queue = std::make_unique<Queue>();
  queue->depth = std::max(at_least, std::min(kQueueDepth, device_.limits().completion_queue_depth));
  auto cq = device_.verbs().make_cq(queue->depth, *channel_);
  if (!cq) return std::unexpected(cq.error());
  queue->cq = *std::move(cq);
  // A device that can't tell of completions is found out now, while the connection can still be another.
  if (auto armed = queue->cq->request_notification(); !armed) return armed;
  queue->armed = true;
  queues_.push_back(std::move(queue));
  return {};
}

VerbResult<SlotMemory*> Rail::slots(Role role) {
  auto& slots = slots_[static_cast<size_t>(role)];
  if (slots == nullptr) slots = std::make_unique<SlotMemory>(device_.domain(role), metrics_, block_bytes_);
  return slots.get();
}

size_t Rail::poll(size_t budget, bool& drained) {
  size_t total = 0;
  // By index: what completes may lead to another connection, and another queue.
  for (size_t q = 0; q < queues_.size(); ++q) {
    Queue* const queue = queues_[q].get();
    if (queue->reserved == 0 || queue->broken) continue;
    for (;;) {
      if (total >= budget) {
        drained = false;
        return total;
      }
      std::array<WorkCompletion, kPollBatch> completions;
      const auto found = queue->cq->poll(completions);
      if (!found) {
        queue->broken = true;
        fail(fmt::format("{}: {}", device_.name(), found.error().to_string()));
        break;
      }
      if (*found > 0) metrics_.polls.add();
      for (size_t i = 0; i < *found; ++i) events_.on_completion(completions[i]);
      total += *found;
      if (*found < completions.size()) break;
    }
  }
  return total;
}

bool Rail::arm() {
  for (const auto& queue : queues_) {
    if (queue->reserved == 0 || queue->armed || queue->broken) continue;
    if (auto armed = queue->cq->request_notification(); !armed) {
      // It can't be waited for, and whoever sleeps would never know.
      queue->broken = true;
      fail(fmt::format("{}: {}", device_.name(), armed.error().to_string()));
      return false;
    }
    queue->armed = true;
  }
  bool drained = true;
  return poll(SIZE_MAX, drained) == 0;
}

void Rail::take_events() {
  for (;;) {
    const auto taken = channel_->take_event();
    if (!taken) return fail(fmt::format("{}: {}", device_.name(), taken.error().to_string()));
    if (!*taken) return;
    metrics_.events.add();
    // Whichever queue it was: one that is armed twice tells twice, at worst.
    for (const auto& queue : queues_) queue->armed = false;
  }
}

// --- The port ---

void Rail::hear_news() {
  for (;;) {
    const auto news = news_->take_news();
    if (!news || news->event == AsyncEvent::none) return;
    if (news->event == AsyncEvent::device_fatal) {
      removed_ = true;
      port_went_down();
      return fail(device_.name() + ": the device was removed or has failed");
    }
    if (news->port != device_.options().port) continue;
    if (news->event == AsyncEvent::port_error) port_went_down();
    if (news->event == AsyncEvent::port_active) port_came_back();
  }
}

void Rail::port_went_down() {
  if (!up_) return;
  up_ = false;
  metrics_.rails_up.add(-1);
  metrics_.port_losses.add();
  reactor_.arm_in(grace_, port_grace_);
  LOG(warn, "srpc: {} went down", device_.name());
}

void Rail::port_came_back() {
  if (up_) return;
  up_ = true;
  metrics_.rails_up.add(1);
  reactor_.disarm(grace_);
}

void Rail::on_grace(void* self) {
  auto& rail = *static_cast<Rail*>(self);
  // News may be lost, or late.
  const auto port = rail.device_.port();
  if (port && port->facts.state == PortState::active) return rail.port_came_back();
  rail.fail(rail.device_.name() + ": the port went down and stayed down");
}

void Rail::fail(const std::string& why) { events_.on_rail_failed(*this, why); }

}  // namespace cairn::srpc::rdma
