#include <algorithm>
#include <cerrno>
#include <utility>

#include "srpc/rdma/testing/fake_objects.h"

namespace cairn::srpc::rdma::testing {
namespace {

std::unexpected<VerbError> failed(Verb verb, int error) { return std::unexpected(VerbError{verb, error}); }

}  // namespace

FakeQp::FakeQp(FakeOpened& opened, FakeDomain& domain, FakeCq& cq, const QpDepths& depths)
    : opened_(opened), domain_(domain), cq_(cq), depths_(depths), number_(opened.host.fabric_.next_number_++) {
  opened_.host.fabric_.queue_pairs_.push_back(this);
  ++opened_.host.objects_.queue_pairs;
  ++opened_.children;
  ++domain_.queue_pairs;
  ++cq_.queue_pairs;
}

FakeQp::~FakeQp() {
  if (!destroyed_) (void)destroy();
  if (!destroyed_) (void)destroy();  // a fault is over by now
}

VerbResult<void> FakeQp::destroy() {
  FakeFabric& fabric = opened_.host.fabric_;
  const std::lock_guard lock(fabric.mutex_);
  if (const int error = opened_.host.fault(Verb::destroy_qp, &opened_.device)) return failed(Verb::destroy_qp, error);
  destroyed_ = true;
  cq_.forget(*this);
  std::erase(fabric.queue_pairs_, this);
  --opened_.host.objects_.queue_pairs;
  --opened_.children;
  --domain_.queue_pairs;
  --cq_.queue_pairs;
  if (!fabric.held_) fabric.progress(SIZE_MAX);  // to its peer it is gone
  return {};
}

// --- States ---

VerbResult<void> FakeQp::move(Verb verb, State from, State to, bool valid) {
  if (const int error = opened_.host.fault(verb, &opened_.device)) return failed(verb, error);
  if (state_ != from || !valid) return failed(verb, EINVAL);
  state_ = to;
  if (!opened_.host.fabric_.held_) opened_.host.fabric_.progress(SIZE_MAX);
  return {};
}

VerbResult<void> FakeQp::to_init(uint8_t port, Access access) {
  const std::lock_guard lock(opened_.host.fabric_.mutex_);
  port_ = port;
  access_ = access;
  return move(Verb::modify_qp_init, State::reset, State::init, port >= 1 && port <= opened_.device.ports.size());
}

VerbResult<void> FakeQp::to_rtr(const Path& path) {
  const std::lock_guard lock(opened_.host.fabric_.mutex_);
  path_ = path;
  const PortFacts& facts = opened_.device.ports[port_ - 1U].facts;
  const bool valid = path.port == port_ && path.mtu <= facts.active_mtu_bytes && path.remote_qpn <= 0xffffff &&
                     path.remote_psn <= 0xffffff && path.gid_index < facts.gids.size() &&
                     path.reads_answered <= opened_.device.spec.limits.reads_answered;
  return move(Verb::modify_qp_rtr, State::init, State::rtr, valid);
}

VerbResult<void> FakeQp::to_rts(const Sending& sending) {
  const std::lock_guard lock(opened_.host.fabric_.mutex_);
  sending_ = sending;
  return move(Verb::modify_qp_rts, State::rtr, State::rts,
              sending.psn <= 0xffffff && sending.reads_issued <= opened_.device.spec.limits.reads_issued);
}

VerbResult<void> FakeQp::to_error() {
  const std::lock_guard lock(opened_.host.fabric_.mutex_);
  if (const int error = opened_.host.fault(Verb::modify_qp_err, &opened_.device)) {
    return failed(Verb::modify_qp_err, error);
  }
  fail();
  if (!opened_.host.fabric_.held_) opened_.host.fabric_.progress(SIZE_MAX);
  return {};
}

void FakeQp::fail() {
  state_ = State::error;
  while (!sends_.empty()) complete(CompletionStatus::flushed);
  for (const ReceiveRequest& receive : receives_) cq_.add(*this, true, 1, {receive.id, CompletionStatus::flushed, 0});
  receives_.clear();
}

void FakeQp::give_up() {
  if (state_ != State::rts || sends_.empty()) return;
  complete(CompletionStatus::retries_exceeded);
}

// --- Posting ---

VerbResult<void> FakeQp::post(const SendRequest& request) {
  FakeFabric& fabric = opened_.host.fabric_;
  const std::lock_guard lock(fabric.mutex_);
  if (const int error = opened_.host.fault(Verb::post_send, &opened_.device)) return failed(Verb::post_send, error);
  if (state_ != State::rts && state_ != State::error) return failed(Verb::post_send, EINVAL);
  if (sends_used_ == depths_.sends) {
    fabric.blame("more was posted than the send queue holds");
    return failed(Verb::post_send, ENOMEM);
  }
  if (request.inlined && (request.local.size() > depths_.inline_bytes || request.kind == SendRequest::Kind::read)) {
    fabric.blame("more was inlined than the queue pair takes");
    return failed(Verb::post_send, EINVAL);
  }
  if (request.kind == SendRequest::Kind::read && reads_waiting() >= sending_.reads_issued) {
    fabric.blame("a READ more than agreed: the send queue stands still");
  }
  ++sends_used_;
  Waiting& waiting = sends_.emplace_back();
  waiting.request = request;
  if (request.inlined) {
    ++fabric.inlined_;
    waiting.copy.assign(request.local.begin(), request.local.end());
  }
  if (state_ == State::error) {
    fail();
  } else if (!fabric.held_) {
    fabric.progress(SIZE_MAX);
  }
  return {};
}

size_t FakeQp::reads_waiting() const {
  return static_cast<size_t>(std::ranges::count_if(
      sends_, [](const Waiting& waiting) { return waiting.request.kind == SendRequest::Kind::read; }));
}

VerbResult<void> FakeQp::post(const ReceiveRequest& request) {
  FakeFabric& fabric = opened_.host.fabric_;
  const std::lock_guard lock(fabric.mutex_);
  if (const int error = opened_.host.fault(Verb::post_recv, &opened_.device)) return failed(Verb::post_recv, error);
  if (state_ == State::reset) return failed(Verb::post_recv, EINVAL);
  if (receives_used_ == depths_.receives) {
    fabric.blame("more was posted than the receive queue holds");
    return failed(Verb::post_recv, ENOMEM);
  }
  ++receives_used_;
  receives_.push_back(request);
  if (state_ == State::error) {
    fail();
  } else if (!fabric.held_) {
    fabric.progress(SIZE_MAX);
  }
  return {};
}

// --- The network ---

// Ends the oldest request.
void FakeQp::complete(CompletionStatus status) {
  const SendRequest request = sends_.front().request;
  sends_.pop_front();
  ++unsignaled_;
  if (request.signaled || status != CompletionStatus::success) {
    cq_.add(*this, false, std::exchange(unsignaled_, 0), {request.id, status, 0});
  }
  if (status != CompletionStatus::success && state_ != State::error) fail();
}

bool FakeQp::step() {
  if (state_ != State::rts || sends_.empty() || opened_.host.dead_ || !port_up()) return false;
  FakeQp* peer = opened_.host.fabric_.find(path_.remote_gid, path_.remote_qpn);
  if (peer == nullptr || peer->state_ == State::error) {
    complete(CompletionStatus::retries_exceeded);
    return true;
  }
  if (!peer->port_up() || peer->state_ == State::reset || peer->state_ == State::init) return false;
  // A peer that expects another, or other numbers, doesn't hear it.
  if (peer->path_.remote_qpn != number_ || peer->path_.remote_gid != gid() || peer->path_.remote_psn != sending_.psn) {
    complete(CompletionStatus::retries_exceeded);
    return true;
  }
  return carry_out(*peer);
}

bool FakeQp::carry_out(FakeQp& peer) {
  const Waiting& waiting = sends_.front();
  const SendRequest& request = waiting.request;
  if (!request.inlined && !domain_.holds(request.local_key, request.local)) {
    complete(CompletionStatus::local_protection);
    return true;
  }
  if (request.kind == SendRequest::Kind::send) {
    return deliver(peer, request.inlined ? std::span<const std::byte>(waiting.copy) : request.local);
  }
  return access(peer);
}

bool FakeQp::deliver(FakeQp& peer, std::span<const std::byte> bytes) {
  FakeFabric& fabric = opened_.host.fabric_;
  if (bytes.empty()) {
    ++fabric.vanished_;
    fabric.blame("a message without bytes");
    complete(CompletionStatus::success);
    return true;
  }
  if (peer.receives_.empty()) {
    ++fabric.rnr_waits_;
    if (sending_.rnr_retries == 7 || ++sends_.front().rnr_tries <= sending_.rnr_retries) return false;
    complete(CompletionStatus::rnr_retries_exceeded);
    return true;
  }
  const ReceiveRequest receive = peer.receives_.front();
  peer.receives_.pop_front();
  if (bytes.size() > receive.local.size() || !peer.domain_.holds(receive.local_key, receive.local)) {
    peer.cq_.add(peer, true, 1, {receive.id, CompletionStatus::local_length, 0});
    peer.fail();
    complete(CompletionStatus::remote_invalid_request);
    return true;
  }
  std::ranges::copy(bytes, receive.local.begin());
  peer.cq_.add(peer, true, 1, {receive.id, CompletionStatus::success, static_cast<uint32_t>(bytes.size())});
  complete(CompletionStatus::success);
  return true;
}

bool FakeQp::access(FakeQp& peer) {
  const SendRequest& request = sends_.front().request;
  const bool read = request.kind == SendRequest::Kind::read;
  if (request.local.empty()) opened_.host.fabric_.blame("a READ or WRITE without bytes");
  if (read && (peer.path_.reads_answered == 0 || sending_.reads_issued > peer.path_.reads_answered)) {
    complete(CompletionStatus::remote_invalid_request);
    return true;
  }
  const FakeMemory* region = peer.domain_.find_remote(request.remote_key);
  const auto start = region == nullptr ? 0 : reinterpret_cast<uintptr_t>(region->memory.data());
  const bool open = region != nullptr &&
                    (read ? region->access.remote_read && peer.access_.remote_read
                          : region->access.remote_write && peer.access_.remote_write) &&
                    request.remote_address >= start && request.remote_address - start <= region->memory.size() &&
                    request.local.size() <= region->memory.size() - (request.remote_address - start);
  if (!open) {
    peer.fail();
    complete(CompletionStatus::remote_access);
    return true;
  }
  const auto remote = region->memory.subspan(request.remote_address - start, request.local.size());
  if (read) {
    std::ranges::copy(remote, request.local.begin());
  } else {
    std::ranges::copy(request.local, remote.begin());
  }
  complete(CompletionStatus::success);
  return true;
}

}  // namespace cairn::srpc::rdma::testing
