// For tests: a peer that says exactly what it is told, byte by byte, over a blocking socket.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "mem/pool.h"
#include "reactor/address.h"
#include "srpc/close_reason.h"
#include "srpc/stream/checksums.h"
#include "srpc/wire.h"

namespace cairn::srpc::testing {

using Bytes = std::vector<std::byte>;

// One message as it stands on the wire, checksums included.
inline Bytes encode_message(Header header, std::span<const std::byte> metadata = {},
                            std::span<const std::byte> data = {}) {
  header.metadata_bytes = static_cast<uint16_t>(metadata.size());
  header.data_bytes = static_cast<uint32_t>(data.size());
  Bytes out(header.message_bytes());
  encode_header(header, out);
  size_t at = kHeaderBytes;
  const auto put = [&](uint32_t crc) {
    const Le32 wire = crc;
    std::memcpy(out.data() + at, &wire, sizeof wire);
    at += sizeof wire;
  };
  if (!metadata.empty()) {
    std::memcpy(out.data() + at, metadata.data(), metadata.size());
    at += metadata.size();
    put(crc32c(metadata));
  }
  stream::PageChecksums checksums;
  checksums.feed(data, [&](size_t, uint32_t crc) { put(crc); });
  checksums.finish([&](size_t, uint32_t crc) { put(crc); });
  if (!data.empty()) std::memcpy(out.data() + header.prefix_bytes(), data.data(), data.size());
  return out;
}

template <typename T>
std::span<const std::byte> as_bytes(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

inline Bytes hello_message(uint16_t poll_group = kAnyPollGroup, uint64_t features = 0) {
  HelloBody body;
  body.features = features;
  body.version_min = kVersionMin;
  body.version_max = kVersionMax;
  body.poll_group = poll_group;
  body.max_data = static_cast<uint32_t>(kMaxData);
  return encode_message({.kind = Kind::hello}, as_bytes(body));
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Repeats a system call that was interrupted. It needs no signal handler for that: when a ring is torn down, the kernel
// interrupts the thread that made it, a moment after the close has returned, and a call on a socket with a time limit
// then isn't restarted but fails with EINTR.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class RawPeer {
 public:
  explicit RawPeer(Fd fd) : fd_(std::move(fd)) {
    const timeval limit{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  static RawPeer connect(uint16_t port, int receive_buffer = 0) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_buffer > 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const Address at = Address::loopback(port);
    if (::connect(fd.get(), at.raw(), at.raw_size()) < 0) fd.reset();
    return RawPeer(std::move(fd));
  }

  // As much as goes out; false when the other side has closed, or takes nothing for 10 s.
  bool send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = uninterrupted([&] { return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
  }
  // Only what goes without waiting.
  size_t send_some(std::span<const std::byte> bytes) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<size_t>(n);
  }

  struct Received {
    Header header;
    Bytes metadata;
    std::string text() const { return {reinterpret_cast<const char*>(metadata.data()), metadata.size()}; }
  };
  // The next message, its data skipped; nullopt at the end, or when nothing comes for 10 s.
  std::optional<Received> receive() {
    std::byte raw[kHeaderBytes];
    if (!read_all(raw)) return std::nullopt;
    auto header = decode_header(raw);
    if (!header) return std::nullopt;
    Bytes rest(header->message_bytes() - kHeaderBytes);
    if (!read_all(rest)) return std::nullopt;
    rest.resize(header->metadata_bytes);
    return Received{*header, std::move(rest)};
  }
  // Whatever comes next, up to 4 KiB; nothing at the end.
  Bytes receive_some() {
    Bytes into(4096);
    const ssize_t n = uninterrupted([&] { return ::recv(fd_.get(), into.data(), into.size(), 0); });
    into.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return into;
  }
  // Skips messages until the goodbye; none (0) when the connection ends without.
  CloseReason goodbye(std::string* text = nullptr) {
    while (auto message = receive()) {
      if (message->header.kind != Kind::goodbye) continue;
      if (text != nullptr) *text = message->text();
      return close_reason_from_wire(message->header.status);
    }
    return CloseReason::none;
  }
  // The other side closes within 10 s; what it says until then is thrown away.
  bool ends() {
    std::byte nothing[4096];
    for (;;) {
      const ssize_t n = uninterrupted([&] { return ::recv(fd_.get(), nothing, sizeof nothing, 0); });
      if (n == 0) return true;
      if (n < 0) return errno == ECONNRESET;
    }
  }
  // Like a peer whose machine was unplugged and came back: a reset.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    fd_.reset();
  }
  void close() { fd_.reset(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  bool read_all(std::span<std::byte> into) {
    while (!into.empty()) {
      const ssize_t n = uninterrupted([&] { return ::recv(fd_.get(), into.data(), into.size(), 0); });
      if (n <= 0) return false;
      into = into.subspan(static_cast<size_t>(n));
    }
    return true;
  }

  Fd fd_;
};

// A listening socket whose connections the test serves by hand.
class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const Address any = Address::loopback(0);
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    if (::bind(fd_.get(), any.raw(), any.raw_size()) < 0 || ::listen(fd_.get(), 64) < 0) fd_.reset();
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &length);
    address_ = Address::from(reinterpret_cast<sockaddr*>(&name), length);
  }
  const Address& address() const { return address_; }
  RawPeer accept() {
    pollfd wait{fd_.get(), POLLIN, 0};
    if (uninterrupted([&] { return ::poll(&wait, 1, 10'000); }) <= 0) return RawPeer(Fd());
    return RawPeer(Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }

 private:
  Fd fd_;
  Address address_;
};

}  // namespace cairn::srpc::testing
