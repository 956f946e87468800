#include "srpc/stream/stream_endpoint.h"

#include <array>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::stream {
namespace {

// Receives in one round of one connection: 16 times at most, then others get their turn.
constexpr int kReceivesPerRound = 16;
// And messages, for a receive may bring hundreds of small ones.
constexpr int kMessagesPerRound = 64;
// The largest payload in 1 MiB blocks, and the stage.
constexpr size_t kReceiveVectors = kMaxData / mem::kMaxBlock + 2;
constexpr size_t kSendVectors = 64;
// How long a closing end waits for its goodbye to leave, and for the peer to have read it.
constexpr Duration kLinger = milliseconds(250);

}  // namespace

StreamEndpoint::StreamEndpoint(Context context, std::unique_ptr<ByteStream> stream)
    : context_(context),
      stream_(std::move(stream)),
      peer_(stream_->peer()),
      transport_(stream_->transport()),
      reader_(context.pool.copied()),
      output_(context.pool.copied()),
      moved_(*this),
      patience_(&on_patience, this),
      last_received_(context.loop.now()),
      last_sent_(context.loop.now()),
      linger_(&on_linger, this),
      closed_(context.loop, &on_posted, this),
      continue_(context.loop, &on_continue, this) {}

StreamEndpoint::~StreamEndpoint() {
  if (OneSided* side = one_sided()) moved_.keep_named(*side);
  context_.loop.disarm(linger_);
  context_.loop.disarm(patience_);
  if (memory_wait_ != nullptr) {
    memory_wait_->endpoint = nullptr;
    memory_wait_->gone.cancel();
  }
}

void StreamEndpoint::start(EndpointEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  if (state_ == State::ended) return closed_.post();
  allow_elsewhere();
  stream_->start(*this);
}

void StreamEndpoint::allow_elsewhere() {
  if (const OneSided* side = one_sided()) {
    reader_.allow_elsewhere(side->role() == Role::server ? Kind::request : Kind::reply);
  }
}

// --- What the stream says to the other one ---

uint64_t StreamEndpoint::features() const {
  Control* control = stream_ == nullptr ? nullptr : stream_->control();
  return control == nullptr ? 0 : control->features();
}

void StreamEndpoint::on_agreed(uint8_t version, uint64_t features) {
  version_ = version;
  if (state_ != State::open) return;
  if (Control* control = stream_->control()) control->on_agreed(features);
}

void StreamEndpoint::on_control(const Incoming& message, Control& control) {
  auto accepted = control.on_control(message.header, message.metadata, reader_.nothing_behind_message());
  if (!accepted) return say_goodbye({CloseReason::bad_sequence, accepted.error().message()});
  allow_elsewhere();
}

size_t StreamEndpoint::send_control(Kind kind, uint16_t status, std::span<const std::byte> metadata) {
  if (state_ != State::open || send_failed_) return 0;
  Header header;
  header.kind = kind;
  header.version = version_;
  header.status = status;
  send(header, metadata, {});
  return output_.queued_bytes();
}

// --- Receiving ---

void StreamEndpoint::on_receivable() {
  if (state_ == State::closing) return discard();
  if (state_ != State::open || in_receive_) return;
  in_receive_ = true;
  messages_left_ = kMessagesPerRound;
  deliver_pulled();
  for (int i = 0; deliver(); ++i) {
    if (i == kReceivesPerRound) {
      continue_.post();
      break;
    }
    std::array<iovec, kReceiveVectors> vectors;
    const size_t n = reader_.plan(vectors);
    size_t wanted = 0;
    for (size_t k = 0; k < n; ++k) wanted += vectors[k].iov_len;
    Moved moved = stream_->receive({vectors.data(), n});
    if (moved.how == Moved::How::would_block) break;
    if (moved.how == Moved::How::failed) {
      fail({moved.reason, std::move(moved.error)});
      break;
    }
    if (moved.how == Moved::How::refused) {
      say_goodbye({moved.reason, std::move(moved.error)});
      break;
    }
    if (moved.how == Moved::How::end) {
      fail({CloseReason::peer_closed, reader_.at_boundary() ? peer_ + " ended the connection"
                                                            : peer_ + " ended the connection inside a message"});
      break;
    }
    last_received_ = context_.loop.now();
    reader_.advance(moved.bytes, last_received_);
    // Less than was asked for: the socket is empty, and asking again would cost a system call to hear so.
    if (moved.bytes < wanted && !moved.ask_again) {
      (void)deliver();
      break;
    }
  }
  in_receive_ = false;
  // Answers that were made meanwhile go out together, now.
  if (!output_.empty() && !blocked_) flush();
  if (state_ == State::closing) discard();
}

