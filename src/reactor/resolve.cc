#include "reactor/resolve.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace cairn {
namespace {

Result<std::vector<Address>> look_up(Lookup lookup, const std::string& host, uint16_t port) {
  auto addresses = lookup(host);
  // RFC 6761, section 6.3: this name always means this machine, also where nobody wrote an /etc/hosts.
  if (!addresses && host == "localhost") return std::vector<Address>{Address::loopback(port)};
  if (addresses) {
    for (Address& address : *addresses) address.set_port(port);
  }
  return addresses;
}

}  // namespace

Result<std::vector<Address>> look_up_by_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    return Error(error == EAI_NONAME ? Errc::not_found : Errc::unavailable,
                 "name '" + host + "': " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const Address address = Address::from(entry->ai_addr, entry->ai_addrlen);
    if (address.valid() && std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  if (addresses.empty()) return Error(Errc::not_found, "name '" + host + "' has no IP address");
  return addresses;
}

Task<Result<std::vector<Address>>> resolve(OffloadPool& helpers, Reactor& reactor, std::string host_and_port,
                                           Lookup lookup) {
  if (auto number = Address::parse(host_and_port)) co_return std::vector<Address>{*number};
  const size_t colon = host_and_port.rfind(':');
  uint16_t port = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* first = host_and_port.data() + colon + 1;
    const char* last = host_and_port.data() + host_and_port.size();
    const auto [end, error] = std::from_chars(first, last, port);
    const std::string host = host_and_port.substr(0, colon);
    if (error == std::errc() && end == last && host.find_first_of(":[]") == std::string::npos) {
      co_return co_await offload(helpers, reactor, [&host, port, lookup] { return look_up(lookup, host, port); });
    }
  }
  co_return Error(Errc::invalid_argument, "'" + host_and_port + "' is no host with a port, such as example.org:9000");
}

}  // namespace cairn
