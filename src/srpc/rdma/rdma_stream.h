// RdmaStream: a queue pair as a ByteStream whose peer's memory can be reached. What is sent goes out in slots (slot.h),
// payload by READ and WRITE.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "srpc/rdma/link.h"
#include "srpc/stream/one_sided.h"
#include "srpc/stream/socket_poll.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::rdma {

class RdmaPollGroup;

class RdmaStream final : public stream::GroupedStream,
                         public stream::OneSided,
                         private stream::SocketPoll::Events,
                         private Link::User {
 public:
  // `link` is connected.
  RdmaStream(RdmaPollGroup& group, std::unique_ptr<Link> link, std::string peer);
  ~RdmaStream() override;

  // The TCP connection over which the two have met, on which nothing is said any more. It is kept open, and its end is
  // this stream's end, behind what has arrived: RDMA itself doesn't tell that the other process has died. Once.
  void hold(Fd socket);

  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void shutdown_send() override { link_->end_sending(); }
  const std::string& peer() const override { return peer_; }
  std::string_view transport() const override { return "rdma"; }
  stream::OneSided* one_sided() override { return this; }

  Role role() const override { return link_->role(); }
  bool name(const mem::BufChain& memory, size_t most, std::vector<stream::RemotePiece>& pieces) override;
  void keep(std::vector<mem::BufChain>&& memory) override;
  void begin(std::unique_ptr<stream::Transfer> transfer) override;
  bool checked() const override { return true; }

 private:
  friend class RdmaPollGroup;

  void open() override;
  void watch() override;
  void unwatch() override { watched_ = false; }
  void on_link_news() override;
  void on_poll_in(bool hung_up) override;
  void on_poll_out() override {}
  // Something may be received or learned.
  bool readable() const { return link_->available() > 0 || link_->ended() || link_->failed() || hung_up_; }
  bool sendable() const { return link_->may_send() || link_->failed() || hung_up_; }
  stream::Moved failure() const { return {stream::Moved::How::failed, 0, "rdma: " + link_->failure()}; }

  RdmaPollGroup& group_;
  std::unique_ptr<Link> link_;
  std::string peer_;
  Fd socket_;
  stream::SocketPoll* poll_ = nullptr;
  std::vector<mem::BufChain> kept_;
  bool opened_ = false;
  bool ready_ = false;  // in the group's list
  bool watched_ = false;
  bool blocked_ = false;      // on_sendable is owed
  bool hang_up_due_ = false;  // the socket has ended; what had arrived by then isn't looked for yet
  bool hung_up_ = false;
};

}  // namespace cairn::srpc::rdma
