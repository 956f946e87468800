#include "engine/journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace cairn::engine {
namespace {

constexpr size_t kMaxWritesInFlight = 4;
// Below the kernel's limit of 1024 for one request.
constexpr size_t kMaxBatchSlices = 512;

}  // namespace

struct Journal::Batch {
  explicit Batch(Journal& its_journal) : journal(its_journal) {}

  Journal& journal;
  BatchHeader header;
  boost::container::small_vector<Op*, 32> ops;
  // Device writes under way: of the batch itself, two when it wraps, and of its ops' payload.
  uint32_t own_writes = 0;
  uint32_t payload_writes = 0;

  mem::BufChain meta;
  boost::container::small_vector<iovec, 64> iovecs;
  struct Write : IoRequest {
    Batch* batch = nullptr;
  };
  std::array<Write, 2> writes;

  bool written() const { return own_writes == 0 && payload_writes == 0; }
};

Journal::Journal(Loop& loop, mem::Pool& pool, BlockDevice& device, ShardMetrics& metrics, Listener& listener,
                 Config config)
    : loop_(loop),
      pool_(pool),
      device_(device),
      metrics_(metrics),
      listener_(listener),
      config_(config),
      changed_(loop),
      mark_timer_(
          [](void* self) {
            static_cast<Journal*>(self)->mark_due_ = true;
            static_cast<Journal*>(self)->changed_.set();
          },
          this) {}

Journal::~Journal() {
  loop_.disarm(mark_timer_);
  ASSERT(queue_.empty() && batches_.empty());
}

void Journal::start(Lsn tail, Lsn next, uint64_t epoch) {
  ASSERT(tail <= next && next - tail <= capacity());
  tail_ = tail;
  next_ = durable_ = marked_ = next;
  epoch_ = epoch;
  metrics_.journal_used.set(static_cast<int64_t>(used_bytes()));
}

void Journal::stop() {
  stopping_ = true;
  loop_.disarm(mark_timer_);
  try_flush();
  changed_.set();
}

void Journal::set_tail(Lsn tail) {
  ASSERT(tail_ <= tail && tail <= first_unapplied());
  tail_ = tail;
  metrics_.journal_used.set(static_cast<int64_t>(used_bytes()));
}

void Journal::take_back(uint64_t bytes) {
  ASSERT(bytes <= promised_);
  promised_ -= bytes;
}

void Journal::entry_applied(Lsn batch) {
  const auto found = unapplied_.find(batch);
  ASSERT(found != unapplied_.end());
  if (--found->second == 0) unapplied_.erase(found);
}

void Journal::submit(Op& op, uint64_t promised) {
  op.promised_ = promised;
  queue_.push_back(&op);
  if (fenced_) end_failed();
  // run() goes on in the loop's next round, so everything that is appended in this one shares its batch.
  changed_.set();
}

void Journal::fence(Error why) {
  if (fenced_) return;
  LOG(error, "shard {}: {}: fenced, it takes no more writes until it is opened anew", config_.identity.shard,
      why.message());
  fenced_ = Error(Errc::device_fenced, why.message());
  metrics_.fenced.set(1);
  loop_.disarm(mark_timer_);
  end_failed();
  listener_.on_fenced(*fenced_);
}

Task<void> Journal::run() {
  while (!stopping_ || !queue_.empty() || !batches_.empty()) {
    const bool can_write = !fenced_ && writing_ < kMaxWritesInFlight;
    const bool has_work = !queue_.empty() || (mark_due_ && wants_mark());
    if (!can_write || !has_work) {
      changed_.reset();
      (void)co_await changed_.wait();
      continue;
    }
    mark_due_ = false;
    co_await write(take_batch());
  }
}

bool Journal::wants_mark() const {
  return !fenced_ && !stopping_ && queue_.empty() && batches_.empty() && marked_ < durable_ && has_room(kPageBytes, 0);
}

