// CrossEndpoint: one end of a connection between two reactors of one process. Messages pass by reference, through the
// other reactor's queue; each is a hop and counts as one.
//
// Counts of buffers aren't atomic, so a buffer changes sides only when its sender holds the last reference; a shared
// one (a page that the cache keeps) is copied first, and counted.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "mem/pool.h"
#include "reactor/scope.h"
#include "srpc/inproc/cross_link.h"
#include "srpc/posted.h"
#include "srpc/transport.h"

namespace cairn::srpc::inproc {

class CrossEndpoint final : public Endpoint {
 public:
  struct Context {
    Reactor& reactor;
    mem::Pool& pool;  // for copies of shared payload
    Scope& scope;     // waits for that memory; outlives the endpoint
  };
  CrossEndpoint(const Context& context, std::shared_ptr<CrossLink> link, int side, std::string peer);
  ~CrossEndpoint() override;

  void start(EndpointEvents& events) override;
  using Endpoint::send;
  void send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data, mem::BufChain&&) override;
  size_t queued_bytes() const override;
  void tell_when_sent() override;
  void limit_data(size_t) override {}
  void pause() override { paused_ = true; }
  void resume() override;
  void close(Close close) override;
  bool is_open() const override { return open_; }
  EndpointStatus status() const override;
  Caps caps() const override { return {.name = "inproc", .by_reference = true}; }
  const std::string& peer() const override { return peer_; }

  // A parcel arrived; takes it over.
  void receive(std::unique_ptr<Parcel> parcel);

 private:
  struct CopyWait {
    CrossEndpoint* endpoint;
    CancelSource gone;
  };

  CrossLink::Side& own() { return link_->side(side_); }
  CrossLink::Side& other() { return link_->side(1 - side_); }
  // Sends what may be sent, in order.
  void ship();
  static Task<void> copy_front(std::shared_ptr<CopyWait> wait, mem::Pool* pool, size_t bytes);
  void got_copy(Result<mem::BufChain> memory);
  void tell(Parcel::What what) { (new Parcel(link_, 1 - side_, what))->send(); }
  static void on_posted(void* self) { static_cast<CrossEndpoint*>(self)->deliver(); }
  void deliver();

  Context context_;
  std::shared_ptr<CrossLink> link_;
  const int side_;
  std::string peer_;
  EndpointEvents* events_ = nullptr;
  bool open_ = true;
  bool paused_ = false;
  bool drained_ = false;      // on_sent is due
  bool peer_closed_ = false;  // nothing more will come
  bool told_peer_ = false;    // that we have closed
  bool told_closed_ = false;
  bool answered_ = false;  // the other side has confirmed our close: nothing more comes from it
  Close close_;
  std::deque<std::unique_ptr<Parcel>> inbox_;
  std::deque<std::unique_ptr<Parcel>> outbox_;  // the first waits for its copy
  std::shared_ptr<CopyWait> copy_wait_;
  Time last_received_;
  Time blocked_since_;
  Posted posted_;
};

}  // namespace cairn::srpc::inproc
