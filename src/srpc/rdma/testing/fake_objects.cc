#include "srpc/rdma/testing/fake_objects.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::rdma::testing {
namespace {

Fd make_event() { return Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE)); }

void ring(const Fd& event) {
  const uint64_t one = 1;
  ASSERT(::write(event.get(), &one, sizeof one) == sizeof one);
}

std::unexpected<VerbError> failed(Verb verb, int error) { return std::unexpected(VerbError{verb, error}); }

}  // namespace

// --- FakeOpened ---

FakeOpened::FakeOpened(FakeHost& h, FakeDevice& d) : host(h), device(d), event_(make_event()) {
  ++host.objects_.openings;
  device.openings.push_back(this);
}

FakeOpened::~FakeOpened() {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (children != 0) host.fabric_.blame("a device was closed before what was made from it");
  --host.objects_.openings;
  std::erase(device.openings, this);
}

VerbResult<DeviceLimits> FakeOpened::limits() {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::query_device, &device)) return failed(Verb::query_device, error);
  return device.spec.limits;
}

VerbResult<Port> FakeOpened::port(uint8_t number) {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::query_port, &device)) return failed(Verb::query_port, error);
  if (number < 1 || number > device.ports.size()) return failed(Verb::query_port, EINVAL);
  return device.ports[number - 1U];
}

VerbResult<std::unique_ptr<VerbsDomain>> FakeOpened::make_domain() {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::alloc_pd, &device)) return failed(Verb::alloc_pd, error);
  return std::make_unique<FakeDomain>(*this);
}

VerbResult<std::unique_ptr<VerbsChannel>> FakeOpened::make_channel() {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::create_comp_channel, &device)) {
    return failed(Verb::create_comp_channel, error);
  }
  return std::make_unique<FakeChannel>(*this);
}

VerbResult<std::unique_ptr<VerbsCq>> FakeOpened::make_cq(uint32_t depth, VerbsChannel& channel) {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::create_cq, &device)) return failed(Verb::create_cq, error);
  if (depth == 0 || depth > device.spec.limits.completion_queue_depth) return failed(Verb::create_cq, EINVAL);
  return std::make_unique<FakeCq>(*this, dynamic_cast<FakeChannel&>(channel), depth);
}

VerbResult<std::unique_ptr<VerbsQp>> FakeOpened::make_qp(VerbsDomain& domain, VerbsCq& cq, const QpDepths& depths) {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::create_qp, &device)) return failed(Verb::create_qp, error);
  const uint32_t most = device.spec.limits.queue_pair_depth;
  if (depths.sends > most || depths.receives > most) return failed(Verb::create_qp, EINVAL);
  QpDepths given = depths;
  given.inline_bytes = std::min(depths.inline_bytes, device.spec.inline_bytes);
  return std::make_unique<FakeQp>(*this, dynamic_cast<FakeDomain&>(domain), dynamic_cast<FakeCq&>(cq), given);
}

VerbResult<AsyncNews> FakeOpened::take_news() {
  const std::lock_guard lock(host.fabric_.mutex_);
  if (const int error = host.fault(Verb::get_async_event, &device)) return failed(Verb::get_async_event, error);
  uint64_t one = 0;
  if (::read(event_.get(), &one, sizeof one) != sizeof one) return AsyncNews{};
  const AsyncNews news = news_.front();
  news_.pop_front();
  return news;
}

void FakeOpened::tell(AsyncNews news) {
  news_.push_back(news);
  ring(event_);
}

// --- FakeDomain, FakeMemory ---

FakeDomain::FakeDomain(FakeOpened& o) : opened(o) {
  ++opened.host.objects_.domains;
  ++opened.children;
}

FakeDomain::~FakeDomain() {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (!regions.empty() || queue_pairs != 0) opened.host.fabric_.blame("a domain was freed before what is in it");
  --opened.host.objects_.domains;
  --opened.children;
}

VerbResult<std::unique_ptr<VerbsMemory>> FakeDomain::register_memory(std::span<std::byte> memory, Access access) {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (const int error = opened.host.fault(Verb::reg_mr, &opened.device)) return failed(Verb::reg_mr, error);
  const uint32_t key = opened.host.fabric_.next_key_++;
  return std::make_unique<FakeMemory>(*this, memory, access, key);
}

