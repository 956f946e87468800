// UpgradingStream: a TCP connection that goes over to RDMA while calls go on. Only the stream of bytes below the
// messages changes, between two of them and in each direction for itself.
//
//   client                                                 server
//   plain                                                  plain
//     │ offer: its queue pair ───────────────────────────►   │ makes and connects a queue pair
//   offered                                                accepted
//     │ ◄────────────────────────── answer: its queue pair   │
//     │ connects its own                                     │
//   proving                                                  │
//     │ ════════════ RDMA: some bytes as a proof ════════►   │
//     │ ◄═══════════ RDMA: the same bytes ════════════════   │
//     │ switch, its last bytes on TCP ───────────────────►   │
//   leaving                                                leaving
//     │ ◄─────────────────── switch, its last bytes on TCP   │
//   upgraded                                               upgraded
//
// Until the client says switch either side can give up: the server answers the offer with a status, the client sends a
// switch with one. Then both are plain again, no call has noticed, and the client tries again later. After it there
// is no way back: a link that breaks ends the connection, and the next one begins with TCP.
//
// The proof is there because queue pairs come up without a packet: that the way is open, for packets as large as they
// will be, shows only when bytes have gone both ways.
//
// The TCP connection stays open, and says nothing any more: its end tells that the peer's process has died, which RDMA
// doesn't.
//
// Nothing that the peer sends is trusted: a message at a wrong moment or of a wrong size is an error of on_control().
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"
#include "reactor/timer.h"
#include "srpc/rdma/qp_address.h"
#include "srpc/rdma/rdma_poll_group.h"
#include "srpc/rdma/rdma_stream.h"
#include "srpc/rdma/upgrades.h"
#include "srpc/stream/byte_stream.h"
#include "srpc/tcp/tcp_stream.h"

namespace cairn::srpc::rdma {

class UpgradingStream final : public stream::ByteStream, private stream::Control {
 public:
  // `upgrades` outlives it.
  UpgradingStream(Upgrades& upgrades, Role role, std::shared_ptr<UpgradeHistory> history,
                  std::unique_ptr<tcp::TcpStream> tcp);
  ~UpgradingStream() override;

  void start(stream::StreamEvents& events) override;
  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void set_receiving(bool wanted) override;
  void want_flush() override;
  void shutdown_send() override;
  const std::string& peer() const override { return peer_; }
  std::string_view transport() const override { return state_ == State::upgraded ? "rdma" : "tcp"; }
  stream::OneSided* one_sided() override;
  stream::Control* control() override { return this; }
  std::unique_ptr<DetachedEndpoint> detach() override;

 private:
  enum class State : uint8_t { plain, offered, accepted, proving, leaving, upgraded };

  // Each of the two streams below has its own.
  struct TcpEvents final : stream::StreamEvents {
    explicit TcpEvents(UpgradingStream& owner) : self(owner) {}
    void on_receivable() override { self.events_->on_receivable(); }
    void on_sendable() override;
    void on_flush() override { self.events_->on_flush(); }
    UpgradingStream& self;
  };
  struct RdmaEvents final : stream::StreamEvents {
    explicit RdmaEvents(UpgradingStream& owner) : self(owner) {}
    void on_receivable() override { self.on_rdma_receivable(); }
    void on_sendable() override { self.on_rdma_sendable(); }
    void on_flush() override { self.events_->on_flush(); }
    UpgradingStream& self;
  };

  // Control.
  uint64_t features() const override { return kFeatureRdma; }
  void on_agreed(uint64_t features) override;
  Result<void> on_control(const Header& header, std::span<const std::byte> metadata, bool last) override;

  // The client's.
  void attempt();
  Result<void> on_answer(const Header& header, std::span<const std::byte> metadata);
  void give_up(const Error& why);
  void fall_back(std::string_view problem);
  void stay_with_tcp(std::string_view problem);
  void leave();
  // The server's.
  Result<void> on_offer(std::span<const std::byte> metadata);
  void refuse(const Error& why);
  Result<void> on_switch(const Header& header, std::span<const std::byte> metadata, bool last);

  void adopt(std::unique_ptr<RdmaStream> link);
  void move_proof();
  // True when all of it is through.
  bool receive_proof();
  bool send_proof();
  void link_failed(std::string problem);

  void on_rdma_receivable();
  void on_rdma_sendable();
  void link_lost(const std::string& problem);
  void when_both_left();
  static void on_timer(void* self) { static_cast<UpgradingStream*>(self)->timed_out(); }
  void timed_out();

  bool is_client() const { return role_ == Role::client; }

  Upgrades& upgrades_;
  const Role role_;
  std::shared_ptr<UpgradeHistory> history_;
  std::string peer_;
  TcpEvents tcp_events_{*this};
  RdmaEvents rdma_events_{*this};
  // Invariant: tcp_ is there until upgraded; rdma_ while proving, leaving and upgraded, and while accepted unless
  // broken_ says why not.
  std::unique_ptr<tcp::TcpStream> tcp_;
  std::unique_ptr<PendingLink> link_;
  std::unique_ptr<RdmaStream> rdma_;
  std::string rail_;
  stream::StreamEvents* events_ = nullptr;

  State state_ = State::plain;
  bool agreed_ = false;
  bool receiving_ = true;         // wanted by whoever uses this stream
  bool sends_over_rdma_ = false;  // Invariant: only while leaving or upgraded
  bool receives_over_rdma_ = false;
  size_t left_on_tcp_ = 0;  // leaving: bytes to be sent up to and including our switch
  size_t proof_received_ = 0;
  size_t proof_sent_ = 0;
  std::string broken_;  // of a link that isn't there any more
  Time upgraded_at_;
  // plain, client: the next attempt. proving: its end. leaving, server: at once, if the link is broken.
  Timer timer_;
};

}  // namespace cairn::srpc::rdma
