// TcpStream: one socket as a ByteStream.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "reactor/address.h"
#include "srpc/stream/socket_poll.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::tcp {

class TcpStream final : public stream::GroupedStream, private stream::SocketPoll::Events {
 public:
  TcpStream(stream::StreamGroup& group, Fd fd, std::string peer);
  ~TcpStream() override;

  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void shutdown_send() override;
  const std::string& peer() const override { return peer_; }
  // Of this end; invalid when the socket is none of the internet's.
  Address local() const;
  // Gives the socket away; the stream is of no more use.
  Fd release();
  std::string_view transport() const override { return "tcp"; }
  std::unique_ptr<DetachedEndpoint> detach() override;

 private:
  void open() override;
  void watch() override { poll_->arm_in(); }
  void unwatch() override { poll_->disarm_in(); }
  void on_poll_in(bool hung_up) override;
  void on_poll_out() override { events().on_sendable(); }
  void leave();

  Fd fd_;
  std::string peer_;
  stream::SocketPoll* poll_ = nullptr;
  bool hung_up_ = false;
};

}  // namespace cairn::srpc::tcp
