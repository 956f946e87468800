// Reader: turns a stream of bytes into messages. Pure: it says where the next bytes may go, is told how many came, and
// gives messages. The fuzzer and the tests drive it without a socket.
//
//   loop: next() ─┬─ message     deliver it
//                 ├─ need_memory give_memory(a chain of memory_wanted() bytes)
//                 ├─ elsewhere   a message whose data isn't in the stream: move it, or look where it was moved to
//                 ├─ need_bytes  plan() ─ receive ─ advance()
//                 └─ failed      the stream is of no more use
//
// Small things (headers, metadata, payload below 4 KiB) land in the stage, a buffer that belongs to the reader. Bulk
// payload lands in the memory it is given, and nowhere else: plan() never lets the stage take more than the sender's
// promises allow (wire.h). Payload that got into the stage all the same, because it is small or the sender breaks its
// promise, is copied and counted.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "mem/buf_chain.h"
#include "srpc/close_reason.h"
#include "srpc/stream/checksums.h"
#include "srpc/stream/one_sided.h"
#include "srpc/transport.h"
#include "srpc/wire.h"

namespace cairn::srpc::stream {

class Reader {
 public:
  // `copied`: the pool's counter.
  explicit Reader(Counter& copied);

  enum class Step : uint8_t { need_bytes, need_memory, message, elsewhere, failed };
  // With `message` and `elsewhere`, `out` is set; its metadata is valid until the next call of any function. With
  // `elsewhere` its data is the memory that was given.
  Step next(Incoming& out);

  // Where the next bytes may go: fills at least one entry of `out` and returns how many.
  size_t plan(std::span<iovec> out);
  // `n` bytes came, at `now`.
  void advance(size_t n, Time now);

  void limit_data(size_t max_bytes) { max_data_ = max_bytes; }
  void limit_version(uint8_t highest) { highest_version_ = highest; }
  // Messages of this kind may have their data elsewhere: requests where this end can move it, replies at the other.
  // At the start none may.
  void allow_elsewhere(Kind kind) { may_be_elsewhere_ = kind; }

  // Of the message given out last, as long as its metadata: where its data is, and where that of the reply may go.
  std::span<const RemotePiece> data_pieces() const { return {pieces_.data(), data_pieces_}; }
  std::span<const RemotePiece> reply_pieces() const { return std::span(pieces_).subspan(data_pieces_); }
  // The table of checksums, one for each page unless the header says that there are none.
  std::span<const std::byte> checksum_table() const { return stage(table_offset(), 4 * header_.crc_count()); }

  // After need_memory: how much, and for what kind of message.
  size_t memory_wanted() const { return header_.data_bytes; }
  const Header& header() const { return header_; }
  void give_memory(mem::BufChain&& memory);
  // In its place: the payload is read and thrown away, and the message comes without it (Incoming::no_memory).
  void skip_payload();

  // After `failed`.
  const Close& failure() const { return failure_; }
  // Between two messages, with nothing of the next one read.
  bool at_boundary() const { return phase_ == Phase::header && staged() == 0; }
  // The message given out last is the last thing that was read.
  bool nothing_behind_message() const {
    return phase_ == Phase::given && staged() == header_.prefix_bytes() + from_stage_;
  }
  // Counts the unfinished message as begun now: what it waited for was ours.
  void restart_clock(Time now) { began_ = last_advance_ = now; }
  // When the unfinished message began; never() when there is none.
  Time message_began() const { return at_boundary() ? Time::never() : began_; }

 private:
  enum class Phase : uint8_t {
    header,  // the stage begins with a header, or a part of one
    prefix,  // header_ is known; the rest of what stands before the data is missing
    memory,  // waiting for give_memory
    data,    // receiving into data_
    done,    // complete, not given out yet
    given,   // given out; its bytes leave the stage with the next call
    failed,
  };

  size_t staged() const { return end_ - begin_; }
  std::span<const std::byte> stage(size_t offset, size_t size) const { return {stage_.data() + begin_ + offset, size}; }
  size_t table_offset() const { return kHeaderBytes + (header_.metadata_bytes == 0 ? 0 : header_.metadata_bytes + 4); }
  void decode();
  void check_prefix();
  // Sets pieces_. False: the memory block makes no sense.
  bool read_memory_block();
  void copy_from_stage();
  void check_payload(size_t from, size_t size);
  void check_page(size_t index, uint32_t crc);
  void end_payload();
  void emit(Incoming& out);
  void consume();
  void reserve_stage(size_t bytes);
  void fail(CloseReason reason, std::string text);

  Counter& copied_;
  Phase phase_ = Phase::header;
  Header header_;
  Close failure_;
  size_t max_data_ = 0;
  uint8_t highest_version_ = kVersionMax;
  std::optional<Kind> may_be_elsewhere_;
  Time began_;

  // Invariant: [begin_, end_) holds the current message from its first byte, without the payload that went to data_
  // directly; behind its end what came after it.
  std::vector<std::byte> stage_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t window_ = kWindow;  // how far from begin_ the stage may reach
  size_t after_ = kWindow;   // the same for what follows the current message

  mem::BufChain data_;
  size_t received_ = 0;    // bytes of data_
  size_t from_stage_ = 0;  // those of them that were copied out of the stage
  PageChecksums checksums_;
  bool damaged_ = false;
  bool skipping_ = false;  // the payload, into nothing_
  std::vector<std::byte> nothing_;
  std::vector<RemotePiece> pieces_;
  size_t data_pieces_ = 0;   // the first of them
  size_t memory_block_ = 0;  // its bytes, at the end of the metadata
  Time last_advance_;
};

}  // namespace cairn::srpc::stream
