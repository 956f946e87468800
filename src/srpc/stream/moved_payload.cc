#include "srpc/stream/moved_payload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "srpc/stream/checksums.h"

namespace cairn::srpc::stream {
namespace {

// Smaller payload is cheaper in the stream, and is no aligned I/O anyway.
constexpr size_t kMinMoved = kBulkBytes;

size_t bytes_of(std::span<const RemotePiece> pieces) {
  size_t sum = 0;
  for (const RemotePiece& piece : pieces) sum += piece.bytes;
  return sum;
}

// The first `bytes` of them; they hold as many.
std::vector<RemotePiece> first_bytes(std::span<const RemotePiece> pieces, size_t bytes) {
  std::vector<RemotePiece> first;
  for (RemotePiece piece : pieces) {
    if (bytes == 0) break;
    piece.bytes = static_cast<uint32_t>(std::min<size_t>(piece.bytes, bytes));
    bytes -= piece.bytes;
    first.push_back(piece);
  }
  ASSERT(bytes == 0);
  return first;
}

}  // namespace

class MovedPayload::Pull final : public Transfer {
 public:
  Pull(std::shared_ptr<MovedPayload*> self, std::unique_ptr<Pulled> message, mem::BufChain&& into,
       std::span<const RemotePiece> pieces, std::span<const std::byte> table)
      : Transfer(Direction::pull, std::move(into), {pieces.begin(), pieces.end()}),
        message(std::move(message)),
        table(table.begin(), table.end()),
        self_(std::move(self)) {}

  void done(bool ok) override {
    if (*self_ == nullptr) return;
    (*self_)->pulling_bytes_ -= message->header.data_bytes;
    if (ok) (*self_)->on_pulled(*this);
  }

  std::unique_ptr<Pulled> message;
  std::vector<std::byte> table;  // of checksums

 private:
  std::shared_ptr<MovedPayload*> self_;
};

class MovedPayload::Push final : public Transfer {
 public:
  Push(std::shared_ptr<size_t> under_way, const mem::BufChain& data, std::vector<RemotePiece>&& to)
      : Transfer(Direction::push, mem::BufChain(data), std::move(to)), under_way_(std::move(under_way)) {
    *under_way_ += local.size();
  }
  ~Push() override { *under_way_ -= local.size(); }
  void done(bool) override {}

 private:
  std::shared_ptr<size_t> under_way_;
};

std::span<const std::byte> MovedPayload::name(OneSided& side, Header& header, const mem::BufChain& data,
                                              mem::BufChain&& reply_memory) {
  pieces_.clear();
  const bool data_named = data.size() >= kMinMoved && side.name(data, kMaxPieces / 2, pieces_);
  if (!data_named) pieces_.clear();
  const size_t data_pieces = pieces_.size();
  const bool reply_named = reply_memory.size() >= kMinMoved && side.name(reply_memory, kMaxPieces / 2, pieces_);
  if (!reply_named) pieces_.resize(data_pieces);
  if (pieces_.empty()) return {};
  ASSERT(pieces_.size() <= kMaxPieces);

  header.names_memory = true;
  header.elsewhere = data_named;
  header.unchecked = data_named && !side.checked();
  Named& named = named_[header.request_id];
  if (data_named) named.data = mem::BufChain(data);
  if (reply_named) named.reply = std::move(reply_memory);

  const MemoryCounts counts{.data = static_cast<uint8_t>(data_pieces),
                            .reply = static_cast<uint8_t>(pieces_.size() - data_pieces),
                            .reserved = {}};
  const auto pieces = std::as_bytes(std::span(pieces_));
  const auto end = std::as_bytes(std::span(&counts, 1));
  block_.assign(pieces.begin(), pieces.end());
  block_.insert(block_.end(), end.begin(), end.end());
  return block_;
}

mem::BufChain MovedPayload::named_for(const Header& reply) const {
  const auto named = named_.find(reply.request_id);
  if (named == named_.end() || named->second.reply.size() < reply.data_bytes) return {};
  return mem::BufChain(named->second.reply).split_front(reply.data_bytes);
}

void MovedPayload::keep_named(OneSided& side) {
  if (named_.empty()) return;
  std::vector<mem::BufChain> memory;
  for (auto& [id, named] : named_) {
    if (!named.data.empty()) memory.push_back(std::move(named.data));
    if (!named.reply.empty()) memory.push_back(std::move(named.reply));
  }
  named_.clear();
  side.keep(std::move(memory));
}

void MovedPayload::requested(uint64_t request_id, std::span<const RemotePiece> reply_pieces) {
  if (!reply_pieces.empty()) reply_pieces_[request_id].assign(reply_pieces.begin(), reply_pieces.end());
}

void MovedPayload::pull(OneSided& side, Incoming& message, std::span<const RemotePiece> pieces,
                        std::span<const std::byte> checksum_table) {
  ASSERT(message.data.size() == message.header.data_bytes);
  auto kept = std::make_unique<Pulled>();
  kept->header = message.header;
  kept->metadata.assign(message.metadata.begin(), message.metadata.end());
  kept->arrived = message.arrived;
  pulling_bytes_ += message.header.data_bytes;
  side.begin(std::make_unique<Pull>(self_, std::move(kept), std::move(message.data), pieces, checksum_table));
}

bool MovedPayload::matches(const mem::BufChain& data, std::span<const std::byte> checksum_table) {
  bool all = true;
  PageChecksums checksums;
  const auto check = [&](size_t index, uint32_t crc) {
    Le32 wanted;
    // cairn-allow(memcpy): framing or metadata, never payload
    std::memcpy(&wanted, checksum_table.data() + index * sizeof wanted, sizeof wanted);
    all = all && wanted == crc;
  };
  data.for_each([&](std::span<const std::byte> piece) { checksums.feed(piece, check); });
  checksums.finish(check);
  return all;
}

void MovedPayload::on_pulled(Pull& pull) {
  pull.message->damaged = !pull.message->header.unchecked && !matches(pull.local, pull.table);
  if (!pull.message->damaged) pull.message->data = std::move(pull.local);
  pulled_.push_back(std::move(pull.message));
  owner_->on_pulled();
}

Incoming MovedPayload::take_pulled() {
  taken_ = std::move(pulled_.front());
  pulled_.pop_front();
  return {.header = taken_->header,
          .metadata = taken_->metadata,
          .data = std::move(taken_->data),
          .damaged = taken_->damaged,
          .arrived = taken_->arrived};
}

void MovedPayload::push(OneSided& side, Header& reply, const mem::BufChain& data) {
  if (reply_pieces_.empty()) return;
  const auto named = reply_pieces_.extract(reply.request_id);
  if (named.empty() || data.size() < kMinMoved || bytes_of(named.mapped()) < data.size()) return;
  reply.elsewhere = true;
  reply.unchecked = !side.checked();
  side.begin(std::make_unique<Push>(pushing_bytes_, data, first_bytes(named.mapped(), data.size())));
}

void MovedPayload::forget() {
  *self_ = nullptr;
  pulled_.clear();
  reply_pieces_.clear();
}

}  // namespace cairn::srpc::stream