bool StreamEndpoint::deliver() {
  for (;;) {
    if (state_ != State::open || !may_receive()) return false;
    if (messages_left_ == 0) {
      continue_.post();
      return false;
    }
    Incoming message;
    switch (reader_.next(message)) {
      case Reader::Step::need_bytes:
        return true;
      case Reader::Step::need_memory:
        if (!take_memory()) return false;
        break;
      case Reader::Step::message:
        if (Control* control = stream_->control(); control != nullptr && is_control(message.header.kind)) {
          on_control(message, *control);
          break;
        }
        if (message.header.kind == Kind::reply) moved_.answered(message.header.request_id);
        moved_.requested(message.header.request_id, reader_.reply_pieces());
        --messages_left_;
        events_->on_message(message);
        break;
      case Reader::Step::elsewhere:
        --messages_left_;
        find_data(message);
        break;
      case Reader::Step::failed:
        // The peer is told why; it may be an honest one of another version.
        say_goodbye(reader_.failure());
        return false;
    }
  }
}

void StreamEndpoint::find_data(Incoming& message) {
  const uint64_t id = message.header.request_id;
  if (message.header.kind == Kind::request) {
    moved_.requested(id, reader_.reply_pieces());
    moved_.pull(*one_sided(), message, reader_.data_pieces(), reader_.checksum_table());
    deliver_pulled();
    if (!moved_.may_pull()) update_receiving();
    return;
  }
  message.damaged = !message.header.unchecked && !MovedPayload::matches(message.data, reader_.checksum_table());
  if (message.damaged) message.data.clear();
  moved_.answered(id);
  events_->on_message(message);
}

void StreamEndpoint::on_pulled() {
  // One pull less is under way: it may have been the one too many.
  update_receiving();
  // Inside a receive they are delivered by it.
  if (!in_receive_) on_receivable();
}

// Also while the next message waits for memory: those that are complete may be what it waits for.
void StreamEndpoint::deliver_pulled() {
  while (state_ == State::open && !paused_ && moved_.has_pulled()) {
    Incoming message = moved_.take_pulled();
    events_->on_message(message);
  }
}

void StreamEndpoint::say_goodbye(const Close& why) {
  Header goodbye;
  goodbye.kind = Kind::goodbye;
  goodbye.version = kVersionMin;  // whatever was or will be agreed, the peer can read that
  goodbye.status = static_cast<uint16_t>(why.reason);
  send(goodbye, std::as_bytes(std::span(why.text)), {});
  close(why);
}

bool StreamEndpoint::take_memory() {
  const size_t size = reader_.memory_wanted();
  if (reader_.header().elsewhere && reader_.header().kind == Kind::reply) {
    mem::BufChain named = moved_.named_for(reader_.header());
    if (named.empty()) {
      say_goodbye({CloseReason::bad_sequence, "a reply's data went where no memory was named for it"});
      return false;
    }
    reader_.give_memory(std::move(named));
    return true;
  }
  if (mem::BufChain given = events_->memory_for(reader_.header()); !given.empty()) {
    reader_.give_memory(std::move(given));
    return true;
  }
  if (size <= mem::kMaxBlock) {
    if (auto buf = context_.pool.try_alloc(size, purpose())) {
      reader_.give_memory(mem::BufChain(*std::move(buf)));
      return true;
    }
  }
  // Half of the time that the caller gives it, so that he hears "busy" and not nothing. Those behind it have lost their
  // time by then.
  const Header& header = reader_.header();
  if (header.kind == Kind::request && header.time_us != 0) {
    if (context_.loop.now() < starved_until_) {
      reader_.skip_payload();
      return true;
    }
    context_.loop.arm_in(patience_, microseconds(header.time_us / 2));
  }
  memory_wait_ = std::make_shared<MemoryWait>();
  memory_wait_->endpoint = this;
  context_.scope.spawn(&StreamEndpoint::wait_for_memory, memory_wait_, &context_.pool, size, purpose());
  // It may have got it at once.
  update_receiving();
  return memory_wait_ == nullptr;
}

Task<void> StreamEndpoint::wait_for_memory(std::shared_ptr<MemoryWait> wait, mem::Pool* pool, size_t size,
                                           mem::Purpose purpose) {
  auto memory = co_await pool->alloc_chain(size, purpose, wait->gone);
  if (wait->endpoint != nullptr) wait->endpoint->got_memory(std::move(memory));
}

void StreamEndpoint::on_patience(void* self) {
  auto& endpoint = *static_cast<StreamEndpoint*>(self);
  if (endpoint.memory_wait_ != nullptr) endpoint.memory_wait_->gone.cancel(Errc::timed_out);
}

void StreamEndpoint::got_memory(Result<mem::BufChain> memory) {
  memory_wait_.reset();
  context_.loop.disarm(patience_);
  if (state_ != State::open) return;
  const bool in_vain = memory.code() == Errc::timed_out;
  if (!memory && !in_vain) {
    return say_goodbye({CloseReason::too_large, "no memory for a payload of " +
                                                    std::to_string(reader_.memory_wanted()) +
                                                    " bytes: " + memory.error().to_string()});
  }
  if (in_vain) {
    starved_until_ = context_.loop.now() + microseconds(reader_.header().time_us / 2);
    reader_.skip_payload();
  } else {
    reader_.give_memory(*std::move(memory));
  }
  if (in_receive_) return;
  last_received_ = context_.loop.now();
  reader_.restart_clock(last_received_);
  update_receiving();
  continue_.post();
}

