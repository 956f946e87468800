// http_load: closed-loop HTTP/1.1 load on keep-alive connections, one thread, epoll. The same generator drives Cairn
// and its peers, so what it costs itself is on both sides of a ratio.
//
//   http_load HOST PORT CONNECTIONS SECONDS BODY_BYTES < requests
//
// Standard input: one request a line, "GET /target" or "PUT /target", sent in turn by whichever connection is free; a
// PUT carries BODY_BYTES of a fixed pattern. A reply that isn't 2xx, has no Content-Length, or for GET isn't BODY_BYTES
// long ends the run with an error: a fast error is no result. Prints one JSON object.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kReceiveBytes = 256 * 1024;

[[noreturn]] void die(const std::string& text) {
  fprintf(stderr, "http_load: %s\n", text.c_str());
  exit(1);
}

struct Request {
  std::string head;
  bool has_body = false;
};

struct Options {
  std::string host;
  uint16_t port = 0;
  size_t connections = 0;
  double seconds = 0;
  size_t body_bytes = 0;
};

// What all connections share.
struct Work {
  std::vector<Request> requests;
  std::string body;
  size_t next = 0;
  bool stopping = false;
  std::vector<uint32_t> latencies_us;
  uint64_t payload_bytes = 0;

  const Request& take() { return requests[next++ % requests.size()]; }
};

// One connection: sends a request, reads its reply, takes the next one.
class Connection {
 public:
  Connection(const Options& options, Work& work, std::vector<char>& scratch)
      : options_(options), work_(work), scratch_(scratch), socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.port);
    if (inet_pton(AF_INET, options.host.c_str(), &address.sin_addr) != 1) die("HOST must be an IPv4 address");
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      die("connect: " + std::string(strerror(errno)));
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return socket_; }
  bool busy() const { return request_ != nullptr; }

  void start() {
    request_ = &work_.take();
    sent_ = 0;
    head_.clear();
    body_left_.reset();
    began_ = Clock::now();
    pump_out();
  }

  void on_ready(uint32_t events) {
    if (events & (EPOLLERR | EPOLLHUP)) die("a connection was closed");
    if (events & EPOLLOUT) pump_out();
    if (events & EPOLLIN) pump_in();
  }

 private:
  size_t request_size() const { return request_->head.size() + (request_->has_body ? work_.body.size() : 0); }

  void pump_out() {
    while (request_ && sent_ < request_size()) {
      std::array<iovec, 2> parts{};
      int count = 0;
      const size_t head_size = request_->head.size();
      if (sent_ < head_size) parts[static_cast<size_t>(count++)] = slice(request_->head, sent_);
      if (request_->has_body)
        parts[static_cast<size_t>(count++)] = slice(work_.body, sent_ > head_size ? sent_ - head_size : 0);
      const ssize_t n = send_parts(parts.data(), count);
      if (n < 0) return;
      sent_ += static_cast<size_t>(n);
    }
  }

  static iovec slice(const std::string& text, size_t from) {
    return {const_cast<char*>(text.data()) + from, text.size() - from};
  }

  ssize_t send_parts(iovec* parts, int count) const {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t n = sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) die("send: " + std::string(strerror(errno)));
    return n;
  }

  void pump_in() {
    while (true) {
      const ssize_t n = recv(socket_, scratch_.data(), scratch_.size(), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n <= 0) die(n == 0 ? "the server closed a connection" : "recv: " + std::string(strerror(errno)));
      consume(std::string_view(scratch_.data(), static_cast<size_t>(n)));
    }
  }

  void consume(std::string_view data) {
    if (!request_) die("bytes came that nobody asked for");
    if (!body_left_) {
      head_.append(data);
      const size_t end = head_.find("\r\n\r\n");
      if (end == std::string::npos) return;
      parse_head(std::string_view(head_).substr(0, end + 2));
      data = std::string_view(head_).substr(end + 4);
    }
    if (data.size() > *body_left_) die("a reply is longer than it said");
    *body_left_ -= data.size();
    if (*body_left_ == 0) finish();
  }

  void parse_head(std::string_view head) {
    if (!head.starts_with("HTTP/1.1 2")) die("reply: " + std::string(head.substr(0, head.find('\r'))));
    std::string lower(head);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(tolower(c)); });
    constexpr std::string_view kName = "\r\ncontent-length:";
    const size_t at = lower.find(kName);
    size_t length = 0;
    if (at != std::string::npos) {
      const char* from = lower.data() + at + kName.size();
      while (*from == ' ') ++from;
      std::from_chars(from, lower.data() + lower.size(), length);
    } else if (!head.starts_with("HTTP/1.1 204")) {
      die("a reply has no Content-Length");
    }
    if (!request_->has_body && length != options_.body_bytes)
      die("a GET returned " + std::to_string(length) + " bytes");
    body_left_ = length;
  }

  void finish() {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began_);
    work_.latencies_us.push_back(static_cast<uint32_t>(took.count()));
    work_.payload_bytes += options_.body_bytes;
    request_ = nullptr;
    if (!work_.stopping) start();
  }

  const Options& options_;
  Work& work_;
  std::vector<char>& scratch_;
  int socket_;
  const Request* request_ = nullptr;  // none: idle
  size_t sent_ = 0;
  std::string head_;
  std::optional<size_t> body_left_;  // none while the head is incomplete
  Clock::time_point began_;
};

