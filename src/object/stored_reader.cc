#include "object/stored_reader.h"

#include <fmt/core.h>

#include <utility>

namespace cairn::object {

StoredReader::StoredReader(Core& core, Objects::Found found, ByteRange range, CallContext context)
    : core_(core),
      context_(context),
      info_(std::move(found.info)),
      layout_(found.parts ? Layout(*found.parts) : Layout(found.record.data)),
      position_(range.offset),
      end_(range.offset + range.length) {
  ASSERT(end_ <= layout_.size());
  if (position_ == end_) return;
  start_fetch();
  if (position_ == end_) return;  // a single piece can't be caught half-way
  lease_ = std::make_shared<Lease>();
  lease_->group = found.bucket.group;
  lease_->data = found.record.data.id.lease();
  core_.background.spawn(&StoredReader::keep_lease, &core_, lease_, found.looked_up + kLeaseRenewal);
}

StoredReader::~StoredReader() {
  if (lease_ != nullptr) lease_->cancel.cancel();
}

void StoredReader::start_fetch() {
  const Piece piece = layout_.at(position_, end_);
  position_ += piece.length;
  ahead_ = std::make_shared<Fetch>(core_.loop);
  core_.background.spawn(&StoredReader::fetch, &core_, ahead_, piece, context_.deadline);
}

Task<void> StoredReader::fetch(Core* core, std::shared_ptr<Fetch> fetch, Piece piece, Time deadline) {
  Result<mem::BufChain> read =
      co_await core->client.chunk_read(piece.chunk, piece.offset, piece.length, {.deadline = deadline});
  if (read && read->size() != piece.length) {
    read = Error(Errc::corrupt,
                 fmt::format("chunk {} ends {} bytes too early", piece.chunk.to_string(), piece.length - read->size()));
  } else if (read.code() == Errc::not_found) {
    read = Error(Errc::unavailable, "the object was deleted while it was being read");
  }
  fetch->result = std::move(read);
  fetch->done.set();
}

Task<void> StoredReader::keep_lease(Core* core, std::shared_ptr<Lease> lease, Time from) {
  if (!co_await core->loop.sleep_until(from, lease->cancel)) co_return;
  for (;;) {
    core->metrics.leases.add();
    // An error: the next renewal is soon, and if they all fail, a read fails with a clear error.
    (void)co_await core->client.lease_renew(lease->group, lease->data, kLeaseTime,
                                            {.deadline = core->loop.now() + kLeaseRenewal});
    if (!co_await core->loop.sleep(kLeaseRenewal, lease->cancel)) co_return;
  }
}

Task<Result<void>> StoredReader::begin() {
  if (ahead_ == nullptr) co_return Result<void>{};
  CO_TRY(co_await ahead_->done.wait(context_.cancel));
  if (!ahead_->result) co_return ahead_->result.error();
  co_return Result<void>{};
}

Task<Result<mem::BufChain>> StoredReader::next() {
  if (ahead_ == nullptr) co_return mem::BufChain();
  CO_TRY(co_await ahead_->done.wait(context_.cancel));
  if (!ahead_->result) co_return ahead_->result.error();
  mem::BufChain piece = *std::move(ahead_->result);
  ahead_.reset();
  if (position_ < end_) start_fetch();
  co_return piece;
}

}  // namespace cairn::object
