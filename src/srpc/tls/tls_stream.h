// TlsStream: a ByteStream over another one, encrypted. The stream below says when something can be received or sent;
// the session (tls_session.h) says what that means for whoever is above.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "reactor/loop.h"
#include "srpc/posted.h"
#include "srpc/stream/byte_stream.h"
#include "srpc/tls/tls_session.h"

namespace cairn::srpc::tls {

class TlsStream : public stream::ByteStream, private stream::StreamEvents {
 public:
  // A session that is new, or one that was taken off another stream.
  TlsStream(Loop& loop, std::unique_ptr<stream::ByteStream> lower, std::unique_ptr<TlsSession> session);
  // Tells the peer that the end is meant, if that goes without waiting.
  ~TlsStream() override;

  void start(stream::StreamEvents& events) override;
  stream::Moved receive(std::span<iovec> vectors) override;
  stream::Moved send(std::span<iovec> vectors) override;
  void set_receiving(bool wanted) override { lower_->set_receiving(wanted); }
  void want_flush() override { lower_->want_flush(); }
  void shutdown_send() override;
  const std::string& peer() const override { return lower_->peer(); }
  std::string_view transport() const override { return transport_; }

 protected:
  stream::ByteStream& lower() { return *lower_; }
  // With all that it holds, for the stream that goes on; this one is of no more use.
  std::unique_ptr<TlsSession> take_session() { return std::move(session_); }

 private:
  void on_receivable() override { events_->on_receivable(); }
  void on_sendable() override;
  void on_flush() override { events_->on_flush(); }
  static void on_settled(void* self) { static_cast<TlsStream*>(self)->events_->on_sendable(); }
  static void on_more(void* self) { static_cast<TlsStream*>(self)->events_->on_receivable(); }

  std::unique_ptr<stream::ByteStream> lower_;
  std::unique_ptr<TlsSession> session_;
  std::string_view transport_;
  stream::StreamEvents* events_ = nullptr;
  bool send_owed_ = false;      // on_sendable() is
  bool shutdown_owed_ = false;  // of the stream below, behind what is still to be sent
  // What one direction has made possible in the other one is told from the loop.
  Posted sendable_;
  Posted receivable_;
};

}  // namespace cairn::srpc::tls
