#include "srpc/tls/tls_stream.h"

#include <utility>

#include "base/assert.h"

namespace cairn::srpc::tls {

using stream::Moved;

TlsStream::TlsStream(Loop& loop, std::unique_ptr<stream::ByteStream> lower, std::unique_ptr<TlsSession> session)
    : lower_(std::move(lower)),
      session_(std::move(session)),
      transport_(session_->only_tls() ? "tls" : lower_->transport()),
      sendable_(loop, &on_settled, this),
      receivable_(loop, &on_more, this) {
  session_->use(*lower_);
}

TlsStream::~TlsStream() {
  if (session_ == nullptr) return;
  session_->say_end();
  (void)session_->flush();
}

void TlsStream::start(stream::StreamEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  lower_->start(*this);
  session_->begin();
  if (session_->holds_input()) receivable_.post();
}

Moved TlsStream::receive(std::span<iovec> vectors) {
  Moved moved = session_->receive(vectors);
  // The handshake has ended, or what stood in the way of a send has come.
  if (send_owed_ && session_->settled() && !session_->blocked()) sendable_.post();
  return moved;
}

Moved TlsStream::send(std::span<iovec> vectors) {
  Moved moved = session_->send(vectors);
  send_owed_ = moved.how == Moved::How::would_block;
  return moved;
}

void TlsStream::shutdown_send() {
  session_->say_end();
  shutdown_owed_ = !session_->flush();
  if (!shutdown_owed_) lower_->shutdown_send();
}

void TlsStream::on_sendable() {
  const bool receive_waited = session_->receive_waits_for_flush();
  if (!session_->flush()) return;
  if (std::exchange(shutdown_owed_, false)) lower_->shutdown_send();
  if (receive_waited) receivable_.post();
  // The last thing: it may be the end of this stream.
  if (send_owed_ && session_->settled()) events_->on_sendable();
}

}  // namespace cairn::srpc::tls
