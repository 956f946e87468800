#include "srpc/rdma/one_sided_queue.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "srpc/rdma/device.h"

namespace cairn::srpc::rdma {

bool OneSidedQueue::begin(std::unique_ptr<stream::Transfer> transfer) {
  auto op = std::make_unique<Op>();
  op->transfer = std::move(transfer);
  const bool known = plan(*op);
  if (!known || failed_) {
    op->transfer->done(false);
    return known;
  }
  if (!op->is_pull()) ++pushes_waiting_;
  ops_.push_back(std::move(op));
  post_more();
  return true;
}

bool OneSidedQueue::plan(Op& op) const {
  bool known = true;
  stream::for_each_run(
      op.transfer->local, op.transfer->remote,
      [&](std::span<const std::byte> local, const stream::RemotePiece& piece, size_t offset) {
        const auto keys = device_.keys(Role::server, local);
        known = known && keys.has_value();
        if (!known) return;
        for (size_t at = 0; at < local.size();) {
          const size_t n = std::min<uint64_t>(local.size() - at, limits_.max_message_bytes);
          // The device writes there for a pull. For a push it only reads.
          auto* const bytes = const_cast<std::byte*>(local.data()) + at;
          op.runs.push_back({{bytes, n}, keys->local, piece.address.get() + offset + at, piece.key.get()});
          at += n;
        }
      });
  return known;
}

void OneSidedQueue::post_more() {
  while (!failed_ && next_op_ < ops_.size()) {
    Op& op = *ops_[next_op_];
    if (op.all_posted()) {  // it had nothing to move
      set_posted(op);
      end_finished();
      continue;
    }
    if (under_way_ == limits_.depth || (op.is_pull() && reads_under_way_ == limits_.reads)) return;
    const Run& run = op.runs[op.posted++];
    ++under_way_;
    if (op.is_pull()) ++reads_under_way_;
    const bool last = op.all_posted();
    const SendRequest request{.kind = op.is_pull() ? SendRequest::Kind::read : SendRequest::Kind::write,
                              .local = run.local,
                              .local_key = run.local_key,
                              .remote_address = run.remote_address,
                              .remote_key = run.remote_key,
                              .signaled = last};
    if (last) set_posted(op);
    if (!poster_.post(request)) {
      // It isn't under way: undone, so that fail() ends it.
      --op.posted;
      --under_way_;
      if (op.is_pull()) --reads_under_way_;
      op.ok = false;
      return fail();
    }
  }
}

void OneSidedQueue::set_posted(Op& op) {
  ++next_op_;
  if (!op.is_pull()) --pushes_waiting_;
}

void OneSidedQueue::on_retired(SendRequest::Kind kind, bool ok) {
  ASSERT(!ops_.empty() && under_way_ > 0);
  Op& op = *ops_.front();
  --under_way_;
  if (kind == SendRequest::Kind::read) --reads_under_way_;
  ++op.retired;
  ASSERT(op.retired <= op.posted);
  op.ok = op.ok && ok;
  end_finished();
}

void OneSidedQueue::fail() {
  failed_ = true;
  for (auto& op : ops_) {
    if (op->all_posted()) continue;
    op->runs.resize(op->posted);
    op->ok = false;
  }
  next_op_ = ops_.size();
  pushes_waiting_ = 0;
  end_finished();
}

// done() may begin another transfer.
void OneSidedQueue::end_finished() {
  while (!ops_.empty() && ops_.front()->over() && (next_op_ > 0 || failed_)) {
    const auto op = std::move(ops_.front());
    ops_.pop_front();
    if (next_op_ > 0) --next_op_;
    op->transfer->done(op->ok);
  }
}

}  // namespace cairn::srpc::rdma
