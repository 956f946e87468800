#include "srpc/shm/shm_listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "reactor/deadline.h"
#include "srpc/shm/rendezvous.h"

namespace cairn::srpc::shm {
namespace {

// Who has connected and not yet introduced himself.
constexpr size_t kMaxMeetings = 64;
constexpr Duration kMeetingTime = seconds(5);
// After a failed accept, which mostly means that descriptors ran out: some may be free by then.
constexpr Duration kPause = milliseconds(100);

}  // namespace

ShmListener::ShmListener(ShmPollGroup& group, Server& server, Fd socket)
    : group_(group), server_(server), socket_(std::move(socket)), scope_(group.reactor()) {}

Result<std::unique_ptr<ShmListener>> ShmListener::open(ShmPollGroup& group, Server& server, const Address& tcp) {
  TRY(Fd socket, listen_at(meeting_name(tcp)));
  std::unique_ptr<ShmListener> self(new ShmListener(group, server, std::move(socket)));
  self->scope_.spawn(&ShmListener::accept, self.get());
  return self;
}

Task<void> ShmListener::accept() {
  const CancelToken token = scope_.token();
  FdWatch watch(group_.reactor(), socket_.get());
  while (!token.cancelled()) {
    // Besides this one.
    if (scope_.running() > kMaxMeetings) {
      (void)co_await group_.reactor().sleep(kPause, token);
      continue;
    }
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      scope_.spawn(&ShmListener::meet, this, std::move(socket));
    } else if (errno == EAGAIN) {
      (void)co_await watch.readable(token);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      LOG(warn, "srpc: can't accept connections over shared memory: {}", strerrordesc_np(errno));
      (void)co_await group_.reactor().sleep(kPause, token);
    }
  }
}

Task<void> ShmListener::meet(Fd socket) {
  Deadline deadline(group_.reactor(), group_.reactor().now() + kMeetingTime, scope_.token());
  std::string peer = peer_of(socket);
  auto met = co_await receive_introduction(group_.reactor(), memories_, std::move(socket), deadline.token());
  if (!met) {
    LOG(debug, "connection from {}: {}", peer, met.error().to_string());
    co_return;
  }
  server_.accept(group_.make_endpoint({.socket = std::move(met->socket),
                                       .segment = std::move(met->segment),
                                       .side = stream::Role::server,
                                       .peer = std::move(peer),
                                       .peer_memory = std::move(met->peer_memory)}));
}

Task<void> ShmListener::close() {
  co_await scope_.close();
  socket_.reset();
}

}  // namespace cairn::srpc::shm