// Everything that is queued, up to the size of a batch. The positions are given here, in the order of submission.
std::unique_ptr<Journal::Batch> Journal::take_batch() {
  auto batch = std::make_unique<Batch>(*this);
  uint64_t record_bytes = 0;
  uint64_t payload_bytes = 0;
  uint64_t promised = 0;
  size_t slices = 2;
  while (!queue_.empty() && batch->ops.size() < kMaxBatchRecords) {
    Op& op = *queue_.front();
    const uint64_t more_record = encoded_bytes(op.entry_.record);
    const uint64_t more_payload = op.entry_.inline_payload.size();
    const size_t more_slices = op.entry_.inline_payload.slices().size();
    const uint64_t size = meta_bytes_for(record_bytes + more_record) + payload_bytes + more_payload;
    if (!batch->ops.empty() && (size > kBatchGoalBytes || slices + more_slices > kMaxBatchSlices)) break;
    record_bytes += more_record;
    payload_bytes += more_payload;
    slices += more_slices;
    promised += op.promised_;
    batch->ops.push_back(&op);
    queue_.pop_front();
  }
  const uint32_t meta_bytes = meta_bytes_for(record_bytes);
  batch->header = {.lsn = next_,
                   .epoch = epoch_,
                   .durable = durable_,
                   .meta_bytes = meta_bytes,
                   .batch_bytes = meta_bytes + static_cast<uint32_t>(payload_bytes),
                   .record_count = static_cast<uint32_t>(batch->ops.size())};
  ASSERT(batch->ops.empty() || batch->header.batch_bytes <= promised);
  take_back(promised);
  next_ = batch->header.end();
  ASSERT(used_bytes() <= capacity());
  Lsn payload = batch->header.lsn + meta_bytes;
  for (Op* op : batch->ops) {
    op->batch_ = batch.get();
    op->entry_.batch = batch->header.lsn;
    op->entry_.inline_lsn = payload;
    payload = payload + op->entry_.inline_payload.size();
    batch->payload_writes += op->writes_;
  }
  if (!batch->ops.empty()) unapplied_[batch->header.lsn] = static_cast<uint32_t>(batch->ops.size());
  return batch;
}

Task<void> Journal::write(std::unique_ptr<Batch> owned) {
  Batch& batch = *owned;
  // Stands in the list before it waits for memory: payload writes may end meanwhile, and fencing must find its ops.
  batch.own_writes = 1;
  ++writing_;
  batches_.push_back(std::move(owned));
  auto meta = co_await pool_.alloc_chain(batch.header.meta_bytes, mem::Purpose::internal);
  if (!meta) fence(Error(meta.error()).with_context("no memory for the journal"));
  if (fenced_) {
    on_written(batch, Errc::ok);  // ends its ops
    co_return;
  }
  batch.meta = *std::move(meta);
  BatchEncoder::Pieces pieces;
  for (mem::Buf piece : batch.meta.slices()) pieces.push_back(piece.writable_bytes());
  BatchEncoder encoder(std::move(pieces));
  for (Op* op : batch.ops) {
    encoder.add(op->entry_.record);
    op->entry_.record.body = {};
  }
  encoder.seal(batch.header, config_.identity);
  marked_ = batch.header.durable;
  submit_write(batch);
}

void Journal::submit_write(Batch& batch) {
  const auto add = [&batch](const mem::BufChain& chain) {
    const size_t old = batch.iovecs.size();
    batch.iovecs.resize(old + chain.slices().size());
    chain.to_iovecs({batch.iovecs.data() + old, chain.slices().size()});
  };
  add(batch.meta);
  for (Op* op : batch.ops) add(op->entry_.inline_payload);

  const uint64_t bytes = batch.header.batch_bytes;
  const uint64_t first = std::min(bytes, capacity() - batch.header.lsn.value % capacity());
  // Where the ring's end cuts the batch, the slice in question becomes two.
  size_t split = batch.iovecs.size();
  if (first < bytes) {
    uint64_t left = first;
    split = 0;
    while (left >= batch.iovecs[split].iov_len) left -= batch.iovecs[split++].iov_len;
    if (left > 0) {
      const iovec whole = batch.iovecs[split];
      batch.iovecs[split].iov_len = left;
      const iovec rest{static_cast<std::byte*>(whole.iov_base) + left, whole.iov_len - left};
      ++split;
      batch.iovecs.insert(batch.iovecs.begin() + static_cast<ptrdiff_t>(split), rest);
    }
  }
  const auto prepare = [&](Batch::Write& request, Lsn at, uint64_t length, size_t from, size_t to) {
    request.op = IoRequest::Op::write;
    request.offset = device_offset(config_.layout, at);
    request.length = length;
    request.iovecs = batch.iovecs.data() + from;
    request.iovec_count = static_cast<uint32_t>(to - from);
    request.batch = &batch;
    request.complete = [](IoRequest& done) {
      Batch& its_batch = *static_cast<Batch::Write&>(done).batch;
      its_batch.journal.on_written(its_batch, done.result);
    };
  };
  batch.own_writes = first < bytes ? 2 : 1;
  prepare(batch.writes[0], batch.header.lsn, first, 0, split);
  prepare(batch.writes[1], batch.header.lsn + first, bytes - first, split, batch.iovecs.size());
  metrics_.batches.add();
  metrics_.batch_entries.add(batch.ops.size());
  metrics_.journal_bytes.add(bytes);
  metrics_.journal_used.set(static_cast<int64_t>(used_bytes()));
  const uint32_t writes = batch.own_writes;
  for (uint32_t i = 0; i < writes; ++i) device_.submit(batch.writes[i]);
}

