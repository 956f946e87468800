// The seam between SRPC and what carries its messages. Code above it never asks which transport it has; what differs is
// in Caps.
//
// An Endpoint is one end of an established connection. It carries whole messages: framing, checksums and buffers are
// its business. Everything belongs to the thread of its loop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "mem/buf_chain.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/task.h"
#include "srpc/close_reason.h"
#include "srpc/wire.h"

namespace cairn::srpc {

struct Caps {
  // For people: "tcp", "shm", ...
  std::string_view name = "stream";
  // The server pulls and pushes payload. Without it payload follows its header.
  bool one_sided = false;
  // Messages pass by reference inside one process: there is nothing to checksum.
  bool by_reference = false;
  size_t max_data = kMaxData;
};

// One message as it arrives. `metadata` is valid during the call only.
struct Incoming {
  Header header;
  std::span<const std::byte> metadata;
  mem::BufChain data;
  // The data's checksum is wrong: the stream is intact, this payload isn't. `data` is empty then.
  bool damaged = false;
  Time arrived;  // of its first byte
  // There was no memory for the data of this request for as long as it could wait; it is skipped, `data` is empty.
  bool no_memory = false;
};

// For whoever watches over timeouts.
struct EndpointStatus {
  Time last_received;                       // a byte came
  Time receiving_since = Time::never();     // an unfinished message began; never() when there is none
  Time send_blocked_since = Time::never();  // the peer took its last byte; never() when nothing waits for it
};

// Implemented by whoever uses an Endpoint. None of these is called from inside a call into the endpoint, except
// on_message from start() and resume(). From inside them the endpoint may be closed, and must not be destroyed.
class EndpointEvents {
 public:
  // `message` is valid during the call; its data may be moved out of it.
  virtual void on_message(Incoming& message) = 0;
  // Where the payload of this message, whose header has come, shall land: header.data_bytes in full blocks but for the
  // last; empty: the endpoint takes memory itself. Not asked where messages pass by reference.
  virtual mem::BufChain memory_for(const Header&) { return {}; }
  // After tell_when_sent(): nothing is queued any more. Doesn't come when the connection ends before.
  virtual void on_sent() {}
  // The connection ended, by the peer or by a failure or by close(): called once, nothing follows.
  virtual void on_closed(const Close& close) = 0;

 protected:
  ~EndpointEvents() = default;
};

class DetachedEndpoint;
class PollGroup;

class Endpoint {
 public:
  // Closes without a word when still open.
  virtual ~Endpoint() = default;

  // Begins to deliver. `events` outlives the endpoint or its on_closed.
  virtual void start(EndpointEvents& events) = 0;

  // Queues one message: header.metadata_bytes and data_bytes are set here. Metadata is copied, data is held by
  // reference until it is sent. Messages go out in order, those of one round together. Never fails: after the
  // connection ended it does nothing, and on_closed tells.
  //
  // `reply_memory`, of a request: where the reply's data may be put without asking (Caps::one_sided). Until the reply
  // has come or the connection has ended at both ends it must not be used, and is held.
  virtual void send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data,
                    mem::BufChain&& reply_memory) = 0;
  void send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data) {
    send(header, metadata, std::move(data), {});
  }
  // What was queued and has not been handed to the network, payload included. The bound is the caller's.
  virtual size_t queued_bytes() const = 0;
  // on_sent follows, once, in a later call from the loop, whether or not anything had to wait until then. Asked for
  // while something is queued. (Not told unasked: over inproc each telling is a hop to another thread.)
  virtual void tell_when_sent() = 0;

  // Messages with more payload than this end the connection (too_large) before memory is taken for them. At the start
  // 0: who hasn't said hello gets nothing.
  virtual void limit_data(size_t max_bytes) = 0;
  // Headers of a higher version end the connection (bad_version); at the start kVersionMax. For transports with
  // headers.
  virtual void limit_version(uint8_t) {}

  // Stops and restarts delivery, which is how an overloaded receiver makes its peer wait.
  virtual void pause() = 0;
  virtual void resume() = 0;

  // Sends what is queued as far as that goes without waiting long, then ends the connection. on_closed follows, in a
  // later round.
  virtual void close(Close close) = 0;
  virtual bool is_open() const = 0;
  virtual EndpointStatus status() const = 0;

  // What the transport can do by itself when its peer's can, too, as bits of Feature: named in the hello beside what
  // the connection names.
  virtual uint64_t features() const { return 0; }
  // The hello is done; `features` are those that both sides have. Sends what follows it with that version.
  virtual void on_agreed(uint8_t /*version*/, uint64_t /*features*/) {}

  virtual Caps caps() const = 0;
  // Of the other end, for logs: "127.0.0.1:41234", "inproc:1".
  virtual const std::string& peer() const = 0;

  // Takes the connection off this thread, before its first request; the endpoint is closed afterwards without telling
  // the peer, on_closed isn't called. nullptr when this transport can't.
  virtual std::unique_ptr<DetachedEndpoint> detach();
};

// A connection between two threads: given to the one that will serve it.
class DetachedEndpoint {
 public:
  virtual ~DetachedEndpoint() = default;
  // On the new thread, once. nullptr when `group` is of another transport.
  virtual std::unique_ptr<Endpoint> attach(PollGroup& group) = 0;
};

// Makes connections to one address.
class Connector {
 public:
  virtual ~Connector() = default;
  // An endpoint that isn't started yet.
  virtual Task<Result<std::unique_ptr<Endpoint>>> connect(CancelToken token) = 0;
  // Where to, for messages: "10.0.0.7:7400".
  virtual const std::string& address() const = 0;
};

// What a transport does on one reactor: the endpoints it polls there. Driven by the reactor.
class PollGroup {
 public:
  virtual ~PollGroup() = default;
  // Does what can be done without waiting, at most about `budget` messages. Returns how many events it found.
  virtual size_t poll(size_t budget) = 0;
  // Before the reactor sleeps: arranges to be woken; false when something came meanwhile. disarm() after.
  virtual bool arm() = 0;
  virtual void disarm() = 0;
};

}  // namespace cairn::srpc
