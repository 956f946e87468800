#include "srpc/sequence_table.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc {
namespace {

// The two ends' clocks may run apart by this much over the age of a call.
constexpr Duration kClockSlack = seconds(1);

// Blocks, not slices: who keeps a byte of a block keeps all of it.
size_t bytes_of(const SequenceTable::Answer& answer) {
  size_t bytes = sizeof(SequenceTable::Record) + answer.metadata.size();
  for (const mem::Buf& buf : answer.data.slices()) bytes += buf.block() == nullptr ? 0 : buf.block()->size;
  return bytes;
}

}  // namespace

SequenceMetrics::SequenceMetrics(Registry& registry)
    : repeats(registry.counter("srpc_server_repeats_total", "Calls that came again after a lost connection")),
      refused(registry.counter("srpc_server_repeats_refused_total",
                               "Calls that came again and whose first answer is forgotten")),
      forgotten(registry.counter("srpc_server_answers_forgotten_total",
                                 "Answers forgotten before their client acknowledged them")),
      answers(registry.gauge("srpc_server_answers_kept", "Answers kept for repeated calls")),
      bytes(registry.gauge("srpc_server_answers_kept_bytes", "Memory that these take")) {}

SequenceTable::SequenceTable(Loop& loop, Registry& registry, const SequenceLimits& limits, size_t pool_bytes)
    : loop_(loop),
      limits_([&] {
        SequenceLimits within = limits;
        within.bytes = std::min<uint64_t>(within.bytes, pool_bytes / 8);
        within.channel_bytes = std::min(within.channel_bytes, within.bytes);
        return within;
      }()),
      metrics_(registry),
      timer_(&on_timer, this) {}

SequenceTable::~SequenceTable() {
  clear();
  ASSERT(channels_.empty());
}

SequenceTable::Channel* SequenceTable::join(const Sequence& sequence, Time began, bool& unknown) {
  unknown = false;
  auto at = channels_.find(sequence.channel);
  if (at == channels_.end()) {
    const Duration age = milliseconds(sequence.age_ms) + kClockSlack;
    const Time first_sent = sequence.age_ms == 0 ? began : Time{loop_.now().ns - age.ns};
    if (last_forgotten_ >= first_sent) {
      unknown = true;
      return nullptr;
    }
    if (channels_.size() >= limits_.channels && !forget_idle_channel()) return nullptr;
    at = channels_.try_emplace(sequence.channel, sequence.channel).first;
    if (!timer_.armed()) loop_.arm_in(timer_, limits_.keep / 2);
  }
  Channel& channel = at->second;
  ++channel.connections_;
  channel.last_used_ = loop_.now();
  return &channel;
}

void SequenceTable::leave(Channel& channel) {
  ASSERT(channel.connections_ > 0);
  --channel.connections_;
  channel.last_used_ = loop_.now();
}

SequenceTable::Record* SequenceTable::find(Channel& channel, const Sequence& sequence, bool& forgotten) {
  forgotten = false;
  if (sequence.age_ms > 0) metrics_.repeats.add();
  acknowledge(channel, sequence.done_below);
  const auto at = channel.records_.find(sequence.number);
  if (at != channel.records_.end()) return &at->second;
  forgotten = sequence.number < channel.floor_;
  return nullptr;
}

void SequenceTable::acknowledge(Channel& channel, uint64_t done_below) {
  if (done_below <= channel.floor_) return;
  channel.floor_ = done_below;
  for (auto at = channel.records_.begin(); at != channel.records_.end() && at->first < done_below;) {
    Record& record = at->second;
    ++at;
    // What still runs was given up by its client: it is dropped at its end.
    if (record.running == nullptr) drop(record);
  }
}

SequenceTable::Record& SequenceTable::begin(Channel& channel, uint64_t number, MethodId method, ServerCall& call) {
  ASSERT(number >= channel.floor_);
  const auto [at, added] = channel.records_.try_emplace(number, channel, number, method);
  ASSERT(added);
  at->second.running = &call;
  ++channel.running_;
  return at->second;
}

