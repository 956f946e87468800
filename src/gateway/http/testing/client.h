// TestClient: an HTTP client that sends exactly what a test says, at the moments it says, and reads what comes back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/reactor.h"
#include "reactor/socket.h"
#include "reactor/task.h"

namespace cairn::http::testing {

struct TestResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  // The body ended where its framing said, not by the connection's end.
  bool complete = false;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

class TestClient {
 public:
  explicit TestClient(Reactor& reactor) : reactor_(reactor) {}

  Task<Result<void>> connect(Address to);
  // All of it, in one call to the kernel.
  Task<Result<void>> send(std::string_view bytes);
  // Lets the server run until it has nothing to do but wait for us.
  Task<void> let_server_run();
  // `head`: the answer is to a HEAD. Interim answers (1xx) are returned as they come. Errc::closed when the connection
  // ends before a whole head.
  Task<Result<TestResponse>> receive(bool head = false);
  // Everything until the server closes; the bytes that were read ahead included.
  Task<std::string> receive_rest();
  // The server closed, and nothing is left to read.
  Task<bool> at_end();
  void shutdown_send() { socket_.shutdown_send(); }
  void close() { socket_.close(); }
  Socket& socket() { return socket_; }

 private:
  Task<Result<bool>> fill();
  Task<Result<std::string>> take(size_t n);
  Task<Result<std::string>> take_line();
  Task<Result<void>> receive_chunks(TestResponse& response);

  Reactor& reactor_;
  Socket socket_;
  std::string buffer_;  // received and not yet taken
};

}  // namespace cairn::http::testing
