// MovedPayload: the payload of one connection that isn't in its stream, because the server moves it (one_sided.h).
//
//   client                                            server
//     │ request, names its data and memory for the reply │
//     ├─────────────────────────────────────────────────►│ takes memory
//     │◄═════════════════════ pull ══════════════════════│ handler
//     │◄═════════════════════ push ══════════════════════│
//     │◄──────────────────────────────────── reply ──────┤
//
// Invariants: the client holds what it has named until the reply has come or the server can't reach it any more. The
// server holds its end of a transfer until that is complete. A reply's data goes where its request said, or, when there
// is no room for it, follows its header as on any stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "mem/buf_chain.h"
#include "srpc/stream/one_sided.h"
#include "srpc/transport.h"
#include "srpc/wire.h"

namespace cairn::srpc::stream {

class MovedPayload {
 public:
  // Payload under way to one end: further requests wait. Above what honest clients may have under way.
  static constexpr size_t kMaxPulling = size_t{64} << 20;

  class Owner {
   public:
    // A pulled message can be taken. Perhaps inside pull().
    virtual void on_pulled() = 0;

   protected:
    ~Owner() = default;
  };

  explicit MovedPayload(Owner& owner) : owner_(&owner) {}
  MovedPayload(const MovedPayload&) = delete;
  MovedPayload& operator=(const MovedPayload&) = delete;
  ~MovedPayload() { forget(); }

  // --- At a client ---

  // Before a request is sent: names its data, if that is worth it and possible, and where the reply's may go. Returns
  // what goes behind its metadata, empty if nothing; then `header` says what was named.
  std::span<const std::byte> name(OneSided& side, Header& header, const mem::BufChain& data,
                                  mem::BufChain&& reply_memory);
  // Where the data of this reply, which is elsewhere, has come to; empty when nothing of that size was named.
  mem::BufChain named_for(const Header& reply) const;
  // A reply has come.
  void answered(uint64_t request_id) {
    if (!named_.empty()) named_.erase(request_id);
  }
  // The connection ends.
  void keep_named(OneSided& side);

  // --- At a server ---

  void requested(uint64_t request_id, std::span<const RemotePiece> reply_pieces);
  // Begins to fetch the data of a message, into the memory that it has been given. `message` is copied.
  void pull(OneSided& side, Incoming& message, std::span<const RemotePiece> pieces,
            std::span<const std::byte> checksum_table);
  bool may_pull() const { return pulling_bytes_ < kMaxPulling; }
  // Before a reply is sent: pushes its data if its request named memory for it; then `reply` says so.
  void push(OneSided& side, Header& reply, const mem::BufChain& data);
  size_t pushing_bytes() const { return *pushing_bytes_; }

  // A message whose data has been fetched. Its metadata is valid until the next call.
  bool has_pulled() const { return !pulled_.empty(); }
  Incoming take_pulled();

  // Whether these are the checksums of `data`.
  static bool matches(const mem::BufChain& data, std::span<const std::byte> checksum_table);

  // Transfers that are under way have nobody to tell any more.
  void forget();

 private:
  class Pull;
  class Push;
  struct Named {
    mem::BufChain data;
    mem::BufChain reply;
  };
  struct Pulled {
    Header header;
    std::vector<std::byte> metadata;
    mem::BufChain data;
    bool damaged = false;
    Time arrived;
  };

  void on_pulled(Pull& pull);

  Owner* owner_;
  // Of transfers: null once nobody waits for them.
  std::shared_ptr<MovedPayload*> self_ = std::make_shared<MovedPayload*>(this);
  std::vector<RemotePiece> pieces_;
  std::vector<std::byte> block_;
  std::unordered_map<uint64_t, Named> named_;  // by request id
  std::unordered_map<uint64_t, std::vector<RemotePiece>> reply_pieces_;
  std::deque<std::unique_ptr<Pulled>> pulled_;
  std::unique_ptr<Pulled> taken_;
  size_t pulling_bytes_ = 0;
  std::shared_ptr<size_t> pushing_bytes_ = std::make_shared<size_t>(0);
};

}  // namespace cairn::srpc::stream
