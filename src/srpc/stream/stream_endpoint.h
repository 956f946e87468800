// StreamEndpoint: an Endpoint over any ByteStream.
//
//   open ─ close() ─> closing (goodbye under way) ─ sent, peer has ended too, or kLinger passed ─> ended
//     └──────────────── the stream ended or failed, or its bytes make no sense ──────────────────────^
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mem/pool.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/timer.h"
#include "srpc/posted.h"
#include "srpc/stream/byte_stream.h"
#include "srpc/stream/moved_payload.h"
#include "srpc/stream/output.h"
#include "srpc/stream/reader.h"
#include "srpc/transport.h"

namespace cairn::srpc::stream {

class StreamEndpoint final : public Endpoint, private StreamEvents, private MovedPayload::Owner {
 public:
  struct Context {
    Loop& loop;
    mem::Pool& pool;  // for received payload
    Scope& scope;     // waits for memory run here; outlives the endpoint
    // Of the memory for requests. Replies for which the caller has taken none end something that holds memory itself,
    // so they may use the reserve.
    mem::Purpose requests = mem::Purpose::request;
  };

  StreamEndpoint(Context context, std::unique_ptr<ByteStream> stream);
  ~StreamEndpoint() override;

  void start(EndpointEvents& events) override;
  using Endpoint::send;
  void send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data,
            mem::BufChain&& reply_memory) override;
  size_t queued_bytes() const override { return output_.queued_bytes() + moved_.pushing_bytes(); }
  void tell_when_sent() override { tell_sent_ = true; }
  void limit_data(size_t max_bytes) override { reader_.limit_data(max_bytes); }
  void limit_version(uint8_t highest) override { reader_.limit_version(highest); }
  void pause() override;
  void resume() override;
  void close(Close close) override;
  bool is_open() const override { return state_ == State::open; }
  EndpointStatus status() const override;
  uint64_t features() const override;
  void on_agreed(uint8_t version, uint64_t features) override;
  Caps caps() const override {
    return {.name = stream_ == nullptr ? transport_ : stream_->transport(), .one_sided = one_sided() != nullptr};
  }
  const std::string& peer() const override { return peer_; }
  std::unique_ptr<DetachedEndpoint> detach() override;

 private:
  enum class State : uint8_t { open, closing, ended };
  // A wait for memory outlives the endpoint when that is destroyed meanwhile.
  struct MemoryWait {
    StreamEndpoint* endpoint;
    CancelSource gone;
  };

  void on_receivable() override;
  void on_sendable() override;
  void on_flush() override { flush(); }
  size_t send_control(Kind kind, uint16_t status, std::span<const std::byte> metadata) override;
  void on_pulled() override;

  OneSided* one_sided() const { return stream_ == nullptr ? nullptr : stream_->one_sided(); }
  // Delivers what is complete. False when it can't go on receiving.
  bool deliver();
  void deliver_pulled();
  void on_control(const Incoming& message, Control& control);
  void allow_elsewhere();
  // The message's data isn't in the stream.
  void find_data(Incoming& message);
  bool take_memory();
  static Task<void> wait_for_memory(std::shared_ptr<MemoryWait> wait, mem::Pool* pool, size_t size,
                                    mem::Purpose purpose);
  void got_memory(Result<mem::BufChain> memory);
  mem::Purpose purpose() const {
    return reader_.header().kind == Kind::reply ? mem::Purpose::internal : context_.requests;
  }
  // It has waited for memory for as long as it may.
  static void on_patience(void* self);
  void discard();
  void flush();
  void sent_all();
  void update_receiving();
  bool may_receive() const { return !paused_ && memory_wait_ == nullptr && moved_.may_pull(); }
  void say_goodbye(const Close& why);
  void fail(Close close);
  static void on_linger(void* self) { static_cast<StreamEndpoint*>(self)->end_now(); }
  void end_now();
  static void on_posted(void* self) { static_cast<StreamEndpoint*>(self)->tell_closed(); }
  static void on_continue(void* self) { static_cast<StreamEndpoint*>(self)->on_receivable(); }
  void tell_closed();

  Context context_;
  std::unique_ptr<ByteStream> stream_;
  std::string peer_;
  std::string_view transport_;
  EndpointEvents* events_ = nullptr;
  State state_ = State::open;
  Close close_;
  uint8_t version_ = kVersionMin;  // of what is sent from here
  Reader reader_;
  Output output_;
  MovedPayload moved_;

  bool paused_ = false;
  bool in_receive_ = false;
  int messages_left_ = 0;     // to be delivered in this round
  bool blocked_ = false;      // a send would have blocked; on_sendable will come
  bool send_failed_ = false;  // nothing can be sent any more; what the peer said may still be read
  bool shut_down_ = false;
  bool tell_sent_ = false;  // tell_when_sent() was called
  std::shared_ptr<MemoryWait> memory_wait_;
  Timer patience_;      // while waiting
  Time starved_until_;  // a request has waited in vain: until then others aren't even let wait
  Time last_received_;
  Time last_sent_;
  Timer linger_;
  Posted closed_;
  Posted continue_;
};

}  // namespace cairn::srpc::stream