// The rest of what a peer says to a connection that is being closed. Closing with bytes unread would reset the
// connection and could take our goodbye with it.
void StreamEndpoint::discard() {
  std::array<std::byte, 16384> nothing;
  for (int i = 0; i < kReceivesPerRound; ++i) {
    iovec vector{nothing.data(), nothing.size()};
    const Moved moved = stream_->receive({&vector, 1});
    if (moved.how == Moved::How::would_block) return;
    if (moved.how != Moved::How::some) return end_now();
  }
  // What is there already isn't told again.
  continue_.post();
}

void StreamEndpoint::pause() {
  paused_ = true;
  update_receiving();
}

void StreamEndpoint::resume() {
  if (!paused_) return;
  paused_ = false;
  last_received_ = context_.loop.now();
  reader_.restart_clock(last_received_);
  update_receiving();
  if (state_ == State::open) continue_.post();
}

void StreamEndpoint::update_receiving() {
  if (state_ == State::ended) return;
  stream_->set_receiving(state_ == State::closing || may_receive());
}

// --- Sending ---

void StreamEndpoint::send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data,
                          mem::BufChain&& reply_memory) {
  if (state_ != State::open || send_failed_) return;
  if (output_.empty()) last_sent_ = context_.loop.now();
  std::span<const std::byte> memory_block;
  if (OneSided* side = one_sided()) {
    if (side->role() == Role::server) {
      if (header.kind == Kind::reply) moved_.push(*side, header, data);
    } else if (header.kind == Kind::request) {
      memory_block = moved_.name(*side, header, data, std::move(reply_memory));
    }
  }
  output_.add(header, metadata, memory_block, std::move(data));
  // Inside a receive the flush comes at its end.
  if (!in_receive_ && !blocked_) stream_->want_flush();
}

void StreamEndpoint::flush() {
  if (state_ == State::ended) return;
  while (!output_.empty() && !send_failed_) {
    std::array<iovec, kSendVectors> vectors;
    const size_t n = output_.gather(vectors);
    Moved moved = stream_->send({vectors.data(), n});
    if (moved.how == Moved::How::some) {
      output_.advance(moved.bytes);
      last_sent_ = context_.loop.now();
      continue;
    }
    if (moved.how == Moved::How::would_block) {
      blocked_ = true;
      return;
    }
    // Reading tells the reason: the peer may have said goodbye before it went.
    send_failed_ = true;
    output_.clear();
    if (state_ == State::closing) return end_now();
    paused_ = false;
    update_receiving();
    return;
  }
  sent_all();
}

void StreamEndpoint::sent_all() {
  blocked_ = false;
  if (state_ == State::closing && !shut_down_) {
    shut_down_ = true;
    stream_->shutdown_send();
  }
  if (std::exchange(tell_sent_, false) && state_ == State::open) events_->on_sent();
}

void StreamEndpoint::on_sendable() {
  // flush() clears blocked_ when everything is sent.
  if (state_ != State::ended) flush();
}

// --- The end ---

void StreamEndpoint::close(Close close) {
  if (state_ != State::open) return;
  state_ = State::closing;
  close_ = std::move(close);
  update_receiving();
  context_.loop.arm_in(linger_, kLinger);
  if (output_.empty() && !blocked_) {
    shut_down_ = true;
    stream_->shutdown_send();
  } else if (!in_receive_ && !blocked_) {
    stream_->want_flush();
  }
}

void StreamEndpoint::fail(Close close) {
  if (state_ == State::open) close_ = std::move(close);
  end_now();
}

void StreamEndpoint::end_now() {
  if (state_ == State::ended) return;
  state_ = State::ended;
  context_.loop.disarm(linger_);
  output_.clear();
  if (OneSided* side = one_sided()) moved_.keep_named(*side);
  moved_.forget();
  stream_.reset();
  closed_.post();
}

void StreamEndpoint::tell_closed() { events_->on_closed(close_); }

EndpointStatus StreamEndpoint::status() const {
  // While we don't read, the peer's silence is our doing.
  const bool reading = may_receive();
  return {.last_received = reading ? last_received_ : context_.loop.now(),
          .receiving_since = reading ? reader_.message_began() : Time::never(),
          .send_blocked_since = output_.empty() ? Time::never() : last_sent_};
}

std::unique_ptr<DetachedEndpoint> StreamEndpoint::detach() {
  // Bytes that were read already would be lost on the way.
  if (state_ != State::open || !output_.empty() || !reader_.nothing_behind_message()) return nullptr;
  auto detached = stream_->detach();
  if (detached != nullptr) {
    state_ = State::ended;
    stream_.reset();
  }
  return detached;
}

}  // namespace cairn::srpc::stream
