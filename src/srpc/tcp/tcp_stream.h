// TcpStream: one socket as a ByteStream; see tcp_poll_group.h for how it is polled.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "srpc/stream/byte_stream.h"
#include "srpc/tcp/socket_poll.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::srpc::tcp {

class TcpStream final : public stream::ByteStream, private SocketPoll::Events {
 public:
  TcpStream(TcpPollGroup& group, Fd fd, std::string peer);
  ~TcpStream() override;

  void start(stream::StreamEvents& events) override;
  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void set_receiving(bool wanted) override;
  void want_flush() override;
  void shutdown_send() override;
  const std::string& peer() const override { return peer_; }
  std::unique_ptr<DetachedEndpoint> detach() override;

 private:
  friend class TcpPollGroup;
  void on_poll_in(bool hung_up) override;
  void on_poll_out() override { events_->on_sendable(); }
  // Hot if that is possible and `hot_wanted`, else by notification.
  void expect_more(bool hot_wanted);
  void let_go();

  TcpPollGroup& group_;
  Fd fd_;
  std::string peer_;
  stream::StreamEvents* events_ = nullptr;
  SocketPoll* poll_ = nullptr;
  bool receiving_ = true;
  bool received_ = false;  // since the poll group last looked
  bool hung_up_ = false;

  // For the poll group.
  bool dirty_ = false;
  bool hot_ = false;
  uint32_t misses_ = 0;
};

}  // namespace cairn::srpc::tcp
