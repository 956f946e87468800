#include "gateway/http/testing/client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "gateway/http/headers.h"

namespace cairn::http::testing {

Task<Result<void>> TestClient::connect(Address to) {
  CO_TRY(socket_, co_await Socket::connect(reactor_, to));
  co_return Result<void>();
}

Task<Result<void>> TestClient::send(std::string_view bytes) {
  co_return co_await socket_.send_all(std::as_bytes(std::span(bytes)));
}

Task<void> TestClient::let_server_run() {
  // Server and client share a reactor: a few rounds bring what was sent through the loopback and the server to a wait.
  for (int i = 0; i < 4; ++i) co_await reactor_.yield();
}

Task<Result<bool>> TestClient::fill() {
  std::array<char, 65536> chunk;
  CO_TRY(const size_t n, co_await socket_.recv(std::as_writable_bytes(std::span(chunk))));
  buffer_.append(chunk.data(), n);
  co_return n > 0;
}

Task<Result<std::string>> TestClient::take(size_t n) {
  while (buffer_.size() < n) {
    CO_TRY(const bool more, co_await fill());
    if (!more) co_return Error(Errc::closed);
  }
  std::string taken = buffer_.substr(0, n);
  buffer_.erase(0, n);
  co_return taken;
}

Task<Result<std::string>> TestClient::take_line() {
  for (;;) {
    const size_t end = buffer_.find("\r\n");
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      co_return line;
    }
    CO_TRY(const bool more, co_await fill());
    if (!more) co_return Error(Errc::closed);
  }
}

Task<Result<void>> TestClient::receive_chunks(TestResponse& response) {
  for (;;) {
    CO_TRY(const std::string line, co_await take_line());
    size_t size = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), size, 16).ec != std::errc()) {
      co_return Error(Errc::protocol_error, "chunk size: " + line);
    }
    if (size == 0) break;
    CO_TRY(const std::string data, co_await take(size));
    response.body += data;
    CO_TRY(const std::string end, co_await take_line());
    if (!end.empty()) co_return Error(Errc::protocol_error, "chunk end: " + end);
  }
  CO_TRY(co_await take_line());
  co_return Result<void>();
}

Task<Result<TestResponse>> TestClient::receive(bool head) {
  TestResponse response;
  CO_TRY(const std::string status, co_await take_line());
  if (!status.starts_with("HTTP/1.1 ") || status.size() < 12) co_return Error(Errc::protocol_error, status);
  response.status = std::stoi(status.substr(9, 3));
  for (;;) {
    CO_TRY(const std::string line, co_await take_line());
    if (line.empty()) break;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) co_return Error(Errc::protocol_error, line);
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    response.headers[name] = line.substr(colon + 2);
  }
  response.complete = true;
  if (head || response.status / 100 == 1 || response.status == 204 || response.status == 304) co_return response;
  if (response.header("transfer-encoding") == "chunked") {
    const auto done = co_await receive_chunks(response);
    response.complete = done.has_value();
    co_return response;
  }
  if (response.headers.contains("content-length")) {
    const size_t size = std::stoull(response.header("content-length"));
    for (;;) {
      if (buffer_.size() >= size) break;
      const auto more = co_await fill();
      if (!more || !*more) break;
    }
    response.complete = buffer_.size() >= size;
    response.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    co_return response;
  }
  response.body = co_await receive_rest();
  co_return response;
}

Task<std::string> TestClient::receive_rest() {
  for (;;) {
    const auto more = co_await fill();
    if (!more || !*more) co_return std::exchange(buffer_, {});
  }
}

Task<bool> TestClient::at_end() { co_return (co_await receive_rest()).empty(); }

}  // namespace cairn::http::testing
