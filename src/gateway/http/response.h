// ResponseWriter: how a handler answers. Either the whole answer at once:
//
//   response.set_status(200);
//   response.set_header("Content-Type", "application/json");
//   co_await response.send(std::move(text));
//
// or in pieces, with a length or chunked:
//
//   CO_TRY(co_await response.begin(info.size));
//   while (...) CO_TRY(co_await response.write(std::move(chain)));
//   co_await response.finish();
//
// The answer to HEAD has the same head and no body: bodies that are passed here are dropped then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "mem/buf_chain.h"
#include "reactor/task.h"

namespace cairn::http {

// The standard phrase, "" for a status that has none.
std::string_view reason_phrase(int status) noexcept;

class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Before the head is sent. Connection, Content-Length, Transfer-Encoding and Date are the server's.
  void set_status(int status) { status_ = status; }
  int status() const { return status_; }
  // Values with control characters lose them: a header can't be split by what a client stored.
  void set_header(std::string_view name, std::string_view value);
  // Drops what was set so far; for turning to an error.
  void clear_headers() { fields_.clear(); }

  // The head and the whole body. Returns when it is handed to the kernel.
  virtual Task<Result<void>> send(std::string body) = 0;
  virtual Task<Result<void>> send(mem::BufChain body) = 0;
  // No body and no Content-Length, as 204 and 304 require.
  virtual Task<Result<void>> send_no_body() = 0;
  // The answer to HEAD without making the body that GET would give.
  virtual Task<Result<void>> send_head_only(uint64_t content_length) = 0;

  // The head goes out with the first piece. Errors mean that the client is gone or too slow: return.
  virtual Task<Result<void>> begin(uint64_t content_length) = 0;
  virtual Task<Result<void>> begin_chunked() = 0;
  virtual Task<Result<void>> write(mem::BufChain piece) = 0;
  virtual Task<Result<void>> write(std::string piece) = 0;
  virtual Task<Result<void>> finish() = 0;
  // Sends what is held back, e.g. the head before the first piece is there.
  virtual Task<Result<void>> flush() = 0;

  // True once the head can't be changed any more.
  virtual bool started() const = 0;
  // Ends the connection short of the announced end, so that the client can't take the body for complete. What a handler
  // does when a later piece of a body turns out unreadable; also what happens when it returns without finish().
  virtual void abort() = 0;
  // Closes the connection after this response.
  virtual void close_after() = 0;
  // Body bytes sent so far, for logs.
  virtual uint64_t body_bytes() const = 0;

 protected:
  int status_ = 200;
  std::string fields_;  // serialised: "Name: value\r\n..."
};

}  // namespace cairn::http