std::vector<Request> read_requests(const Options& options) {
  std::vector<Request> requests;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    Request request;
    request.has_body = line.starts_with("PUT ");
    request.head = line + " HTTP/1.1\r\nhost: " + options.host + ":" + std::to_string(options.port) + "\r\n";
    if (request.has_body) request.head += "content-length: " + std::to_string(options.body_bytes) + "\r\n";
    request.head += "\r\n";
    requests.push_back(std::move(request));
  }
  if (requests.empty()) die("no requests on standard input");
  return requests;
}

std::string pattern(size_t size) {
  std::string body(size, '\0');
  uint64_t state = 0x9e3779b97f4a7c15;
  for (char& c : body) {
    state = state * 6364136223846793005 + 1442695040888963407;
    c = static_cast<char>(state >> 56);
  }
  return body;
}

void report(Work& work, double seconds) {
  auto& latencies = work.latencies_us;
  if (latencies.empty()) die("no request finished");
  std::ranges::sort(latencies);
  const auto percentile = [&](double p) {
    return latencies[static_cast<size_t>(p * static_cast<double>(latencies.size() - 1))];
  };
  printf(
      "{\"requests\": %zu, \"seconds\": %.3f, \"requests_per_second\": %.1f, \"mb_per_second\": %.2f, \"p50_us\": %u, "
      "\"p99_us\": %u}\n",
      latencies.size(), seconds, static_cast<double>(latencies.size()) / seconds,
      static_cast<double>(work.payload_bytes) / 1e6 / seconds, percentile(0.5), percentile(0.99));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) die("usage: http_load HOST PORT CONNECTIONS SECONDS BODY_BYTES < requests");
  const Options options{argv[1], static_cast<uint16_t>(atoi(argv[2])), static_cast<size_t>(atoi(argv[3])),
                        atof(argv[4]), static_cast<size_t>(atoll(argv[5]))};
  Work work;
  work.requests = read_requests(options);
  work.body = pattern(options.body_bytes);
  std::vector<char> scratch(kReceiveBytes);

  const int poll = epoll_create1(0);
  std::vector<std::unique_ptr<Connection>> connections;
  for (size_t i = 0; i < options.connections; ++i) {
    connections.push_back(std::make_unique<Connection>(options, work, scratch));
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = connections.back().get();
    epoll_ctl(poll, EPOLL_CTL_ADD, connections.back()->fd(), &event);
  }

  const auto began = Clock::now();
  const auto end = began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  for (auto& connection : connections) connection->start();
  std::array<epoll_event, 64> events;
  while (std::ranges::any_of(connections, [](const auto& c) { return c->busy(); })) {
    const int n = epoll_wait(poll, events.data(), events.size(), 30'000);
    if (n == 0) die("no answer for 30 seconds");
    for (int i = 0; i < n; ++i) {
      const auto& event = events[static_cast<size_t>(i)];
      static_cast<Connection*>(event.data.ptr)->on_ready(event.events);
    }
    if (!work.stopping && Clock::now() >= end) work.stopping = true;
  }
  report(work, std::chrono::duration<double>(Clock::now() - began).count());
  return 0;
}
