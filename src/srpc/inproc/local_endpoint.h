// Both ends of a connection on one loop. A message is handed over by reference in the sender's call: no serialisation,
// no checksum, no copy, no wait. What is sent while the other end is inside such a hand-over, is paused or hasn't
// started waits in its inbox for a later round, so that the two never call each other recursively.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reactor/loop.h"
#include "srpc/posted.h"
#include "srpc/transport.h"

namespace cairn::srpc::inproc {

class LocalEndpoint final : public Endpoint {
 public:
  // A connected pair; `name` is what each sees as its peer.
  static std::pair<std::unique_ptr<LocalEndpoint>, std::unique_ptr<LocalEndpoint>> make_pair(Loop& loop,
                                                                                             const std::string& name);
  ~LocalEndpoint() override;

  void start(EndpointEvents& events) override;
  using Endpoint::send;
  void send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data, mem::BufChain&&) override;
  size_t queued_bytes() const override { return peer_ == nullptr ? 0 : peer_->inbox_bytes_; }
  void tell_when_sent() override { tell_sent_ = true; }
  // Nothing is taken for a message here, and both ends are ours.
  void limit_data(size_t) override {}
  void pause() override { paused_ = true; }
  void resume() override;
  void close(Close close) override;
  bool is_open() const override { return open_; }
  EndpointStatus status() const override;
  Caps caps() const override { return {.name = "inproc", .by_reference = true}; }
  const std::string& peer() const override { return name_; }

 private:
  struct Waiting {
    Header header;
    std::vector<std::byte> metadata;
    mem::BufChain data;
    Time arrived;
  };

  LocalEndpoint(Loop& loop, std::string name);
  bool can_deliver() const;
  void receive(Header header, std::span<const std::byte> metadata, mem::BufChain&& data);
  void peer_gone();
  static void on_posted(void* self) { static_cast<LocalEndpoint*>(self)->deliver(); }
  void deliver();

  Loop& loop_;
  std::string name_;
  LocalEndpoint* peer_ = nullptr;       // null once either has closed
  std::shared_ptr<bool> handing_over_;  // shared by the pair: one of them is inside on_message
  EndpointEvents* events_ = nullptr;
  bool open_ = true;
  bool paused_ = false;
  bool told_closed_ = false;
  bool tell_sent_ = false;  // tell_when_sent() was called
  Close close_;
  std::deque<Waiting> inbox_;
  size_t inbox_bytes_ = 0;
  Time last_received_;
  Time blocked_since_ = Time::never();
  Posted posted_;
};

}  // namespace cairn::srpc::inproc
