// IP addresses with a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace cairn {

class Address {
 public:
  // No address: family AF_UNSPEC.
  Address() = default;
  static Address from(const sockaddr* address, socklen_t length);
  static Address loopback(uint16_t port);

  // "127.0.0.1:9000", "[::1]:9000". Numbers only: names are resolved by resolve.h.
  static Result<Address> parse(std::string_view text);
  // `host` without brackets or with.
  static Result<Address> parse(std::string_view host, uint16_t port);
  // As parse() reads it.
  std::string to_string() const;

  bool valid() const { return storage_.any.sa_family != AF_UNSPEC; }
  int family() const { return storage_.any.sa_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  // 127.0.0.0/8, ::1, and the former written as IPv6.
  bool is_loopback() const;
  bool operator==(const Address& other) const;

  const sockaddr* raw() const { return &storage_.any; }
  socklen_t raw_size() const;

 private:
  union Storage {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  Storage storage_{.v6 = {}};
};

}  // namespace cairn
