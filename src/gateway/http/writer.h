// Writer: the ResponseWriter of a connection. Builds the head, keeps the promises of its framing, and gathers head and
// body into one send.
#pragma once

#include <string>
#include <string_view>

#include "gateway/http/body.h"
#include "gateway/http/response.h"
#include "gateway/http/wire.h"

namespace cairn::http {

class Writer final : public ResponseWriter, public BodyGate {
 public:
  struct Setup {
    Wire* wire;
    const RequestHead* head;
    std::string_view server_name;
    std::string_view date;
    uint64_t skip_bytes;
    bool stopping;
  };
  explicit Writer(const Setup& setup) : setup_(setup) {}
  // For deciding whether the connection can be kept. Before anything is sent.
  void set_body(const Body* body) { body_ = body; }

  Task<Result<void>> send(std::string body) override;
  Task<Result<void>> send(mem::BufChain body) override;
  Task<Result<void>> send_no_body() override;
  Task<Result<void>> send_head_only(uint64_t content_length) override;
  Task<Result<void>> begin(uint64_t content_length) override;
  Task<Result<void>> begin_chunked() override;
  Task<Result<void>> write(mem::BufChain piece) override;
  Task<Result<void>> write(std::string piece) override;
  Task<Result<void>> finish() override;
  Task<Result<void>> flush() override;
  bool started() const override { return state_ != State::fresh; }
  void abort() override { aborted_ = true; }
  void close_after() override { close_ = true; }
  uint64_t body_bytes() const override { return body_bytes_; }

  // BodyGate: "100 Continue", if the client waits for it and the answer hasn't begun.
  Task<Result<void>> on_first_use() override;

  // After the handler: everything promised was sent.
  bool complete() const { return state_ == State::done && !aborted_ && !failed_; }
  bool aborted() const { return aborted_; }
  bool failed() const { return failed_; }
  // The head said "Connection: close", or the answer ends with the connection.
  bool closing() const { return close_; }

 private:
  enum class State : uint8_t { fresh, body, done };
  enum class Framing : uint8_t { none, length, chunked, until_close };

  // Fixes the head into pending_.
  void make_head(Framing framing, uint64_t content_length);
  bool must_close() const;
  Task<Result<void>> put(std::string_view text, const mem::BufChain& chain, std::string_view tail = {});
  bool is_head() const { return setup_.head->method == Method::head; }

  Setup setup_;
  const Body* body_ = nullptr;
  State state_ = State::fresh;
  Framing framing_ = Framing::none;
  uint64_t left_ = 0;  // of the announced length
  uint64_t body_bytes_ = 0;
  std::string pending_;  // a head, or framing, that goes out with the next piece
  bool continued_ = false;
  bool close_ = false;
  bool aborted_ = false;
  bool failed_ = false;
};

}  // namespace cairn::http
