// Connection: serves one client until either side has had enough.
//
//   idle ──byte──► head ──► handler ──► answered ──► rest of the body skipped ──► idle
//     │             │          │            │
//     └─────────────┴──────────┴────────────┴──► (answer with the reason) ──► linger ──► closed
//
// The head is looked at before it is taken, and exactly it is taken: the body's bytes stay in the kernel until they
// are received to where they belong.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/http/head_parser.h"
#include "gateway/http/metrics.h"
#include "gateway/http/server.h"
#include "gateway/http/wire.h"

namespace cairn::http {

class Connection {
 public:
  Connection(Server& server, std::unique_ptr<Stream> stream);

  // Until the end of the connection; counts why.
  Task<void> run();
  // One answer without a request, then the end.
  Task<void> refuse(int status, std::string_view reason);

 private:
  // How one round ended: the connection is kept, or closed for a reason.
  struct Outcome {
    bool keep = false;
    CloseReason reason = CloseReason::client_closed;
    bool linger = false;  // the client may still be sending: let it take our last words
  };

  Task<Outcome> serve_one();
  // Brings a whole head into head_bytes_; keep: it is there.
  Task<Outcome> read_head();
  Task<Outcome> answer_bad_head(int status, std::string_view reason, CloseReason why);
  Task<Outcome> settle(class Body& body, class Writer& writer);
  Task<void> linger();
  CloseReason reason_of_failure(Errc code, CloseReason in_time) const;

  Server& server_;
  const Options& options_;
  ServerMetrics& metrics_;
  Wire wire_;
  std::string peer_;
  std::string head_bytes_;  // room for a head; head_size_ of them are one
  size_t head_size_ = 0;
  RequestHead head_;
  Time head_done_;
  uint64_t counted_received_ = 0;
  uint64_t counted_sent_ = 0;
  void count_bytes();
};

}  // namespace cairn::http