void Journal::on_written(Batch& batch, Errc result) {
  ASSERT(batch.own_writes > 0);
  if (--batch.own_writes == 0) {
    --writing_;
    changed_.set();
  }
  if (result != Errc::ok) {
    // Fencing may end the batch; it isn't touched afterwards.
    fence(Error(result, fmt::format("a journal write of {} bytes at position {} failed ({})", batch.header.batch_bytes,
                                    batch.header.lsn.value, errc_name(result))));
  }
  try_flush();
}

void Journal::on_payload_written(Op& op, Errc result) {
  ASSERT(op.writes_ > 0);
  --op.writes_;
  if (op.batch_ != nullptr) {
    ASSERT(op.batch_->payload_writes > 0);
    --op.batch_->payload_writes;
  }
  if (result != Errc::ok) {
    fence(Error(result, fmt::format("a write of payload failed ({})", errc_name(result))));
  }
  try_flush();
}

void Journal::try_flush() {
  if (fenced_) return end_failed();
  if (flushing_ > 0) return;
  size_t count = 0;
  bool has_entries = false;
  while (count < batches_.size() && batches_[count]->written()) has_entries |= !batches_[count++]->ops.empty();
  // A mark alone needs no flush: whatever comes next takes it along.
  if (count == 0 || (!has_entries && !stopping_)) return;
  flushing_ = count;
  flush_ = {};
  flush_.op = IoRequest::Op::flush;
  flush_.journal = this;
  flush_.complete = [](IoRequest& done) { static_cast<Flush&>(done).journal->on_flushed(done.result); };
  metrics_.flushes.add();
  device_.submit(flush_);
}

void Journal::on_flushed(Errc result) {
  const size_t count = std::exchange(flushing_, 0);
  if (result != Errc::ok) {
    fence(Error(result, fmt::format("a flush failed ({}): what was written since the last one may be lost",
                                    errc_name(result))));
  }
  // Whatever fenced it meanwhile: durable() stays where it was then, and a superblock may say so (Superblock::fenced).
  if (fenced_) return end_failed();
  for (size_t i = 0; i < count; ++i) {
    const Batch& batch = *batches_.front();
    durable_ = batch.header.end();
    for (Op* op : batch.ops) {
      op->entry_.durable = true;
      finish(*op, Errc::ok);
    }
    batches_.pop_front();
  }
  listener_.on_durable();
  if (queue_.empty() && batches_.empty() && !stopping_) {
    loop_.arm_in(mark_timer_, config_.idle_mark_delay);
  }
  try_flush();
  changed_.set();
}

void Journal::finish(Op& op, Errc result) {
  ASSERT(!op.done_ && op.writes_ == 0);
  op.batch_ = nullptr;
  op.result_ = result;
  op.done_ = true;
  if (op.handle_) loop_.post(op.handle_);
}

// After fencing: ends every op that no device operation needs any more. What a flush under way covers waits for it.
void Journal::end_failed() {
  ASSERT(fenced_);
  for (size_t i = flushing_; i < batches_.size();) {
    if (!batches_[i]->written()) {
      ++i;
      continue;
    }
    for (Op* op : batches_[i]->ops) finish(*op, Errc::device_fenced);
    batches_.erase(batches_.begin() + static_cast<ptrdiff_t>(i));
  }
  std::erase_if(queue_, [this](Op* op) {
    if (op->writes_ > 0) return false;
    take_back(op->promised_);
    finish(*op, Errc::device_fenced);
    return true;
  });
  changed_.set();
}

}  // namespace cairn::engine
