#include "reactor/address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

#include "base/assert.h"

namespace cairn {

Address Address::from(const sockaddr* address, socklen_t length) {
  Address result;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    std::memcpy(&result.storage_.v4, address, sizeof(sockaddr_in));
  } else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    std::memcpy(&result.storage_.v6, address, sizeof(sockaddr_in6));
  }
  return result;
}

Address Address::loopback(uint16_t port) {
  Address result;
  result.storage_.v4.sin_family = AF_INET;
  result.storage_.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  result.set_port(port);
  return result;
}

Result<Address> Address::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon + 1 < text.size()) {
    const std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
    // An IPv6 address needs its brackets, or its last group would be taken for the port.
    const bool unambiguous = host.find(':') == std::string_view::npos || (host.starts_with('[') && host.ends_with(']'));
    if (error == std::errc() && end == digits.end() && unambiguous) return parse(host, port);
  }
  return Error(Errc::invalid_argument,
               "'" + std::string(text) + "' is no address with a port, such as 127.0.0.1:9000 or [::1]:9000");
}

Result<Address> Address::parse(std::string_view host, uint16_t port) {
  std::string name(host);
  if (host.size() >= 2 && host.starts_with('[') && host.ends_with(']')) name = host.substr(1, host.size() - 2);
  Address result;
  // inet_pton reads up to a zero byte and would not see what comes after it.
  if (name.find('\0') != std::string::npos) name.clear();
  if (inet_pton(AF_INET, name.c_str(), &result.storage_.v4.sin_addr) == 1) {
    result.storage_.v4.sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, name.c_str(), &result.storage_.v6.sin6_addr) == 1) {
    result.storage_.v6.sin6_family = AF_INET6;
  } else {
    return Error(Errc::invalid_argument, "'" + std::string(host) + "' is no IP address");
  }
  result.set_port(port);
  return result;
}

std::string Address::to_string() const {
  char text[INET6_ADDRSTRLEN] = "";
  switch (family()) {
    case AF_INET:
      inet_ntop(AF_INET, &storage_.v4.sin_addr, text, sizeof text);
      return std::string(text) + ":" + std::to_string(port());
    case AF_INET6:
      inet_ntop(AF_INET6, &storage_.v6.sin6_addr, text, sizeof text);
      return "[" + std::string(text) + "]:" + std::to_string(port());
    default:
      return "(no address)";
  }
}

uint16_t Address::port() const {
  switch (family()) {
    case AF_INET:
      return ntohs(storage_.v4.sin_port);
    case AF_INET6:
      return ntohs(storage_.v6.sin6_port);
    default:
      return 0;
  }
}

void Address::set_port(uint16_t port) {
  ASSERT(valid());
  (family() == AF_INET ? storage_.v4.sin_port : storage_.v6.sin6_port) = htons(port);
}

bool Address::is_loopback() const {
  if (family() == AF_INET) return (ntohl(storage_.v4.sin_addr.s_addr) >> 24) == 127;
  if (family() != AF_INET6) return false;
  const in6_addr& v6 = storage_.v6.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool Address::operator==(const Address& other) const {
  if (family() != other.family() || port() != other.port()) return false;
  if (family() == AF_INET) return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
  if (family() == AF_INET6) return IN6_ARE_ADDR_EQUAL(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr) != 0;
  return true;
}

socklen_t Address::raw_size() const {
  switch (family()) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    default:
      return 0;
  }
}

}  // namespace cairn