bool FakeDomain::holds(uint32_t local_key, std::span<const std::byte> bytes) const {
  return std::ranges::any_of(regions, [&](const FakeMemory* region) {
    return region->key == local_key && bytes.data() >= region->memory.data() &&
           bytes.data() + bytes.size() <= region->memory.data() + region->memory.size();
  });
}

const FakeMemory* FakeDomain::find_remote(uint32_t remote_key) const {
  const auto found = std::ranges::find(regions, remote_key, &FakeMemory::remote_key);
  return found == regions.end() ? nullptr : *found;
}

FakeMemory::FakeMemory(FakeDomain& d, std::span<std::byte> m, Access a, uint32_t k)
    : domain(d), memory(m), access(a), key(k) {
  domain.regions.push_back(this);
  ++domain.opened.host.objects_.regions;
}

FakeMemory::~FakeMemory() {
  FakeHost& host = domain.opened.host;
  const std::lock_guard lock(host.fabric_.mutex_);
  std::erase(domain.regions, this);
  --host.objects_.regions;
}

// --- FakeChannel, FakeCq ---

FakeChannel::FakeChannel(FakeOpened& o) : opened(o), event_(make_event()) {
  ++opened.host.objects_.channels;
  ++opened.children;
}

FakeChannel::~FakeChannel() {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (queues != 0) opened.host.fabric_.blame("a completion channel was destroyed before its queues");
  --opened.host.objects_.channels;
  --opened.children;
}

VerbResult<bool> FakeChannel::take_event() {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (const int error = opened.host.fault(Verb::get_cq_event, &opened.device)) return failed(Verb::get_cq_event, error);
  uint64_t one = 0;
  return ::read(event_.get(), &one, sizeof one) == sizeof one;
}

void FakeChannel::tell() { ring(event_); }

FakeCq::FakeCq(FakeOpened& o, FakeChannel& c, uint32_t d) : opened(o), channel(c), depth(d) {
  ++opened.host.objects_.completion_queues;
  ++opened.children;
  ++channel.queues;
}

FakeCq::~FakeCq() {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (queue_pairs != 0) opened.host.fabric_.blame("a completion queue was destroyed before its queue pairs");
  --opened.host.objects_.completion_queues;
  --opened.children;
  --channel.queues;
}

VerbResult<size_t> FakeCq::poll(std::span<WorkCompletion> out) {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (const int error = opened.host.fault(Verb::poll_cq, &opened.device)) return failed(Verb::poll_cq, error);
  size_t n = 0;
  for (; n < out.size() && !entries_.empty(); ++n) {
    const Entry& entry = entries_.front();
    entry.qp->retired(entry.receive, entry.retires);
    out[n] = entry.completion;
    entries_.pop_front();
  }
  return n;
}

VerbResult<void> FakeCq::request_notification() {
  const std::lock_guard lock(opened.host.fabric_.mutex_);
  if (const int error = opened.host.fault(Verb::req_notify_cq, &opened.device)) {
    return failed(Verb::req_notify_cq, error);
  }
  armed_ = true;
  return {};
}

void FakeCq::add(FakeQp& qp, bool receive, uint32_t retires, WorkCompletion completion) {
  FakeFabric& fabric = opened.host.fabric_;
  if (entries_.size() == depth) return fabric.blame("a completion queue ran over");
  auto at = entries_.end();
  if (fabric.rng_) {
    // Anywhere behind the last one of this queue pair.
    size_t free = 0;
    for (auto it = entries_.rbegin(); it != entries_.rend() && it->qp != &qp; ++it) ++free;
    at -= static_cast<ptrdiff_t>(fabric.rng_->below(free + 1));
  }
  entries_.insert(at, {&qp, receive, retires, completion});
  if (std::exchange(armed_, false)) channel.tell();
}

void FakeCq::forget(const FakeQp& qp) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.qp == &qp; });
}

}  // namespace cairn::srpc::rdma::testing
