// ByteStream: what the stream transports (TCP, the simulator's network, later TLS) have in common: bytes in order, in
// pieces of any size. StreamEndpoint makes messages of it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "srpc/close_reason.h"
#include "srpc/stream/one_sided.h"
#include "srpc/transport.h"

namespace cairn::srpc::stream {

struct Moved {
  // `refused`: there is somebody whom this stream doesn't serve; he can be told so, with `error`, in what is sent.
  enum class How : uint8_t { some, would_block, end, failed, refused };
  How how = How::some;
  size_t bytes = 0;        // with some
  std::string error = {};  // with failed: "recv: Connection reset by peer"; with refused
  // With some, although fewer bytes came than were asked for: there is more to learn by asking again now, such as that
  // the stream has ended. Nothing would tell later.
  bool ask_again = false;
  CloseReason reason = CloseReason::connection_lost;  // with failed and refused
};

// Called from the reactor's rounds, never from inside a call into the stream.
class StreamEvents {
 public:
  // A receive may succeed now.
  virtual void on_receivable() = 0;
  // After would_block from send.
  virtual void on_sendable() = 0;
  // After want_flush: everything that was to be sent in this round is queued.
  virtual void on_flush() = 0;
  // For a stream with a Control, which may call it at any time: queues one of its messages. Returns the bytes queued,
  // this message being the last of them; 0: the connection is about to end.
  virtual size_t send_control(Kind /*kind*/, uint16_t /*status*/, std::span<const std::byte> /*metadata*/) { return 0; }

 protected:
  ~StreamEvents() = default;
};

// What a stream has to say to the one at the other end, in messages of their own between those of the connection
// (Kind::upgrade_*).
class Control {
 public:
  // Bits of Feature, and then those that both sides have.
  virtual uint64_t features() const = 0;
  virtual void on_agreed(uint64_t features) = 0;
  // `last`: nothing behind it was read yet. Errors end the connection: bad_sequence.
  virtual Result<void> on_control(const Header& header, std::span<const std::byte> metadata, bool last) = 0;

 protected:
  ~Control() = default;
};
inline bool is_control(Kind kind) {
  return kind == Kind::upgrade_offer || kind == Kind::upgrade_answer || kind == Kind::upgrade_switch;
}

class ByteStream {
 public:
  // Closes.
  virtual ~ByteStream() = default;
  virtual void start(StreamEvents& events) = 0;

  // Into / from all of `vectors`, as far as it goes without waiting. vectors[0] isn't empty.
  virtual Moved receive(std::span<iovec> vectors) = 0;
  virtual Moved send(std::span<iovec> vectors) = 0;

  // Whether on_receivable is wanted at all. At the start it is.
  virtual void set_receiving(bool wanted) = 0;
  // on_flush, once, before the reactor sleeps.
  virtual void want_flush() = 0;
  // No more will be sent; what was sent still arrives.
  virtual void shutdown_send() = 0;

  virtual const std::string& peer() const = 0;
  // Caps::name of the transport.
  virtual std::string_view transport() const { return "stream"; }
  // Null when it carries bytes and nothing else. At a stream with a Control it may come about in on_control(): for a
  // client's requests that are queued from then on, for what a server receives from then on.
  virtual OneSided* one_sided() { return nullptr; }
  virtual Control* control() { return nullptr; }
  // For Endpoint::detach(). The stream is closed afterwards, the connection isn't.
  virtual std::unique_ptr<DetachedEndpoint> detach() { return nullptr; }
};

}  // namespace cairn::srpc::stream