void SequenceTable::end(Record& record, Answer&& answer) {
  ASSERT(record.running != nullptr && record.waiting.empty());
  Channel& channel = record.channel;
  record.running = nullptr;
  ASSERT(channel.running_ > 0);
  --channel.running_;
  channel.last_used_ = loop_.now();
  record.answer = std::move(answer);
  record.bytes = bytes_of(record.answer);
  record.answered = loop_.now();
  record.older = newest_;
  (newest_ == nullptr ? oldest_ : newest_->newer) = &record;
  newest_ = &record;
  ++channel.answers_;
  channel.bytes_ += record.bytes;
  bytes_ += record.bytes;
  metrics_.answers.add(1);
  metrics_.bytes.add(static_cast<int64_t>(record.bytes));
  if (record.number < channel.floor_) return drop(record);
  make_place(channel);
}

void SequenceTable::make_place(Channel& channel) {
  // The lowest number first: the floor that this raises takes the fewest others along.
  for (auto at = channel.records_.begin();
       channel.answers_ > limits_.answers || channel.bytes_ > limits_.channel_bytes;) {
    ASSERT(at != channel.records_.end());
    Record& record = at->second;
    ++at;
    if (record.running == nullptr) forget(record);
  }
  while (bytes_ > limits_.bytes) forget(*oldest_);
}

void SequenceTable::forget(Record& record) {
  metrics_.forgotten.add();
  record.channel.floor_ = std::max(record.channel.floor_, record.number + 1);
  drop(record);
}

void SequenceTable::drop(Record& record) {
  ASSERT(record.running == nullptr);
  Channel& channel = record.channel;
  ASSERT(record.number < channel.floor_);
  --channel.answers_;
  channel.bytes_ -= record.bytes;
  bytes_ -= record.bytes;
  metrics_.answers.add(-1);
  metrics_.bytes.add(-static_cast<int64_t>(record.bytes));
  (record.older == nullptr ? oldest_ : record.older->newer) = record.newer;
  (record.newer == nullptr ? newest_ : record.newer->older) = record.older;
  channel.records_.erase(record.number);
}

bool SequenceTable::forget_idle_channel() {
  auto idle = channels_.end();
  for (auto at = channels_.begin(); at != channels_.end(); ++at) {
    const Channel& channel = at->second;
    if (channel.connections_ > 0 || channel.running_ > 0) continue;
    if (idle == channels_.end() || channel.last_used_ < idle->second.last_used_) idle = at;
  }
  if (idle == channels_.end()) return false;
  forget_channel(idle);
  return true;
}

void SequenceTable::forget_channel(std::map<Id128, Channel>::iterator at) {
  Channel& channel = at->second;
  ASSERT(channel.connections_ == 0 && channel.running_ == 0);
  while (!channel.records_.empty()) forget(channel.records_.begin()->second);
  channels_.erase(at);
  last_forgotten_ = loop_.now();
}

void SequenceTable::sweep() {
  const Time now = loop_.now();
  while (oldest_ != nullptr && now - oldest_->answered >= limits_.keep) forget(*oldest_);
  for (auto at = channels_.begin(); at != channels_.end();) {
    const auto next = std::next(at);
    const Channel& channel = at->second;
    const bool quiet = channel.connections_ == 0 && channel.records_.empty();
    if (quiet && now - channel.last_used_ >= limits_.keep) forget_channel(at);
    at = next;
  }
  if (!channels_.empty()) loop_.arm_in(timer_, limits_.keep / 2);
}

void SequenceTable::clear() {
  loop_.disarm(timer_);
  for (auto at = channels_.begin(); at != channels_.end();) {
    const auto next = std::next(at);
    forget_channel(at);
    at = next;
  }
}

}  // namespace cairn::srpc
