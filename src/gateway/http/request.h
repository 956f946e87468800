// Request: what a handler sees of an HTTP request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "gateway/http/byte_source.h"
#include "gateway/http/headers.h"
#include "mem/buf_chain.h"
#include "mem/pool.h"
#include "reactor/cancel.h"
#include "reactor/task.h"

namespace cairn::http {

enum class Method : uint8_t { get, head, put, post, del, options, other };

// A parsed head. The views point into the bytes that it was parsed from (head_parser.h).
struct RequestHead {
  Method method = Method::other;
  std::string_view method_text;
  std::string_view target;  // as sent, in origin form: "/a%20b?x=y"; an absolute target has lost scheme and authority
  std::string_view host;    // of the absolute target if there was one, else of the Host field; may be empty for 1.0
  int minor_version = 1;    // HTTP/1.x
  Headers headers;

  // How the body is framed; decided once, here, so that nobody downstream can disagree.
  enum class Framing : uint8_t { none, length, chunked };
  Framing framing = Framing::none;
  uint64_t content_length = 0;
  bool keep_alive = true;
  bool expects_continue = false;

  std::string_view path() const { return target.substr(0, target.find('?')); }
  // Behind the "?", undecoded.
  std::string_view query() const {
    const size_t mark = target.find('?');
    return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  }
};

// Reads from any source, e.g. a decoder between the body and its user, as Request::read and read_all do.
Task<Result<mem::BufChain>> read_chain(ByteSource& source, mem::Pool& pool, size_t want, CancelToken cancel);
Task<Result<std::string>> read_text(ByteSource& source, size_t limit);

// The views of the head and the body are valid until the handler returns. A handler that leaves (part of) the body
// unread causes a short rest to be skipped, else the connection to be closed after the response.
class Request {
 public:
  struct Parts {
    const RequestHead* head;
    std::string_view peer;  // "127.0.0.1:50123"
    ByteSource* body;
    mem::Pool* pool;
    CancelToken cancel;
  };
  explicit Request(const Parts& parts) : parts_(parts) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const RequestHead& head() const { return *parts_.head; }
  Method method() const { return head().method; }
  const Headers& headers() const { return head().headers; }
  std::string_view path() const { return head().path(); }    // undecoded
  std::string_view query() const { return head().query(); }  // undecoded
  std::string_view host() const { return head().host; }
  std::string_view peer() const { return parts_.peer; }

  // Nothing for a chunked body.
  std::optional<uint64_t> content_length() const {
    if (head().framing == RequestHead::Framing::chunked) return std::nullopt;
    return head().content_length;
  }
  bool has_body() const { return head().framing == RequestHead::Framing::chunked || head().content_length > 0; }

  // The body, without its framing. The first use answers "Expect: 100-continue".
  ByteSource& body() { return *parts_.body; }
  // The next bytes in 4 KiB-aligned buffers: exactly `want` unless the body ends before; empty at its end. `want` is a
  // multiple of 4 KiB. Waits for buffers, which is the back-pressure on the client. A body that ends before its
  // announced length is an error.
  auto read(size_t want) { return read_chain(body(), pool(), want, cancel()); }
  // The whole of a small body; too_large when it is longer than `limit`, found before it is read where it says so.
  Task<Result<std::string>> read_all(size_t limit);

  mem::Pool& pool() { return *parts_.pool; }
  // Cancelled when the connection must end: pass it down.
  CancelToken cancel() const { return parts_.cancel; }

 private:
  Parts parts_;
};

}  // namespace cairn::http
