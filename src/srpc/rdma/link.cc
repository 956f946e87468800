#include "srpc/rdma/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::rdma {
namespace {

// Verbs allow 2 GiB; ports may say less.
uint64_t largest_message(const Port& port) {
  constexpr uint64_t kOurs = uint64_t{1} << 30;
  return port.max_message_bytes == 0 ? kOurs : std::min(port.max_message_bytes, kOurs);
}

std::string_view meaning_of(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::retries_exceeded:
      return " (the peer is gone, or the link is down)";
    case CompletionStatus::remote_access:
      return " (the peer has named memory that isn't open to us)";
    case CompletionStatus::flushed:
      return " (the device has ended the queue pair)";
    case CompletionStatus::rnr_retries_exceeded:
      return " (the peer doesn't post receives)";
    default:
      return "";
  }
}

// Slots, those for bare credits, payload, and the last one of all: see flush().
uint32_t depth_of(const QueueOptions& options, Role role) {
  return options.slots + 2U + (role == Role::server ? options.one_sided_depth : 0U) + 1U;
}

QueueOptions fit(QueueOptions options, const DeviceLimits& limits, Role role) {
  options.slots = std::clamp(options.slots, kMinSlots, kMaxSlots);
  options.slot_bytes = std::clamp(options.slot_bytes, kMinSlotBytes, kMaxSlotBytes);
  const uint32_t most = limits.queue_pair_depth;
  constexpr uint32_t kOthers = 4;  // at least
  if (options.slots + kOthers > most) {
    options.slots = static_cast<uint16_t>(most < kMinSlots + kOthers ? kMinSlots : most - kOthers);
  }
  const uint32_t left = most > options.slots + kOthers ? most - options.slots - kOthers + 1 : 1;
  options.one_sided_depth = static_cast<uint16_t>(std::clamp<uint32_t>(options.one_sided_depth, 1, left));
  const uint32_t reads = role == Role::server ? limits.reads_issued : limits.reads_answered;
  options.read_depth = static_cast<uint16_t>(std::clamp<uint32_t>(options.read_depth, 1, std::clamp(reads, 1U, 255U)));
  return options;
}

}  // namespace

Link::Session::Session(Link& link, const QpAddress& remote, uint32_t reads)
    : credits(link.options_.slots, remote.slots.get()),
      slot_bytes(std::min(link.options_.slot_bytes, remote.slot_bytes.get())),
      sends(depth_of(link.options_, link.role_),
            std::max<uint32_t>(1, std::min<uint32_t>({reads, link.options_.one_sided_depth, link.options_.slots}) / 2),
            link),
      one_sided(link.rail_.device(),
                {.depth = link.options_.one_sided_depth,
                 .reads = reads,
                 .max_message_bytes = largest_message(link.choice_.port)},
                link) {}

VerbResult<std::unique_ptr<Link>> Link::make(Rail& rail, const Rail::Choice& choice, Role role, uint32_t number,
                                             uint32_t psn, const QueueOptions& options, RdmaMetrics& metrics) {
  std::unique_ptr<Link> link(new Link(rail, choice, role, number, fit(options, rail.device().limits(), role), metrics));
  if (auto made = link->set_up(psn); !made) return std::unexpected(made.error());
  return link;
}

Link::Link(Rail& rail, const Rail::Choice& choice, Role role, uint32_t number, const QueueOptions& options,
           RdmaMetrics& metrics)
    : rail_(rail),
      role_(role),
      number_(number),
      options_(options),
      metrics_(metrics),
      choice_(choice),
      arrived_(options.slots) {}

