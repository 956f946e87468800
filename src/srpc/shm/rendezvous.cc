#include "srpc/shm/rendezvous.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "reactor/fd_watch.h"

namespace cairn::srpc::shm {
namespace {

constexpr int kBacklog = 256;
// What goes with the memfd, and the answer.
constexpr std::array<char, 8> kHello = {'s', 'r', 'p', 'c', 's', 'h', 'm', '1'};
constexpr char kWelcome = 'w';
constexpr char kWelcomeWithMemory = 'm';

// Room for more descriptors than the one that is expected: what a stranger sends beyond it is received, and closed.
constexpr size_t kMaxDescriptors = 4;

// One message with the hello's bytes and descriptors beside them.
struct Envelope {
  Envelope() {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  std::array<char, kHello.size()> hello{};
  iovec vector{hello.data(), hello.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message{};
};

Result<std::pair<sockaddr_un, socklen_t>> abstract_address(const std::string& name) {
  sockaddr_un address{};
  if (name.size() + 1 > sizeof address.sun_path) return Error(Errc::invalid_argument, "shared memory: a name too long");
  address.sun_family = AF_UNIX;
  // cairn-allow(memcpy): a name, not payload
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return std::pair(address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
}

Result<Fd> make_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return error_from_errno(errno, "shared memory: socket");
  return socket;
}

// Of the segment, and of the client's memory if there is one.
Result<void> send_memfds(const Fd& socket, const Fd& segment, const Fd& memory) {
  Envelope envelope;
  envelope.hello = kHello;
  const std::array<int, 2> fds = {segment.get(), memory.get()};
  const size_t bytes = (memory ? 2 : 1) * sizeof(int);
  envelope.message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* rights = CMSG_FIRSTHDR(&envelope.message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(bytes);
  // cairn-allow(memcpy): descriptors, not payload
  std::memcpy(CMSG_DATA(rights), fds.data(), bytes);
  if (::sendmsg(socket.get(), &envelope.message, MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(kHello.size())) {
    return Error(Errc::unavailable, "shared memory: the server is gone");
  }
  return {};
}

// All of them: what isn't taken over here would stay open for good.
std::vector<Fd> descriptors_in(msghdr& message) {
  std::vector<Fd> found;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      // cairn-allow(memcpy): a descriptor, not payload
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
      found.emplace_back(fd);
    }
  }
  return found;
}

struct Memfds {
  Fd segment;
  Fd memory;
};

// busy: nothing is there yet.
Result<Memfds> receive_memfds(const Fd& socket) {
  Envelope envelope;
  envelope.message.msg_controllen = sizeof envelope.control;
  const ssize_t n = ::recvmsg(socket.get(), &envelope.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Errc::busy;
  std::vector<Fd> descriptors;
  if (n >= 0) descriptors = descriptors_in(envelope.message);
  // It is sent in one piece, and so it comes.
  if (n != static_cast<ssize_t>(kHello.size()) || envelope.hello != kHello || descriptors.empty() ||
      descriptors.size() > 2) {
    return Error(Errc::protocol_error, "shared memory: not the introduction of an SRPC client");
  }
  Memfds memfds{std::move(descriptors[0]), {}};
  if (descriptors.size() == 2) memfds.memory = std::move(descriptors[1]);
  return memfds;
}

ucred credentials_of(const Fd& socket) {
  ucred credentials{.pid = 0, .uid = UINT32_MAX, .gid = UINT32_MAX};
  socklen_t size = sizeof credentials;
  (void)::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials;
}

bool is_trusted(const Fd& socket) {
  const uid_t user = credentials_of(socket).uid;
  return user == 0 || user == ::geteuid();
}

}  // namespace

std::string meeting_name(const Address& tcp) {
  const bool any = tcp.family() == AF_INET
                       ? reinterpret_cast<const sockaddr_in*>(tcp.raw())->sin_addr.s_addr == INADDR_ANY
                       : IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(tcp.raw())->sin6_addr);
  return any ? "srpc:*:" + std::to_string(tcp.port()) : "srpc:" + tcp.to_string();
}

bool is_of_this_machine(const Address& address) {
  if (address.is_loopback()) return true;
  // Only an own address can be bound.
  Address probe = address;
  probe.set_port(0);
  const Fd socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), probe.raw(), probe.raw_size()) == 0;
}

Result<Fd> listen_at(const std::string& name) {
  TRY(const auto address, abstract_address(name));
  TRY(Fd socket, make_socket());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.first), address.second) != 0) {
    if (errno == EADDRINUSE) return Error(Errc::busy, "shared memory: '" + name + "' is taken by another server");
    return error_from_errno(errno, "shared memory: bind");
  }
  if (::listen(socket.get(), kBacklog) != 0) return error_from_errno(errno, "shared memory: listen");
  return socket;
}

Result<Fd> connect_to(const std::string& name) {
  TRY(const auto address, abstract_address(name));
  TRY(Fd socket, make_socket());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.first), address.second) != 0) {
    return Error(Errc::unavailable, "shared memory: nobody takes connections at '" + name + "'");
  }
  // Anybody may take a name.
  if (!is_trusted(socket)) {
    return Error(Errc::unavailable, "shared memory: the server at '" + name + "' belongs to another user");
  }
  return socket;
}

std::string peer_of(const Fd& socket) { return "shm:" + std::to_string(credentials_of(socket).pid); }

Task<Result<Met>> introduce(Reactor& reactor, Fd socket, const Fd& memory, uint32_t ring_bytes, CancelToken token) {
  CO_TRY(auto created, Segment::create(ring_bytes));
  CO_TRY(send_memfds(socket, created.memfd, memory));
  char answer = 0;
  FdWatch watch(reactor, socket.get());
  for (;;) {
    const ssize_t n = ::recv(socket.get(), &answer, 1, MSG_DONTWAIT);
    if (n == 1 && (answer == kWelcome || (answer == kWelcomeWithMemory && memory))) break;
    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
      co_return Error(Errc::unavailable, "shared memory: the server refused");
    }
    CO_TRY(co_await watch.readable(token));
  }
  co_return Met{.socket = std::move(socket),
                .segment = std::move(created.segment),
                .peer_memory = nullptr,
                .shares_memory = answer == kWelcomeWithMemory};
}

Task<Result<Met>> receive_introduction(Reactor& reactor, PeerMemories& known, Fd socket, CancelToken token) {
  FdWatch watch(reactor, socket.get());
  Result<Memfds> memfds = receive_memfds(socket);
  while (memfds.code() == Errc::busy) {
    CO_TRY(co_await watch.readable(token));
    memfds = receive_memfds(socket);
  }
  if (!memfds) co_return std::move(memfds).error();
  CO_TRY(Segment segment, Segment::adopt(memfds->segment));
  std::shared_ptr<PeerMemory> memory;
  if (memfds->memory && is_trusted(socket)) {
    CO_TRY(memory, known.adopt(memfds->memory));
  }
  const char answer = memory == nullptr ? kWelcome : kWelcomeWithMemory;
  if (::send(socket.get(), &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
    co_return Error(Errc::unavailable, "shared memory: the client is gone");
  }
  co_return Met{.socket = std::move(socket), .segment = std::move(segment), .peer_memory = std::move(memory)};
}

}  // namespace cairn::srpc::shm