VerbResult<void> Link::set_up(uint32_t psn) {
  const uint32_t depth = depth_of(options_, role_);
  auto queue = rail_.reserve(depth + options_.slots);
  if (!queue) return std::unexpected(queue.error());
  queue_ = *queue;
  auto slots = rail_.slots(role_);
  if (!slots) return std::unexpected(slots.error());
  auto memory = (*slots)->take();
  if (!memory) return std::unexpected(memory.error());
  slot_memory_ = *slots;
  memory_ = *memory;
  auto qp = rail_.device().verbs().make_qp(
      rail_.device().domain(role_), *queue_->cq,
      {.sends = depth, .receives = options_.slots, .inline_bytes = options_.inline_bytes});
  if (!qp) return std::unexpected(qp.error());
  qp_ = *std::move(qp);
  metrics_.queue_pairs.add(1);
  const bool client = role_ == Role::client;
  const uint8_t port = rail_.device().options().port;
  if (auto set = qp_->to_init(port, {.remote_read = client, .remote_write = client}); !set) return set;
  for (uint32_t slot = 0; slot < options_.slots; ++slot) {
    if (auto posted = post_receive(slot); !posted) return posted;
  }
  local_.link_layer = static_cast<uint8_t>(choice_.port.facts.link_layer);
  local_.lid = choice_.port.lid;
  local_.qpn = qp_->number();
  local_.psn = psn;
  local_.slot_bytes = options_.slot_bytes;
  local_.gid = choice_.gid.gid;
  local_.slots = options_.slots;
  local_.mtu = static_cast<uint16_t>(choice_.gid.path_mtu_bytes);
  local_.reads = options_.read_depth;
  return {};
}

Link::~Link() {
  if (qp_ != nullptr) {
    qp_.reset();
    metrics_.queue_pairs.add(-1);
  }
  if (session_) {
    session_->one_sided.fail();
    session_->sends.abandon();
  }
  if (slot_memory_ != nullptr) slot_memory_->give_back(memory_);
  if (queue_ != nullptr) Rail::release(*queue_, depth_of(options_, role_) + options_.slots);
}

VerbResult<void> Link::connect(const QpAddress& remote) {
  ASSERT(!session_);
  const uint32_t reads = std::min(local_.reads.get(), remote.reads.get());
  // Before the queue pair can receive anything.
  session_.emplace(*this, remote, reads);
  const RailOptions& rail = rail_.device().options();
  const bool client = role_ == Role::client;
  const Path path{.port = rail.port,
                  .link_layer = choice_.port.facts.link_layer,
                  .gid_index = choice_.gid.index,
                  .remote_gid = remote.gid,
                  .remote_lid = remote.lid,
                  .remote_qpn = remote.qpn,
                  .remote_psn = remote.psn,
                  .mtu = std::min(local_.mtu.get(), remote.mtu.get()),
                  .traffic_class = rail.traffic_class,
                  .service_level = rail.service_level,
                  .reads_answered = static_cast<uint8_t>(client ? reads : 0)};
  if (auto set = qp_->to_rtr(path); !set) return set;
  auto set = qp_->to_rts({.psn = local_.psn,
                          .timeout = rail.timeout,
                          .retries = rail.retries,
                          .rnr_retries = rail.rnr_retries,
                          .reads_issued = static_cast<uint8_t>(client ? 0 : reads)});
  may_post_ = set.has_value();
  return set;
}

// --- Receiving ---

std::span<std::byte> Link::receive_slot(uint32_t index) const {
  return memory_.bytes.subspan(size_t{index} * options_.slot_bytes, options_.slot_bytes);
}

std::span<std::byte> Link::send_slot(uint32_t index) const { return receive_slot(options_.slots + index); }

VerbResult<void> Link::post_receive(uint32_t slot) {
  auto posted = qp_->post(
      ReceiveRequest{.id = id_base() | kReceive | slot, .local = receive_slot(slot), .local_key = memory_.key});
  if (posted) ++receives_;
  return posted;
}

void Link::repost(uint32_t slot) {
  if (in_error_) return;
  if (auto posted = post_receive(slot); !posted) {
    return fail(rail_.device().name() + ": " + posted.error().to_string());
  }
  session_->credits.reposted();
}

void Link::on_completion(bool is_receive, uint32_t index, const WorkCompletion& completion) {
  const bool ok = completion.status == CompletionStatus::success;
  if (!ok) {
    metrics_.failed_completion(completion.status);
    fail(fmt::format("{}: {}{}", rail_.device().name(), status_name(completion.status), meaning_of(completion.status)));
  }
  if (!is_receive) {
    if (session_) (void)session_->sends.complete(index, ok);
    send_control();
    return;
  }
  if (receives_ == 0 || index >= options_.slots) return;
  --receives_;
  if (ok && session_ && !failed()) on_received(index, completion.bytes);
}

// Nothing of what is in the slot is trusted.
void Link::on_received(uint32_t slot, uint32_t bytes) {
  SlotHeader header;
  const auto nonsense = [&](std::string_view what) {
    fail(fmt::format("{}: the peer {}", rail_.device().name(), what));
  };
  if (bytes < sizeof header) return nonsense("sent less than a header");
  // cairn-allow(memcpy): framing, never payload
  std::memcpy(&header, receive_slot(slot).data(), sizeof header);
  if (header.bytes.get() != bytes - sizeof header || (header.flags & ~SlotHeader::kEnd) != 0) {
    return nonsense("sent a header that makes no sense");
  }
  if (!session_->credits.paid(header.credits)) return nonsense("gave back more credits than it had");
  if (end_received_ && header.bytes.get() > 0) return nonsense("sent more after its end");
  metrics_.receives.add();
  metrics_.receive_bytes.add(header.bytes.get());
  end_received_ = end_received_ || (header.flags & SlotHeader::kEnd) != 0;
  if (header.bytes.get() == 0 || retired_) {
    repost(slot);
  } else {
    ASSERT(arrived_count_ < arrived_.size());
    arrived_[(first_arrived_ + arrived_count_++) % arrived_.size()] = {static_cast<uint16_t>(slot), sizeof header,
                                                                       bytes};
    available_ += header.bytes.get();
  }
  send_control();
  tell();
}

size_t Link::receive(std::span<const iovec> vectors) {
  size_t total = 0;
  for (const iovec& vector : vectors) {
    for (size_t at = 0; at < vector.iov_len && arrived_count_ > 0;) {
      Arrived& arrived = arrived_[first_arrived_];
      const size_t n = std::min<size_t>(vector.iov_len - at, arrived.end - arrived.offset);
      // cairn-allow(memcpy): the slot is the wire
      std::memcpy(static_cast<std::byte*>(vector.iov_base) + at, receive_slot(arrived.slot).data() + arrived.offset, n);
      at += n;
      total += n;
      arrived.offset += static_cast<uint32_t>(n);
      if (arrived.offset < arrived.end) continue;
      first_arrived_ = (first_arrived_ + 1) % arrived_.size();
      --arrived_count_;
      repost(arrived.slot);
    }
  }
  available_ -= total;
  send_control();
  return total;
}

// --- Sending ---

bool Link::may_send() const {
  return may_post_ && !failed() && !retired_ && !end_due_ && !end_sent_ && room_for_bytes();
}

bool Link::room_for_bytes() const {
  // One of the two slots more than credits is for bare ones.
  return session_->credits.bytes_may_go() && send_slots_used_ + 2 <= send_slots() && !session_->one_sided.holds_push();
}

size_t Link::send(std::span<const iovec> vectors) {
  size_t total = 0;
  size_t index = 0;
  size_t offset = 0;  // in vectors[index]
  while (index < vectors.size() && may_send()) {
    const std::span<std::byte> slot = send_slot(next_send_slot_).first(session_->slot_bytes);
    size_t filled = sizeof(SlotHeader);
    while (index < vectors.size() && filled < slot.size()) {
      const size_t n = std::min(vectors[index].iov_len - offset, slot.size() - filled);
      // cairn-allow(memcpy): the slot is the wire
      std::memcpy(slot.data() + filled, static_cast<const std::byte*>(vectors[index].iov_base) + offset, n);
      filled += n;
      offset += n;
      if (offset == vectors[index].iov_len) {
        ++index;
        offset = 0;
      }
    }
    if (filled == sizeof(SlotHeader)) break;  // empty vectors
    send_one(static_cast<uint32_t>(filled - sizeof(SlotHeader)), 0);
    total += filled - sizeof(SlotHeader);
  }
  return total;
}

void Link::send_one(uint32_t bytes, uint8_t flags) {
  const uint32_t length = bytes + static_cast<uint32_t>(sizeof(SlotHeader));
  const std::span<std::byte> slot = send_slot(next_send_slot_).first(length);
  const SlotHeader header{.bytes = static_cast<uint16_t>(bytes), .credits = session_->credits.take(), .flags = flags};
  // cairn-allow(memcpy): framing, never payload
  std::memcpy(slot.data(), &header, sizeof header);
  metrics_.sends.add();
  metrics_.send_bytes.add(bytes);
  if (bytes == 0 && flags == 0) metrics_.bare_credits.add();
  next_send_slot_ = (next_send_slot_ + 1) % send_slots();
  ++send_slots_used_;
  // Without bytes it is rare, and may be the last for long: then it tells that those before it have arrived, too.
  if (!submit({.kind = SendRequest::Kind::send,
               .local = slot,
               .local_key = memory_.key,
               .signaled = bytes == 0,
               .inlined = length <= qp_->inline_bytes()})) {
    --send_slots_used_;
    if (session_) session_->one_sided.fail();
  }
}

void Link::send_control() {
  if (!may_post_ || failed()) return;
  if (end_due_ && room_for_bytes()) {
    end_due_ = false;
    end_sent_ = true;
    return send_one(0, SlotHeader::kEnd);
  }
  const Credits& credits = session_->credits;
  if (!retired_ && credits.bare_is_due() && credits.bare_may_go() && send_slots_used_ < send_slots()) send_one(0, 0);
}

void Link::end_sending() {
  if (end_sent_ || !may_post_ || failed()) return;
  end_due_ = true;
  send_control();
}

bool Link::post(const SendRequest& request) {
  if (request.kind == SendRequest::Kind::read) {
    metrics_.reads.add();
    metrics_.read_bytes.add(request.local.size());
  } else {
    metrics_.writes.add();
    metrics_.write_bytes.add(request.local.size());
  }
  return submit(request);
}

bool Link::submit(const SendRequest& request) {
  auto posted = session_->sends.post(*qp_, request, id_base());
  if (posted) return true;
  // Transfers end by whoever posted: it may be in the middle of their list.
  set_failed(rail_.device().name() + ": " + posted.error().to_string());
  return false;
}

void Link::on_retired(SendRequest::Kind kind, bool ok) {
  if (kind != SendRequest::Kind::send) {
    session_->one_sided.on_retired(kind, ok);
    session_->one_sided.post_more();
  } else {
    ASSERT(send_slots_used_ > 0);
    --send_slots_used_;
  }
  tell();
}

// --- The end ---

void Link::set_failed(std::string why) {
  if (!failure_) failure_ = std::move(why);
  flush();
  tell();
}

void Link::fail(std::string why) {
  set_failed(std::move(why));
  if (session_) session_->one_sided.fail();
}

void Link::retire(std::vector<mem::BufChain>&& kept) {
  user_ = nullptr;
  end_sending();
  retired_ = true;
  kept_ = std::move(kept);
  if (session_) session_->one_sided.fail();
}

void Link::flush() {
  if (std::exchange(in_error_, true)) return;
  unflushable_ = !qp_->to_error().has_value();
  if (unflushable_ || !session_ || session_->sends.empty()) return;
  // What had arrived already without being signaled isn't told of. One more request, which goes nowhere, is, and
  // retires those before it.
  ++send_slots_used_;
  const SendRequest last{.local = send_slot(0).first(sizeof(SlotHeader)), .local_key = memory_.key};
  unflushable_ = !session_->sends.post(*qp_, last, id_base()).has_value();
  if (unflushable_) --send_slots_used_;
}

VerbResult<void> Link::destroy() {
  if (auto destroyed = qp_->destroy(); !destroyed) return destroyed;
  qp_.reset();
  metrics_.queue_pairs.add(-1);
  return {};
}

}  // namespace cairn::srpc::rdma
