#include "srpc/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "reactor/deadline.h"
#include "srpc/server_connection.h"
#include "srpc/server_metrics.h"

namespace cairn::srpc {
namespace {

// Refused connections that may still be saying goodbye; beyond, they are dropped without a word.
constexpr size_t kMaxRefusing = 64;

}  // namespace

Server::Server(Loop& loop, Registry& registry, mem::Pool& pool, ServerOptions options)
    : loop_(loop),
      pool_(pool),
      options_(options),
      methods_(registry),
      metrics_(std::make_unique<ServerMetrics>(registry)),
      sequences_(loop, registry, options.sequences, pool.total_bytes()),
      empty_(loop),
      serves_none_(loop) {
  ASSERT(options_.poll_group < options_.poll_groups);
  ASSERT(options_.credits > 0 && options_.max_calls > 0);
  ASSERT(options_.max_data <= kMaxData && options_.byte_credits >= options_.max_data);
  // A request larger than what is kept for requests could wait for clients, which may wait for us; one that needs most
  // of the memory would wait for nearly everybody else to end.
  const size_t most = pool.request_bytes() > 0 ? pool.request_bytes() : pool.total_bytes() / 2;
  options_.max_data = static_cast<uint32_t>(std::min<size_t>(options_.max_data, most));
  empty_.set();
  serves_none_.set();
}

Server::~Server() {
  ASSERT(connections_.empty());
  ASSERT(calls_running_ == 0);
}

ServerConnection& Server::add_connection(std::unique_ptr<Endpoint> endpoint) {
  const uint64_t number = next_connection_++;
  auto connection = std::make_unique<ServerConnection>(*this, number, std::move(endpoint));
  empty_.reset();
  return *connections_.emplace(number, std::move(connection)).first->second;
}

void Server::accept(std::unique_ptr<Endpoint> endpoint) {
  metrics_->accepted.add();
  if (is_full() || (draining_ && !handing_over_)) return refuse(std::move(endpoint));
  add_connection(std::move(endpoint)).start();
}

void Server::adopt(std::unique_ptr<Endpoint> endpoint, const Introduction& introduction) {
  metrics_->accepted.add();
  if (is_full() || draining_) return refuse(std::move(endpoint));
  add_connection(std::move(endpoint)).start_placed(introduction);
}

void Server::refuse(std::unique_ptr<Endpoint> endpoint) {
  if (connections_.size() >= options_.max_connections + kMaxRefusing) {
    metrics_->closed[static_cast<size_t>(CloseReason::refused)]->add();
    return;
  }
  ServerConnection& connection = add_connection(std::move(endpoint));
  connection.start();
  connection.close({CloseReason::refused, why_refused()});
}

std::string Server::why_refused() const {
  if (handing_over_) return "this poll group is stopping";
  return draining_ ? "the server is stopping" : "this poll group has as many connections as it may";
}

void Server::count_served(int change) {
  served_ += static_cast<uint32_t>(change);
  served_ > 0 ? serves_none_.reset() : serves_none_.set();
  if (placement_ != nullptr) placement_->publish(options_.poll_group, draining_ ? Placement::kTakesNone : served_);
}

void Server::on_connection_closed(const ServerConnection& connection, const Close& close) {
  metrics_->closed[static_cast<size_t>(close.reason)]->add();
  switch (close.reason) {
    case CloseReason::done:
    case CloseReason::draining:
    case CloseReason::peer_closed:
      LOG(debug, "connection from {}: {}", connection.peer(), close.to_string());
      return;
    default:
      break;
  }
  if (const auto left_out = closed_log_.open(loop_.now())) {
    LOG(info, "connection from {} closed: {}{}", connection.peer(), close.to_string(), *left_out);
  }
}

void Server::remove(ServerConnection& connection) {
  // In a later round: it is called from inside the connection.
  auto node = connections_.extract(connection.number());
  ASSERT(!node.empty());
  if (connection.is_served()) count_served(-1);
  loop_.post([](void* gone) { delete static_cast<ServerConnection*>(gone); }, node.mapped().release());
  if (connections_.empty()) empty_.set();
}

void Server::close_connections(const Close& why) {
  // Closing and cancelling remove nothing before a later round.
  for (auto& [number, connection] : connections_) {
    // Nobody can come back for what runs when the server ends.
    draining_ ? connection->cancel_calls(Errc::cancelled) : connection->lose_calls();
    connection->close(why);
  }
}

Task<void> Server::hand_over(Time deadline) {
  draining_ = handing_over_ = true;
  count_served(0);
  for (auto& [number, connection] : connections_) connection->announce_drain();
  Deadline until(loop_, deadline);
  while (served_ > 0) {
    if (!co_await serves_none_.wait(until.token())) break;
  }
  for (auto& [number, connection] : connections_) {
    if (!connection->is_served()) continue;
    connection->cancel_calls(Errc::cancelled);
    connection->close({CloseReason::draining, "the poll group stops now"});
  }
  while (served_ > 0) (void)co_await serves_none_.wait();
  sequences_.clear();
}

Task<void> Server::drain(Time deadline) {
  draining_ = true;
  handing_over_ = false;
  count_served(0);
  for (auto& [number, connection] : connections_) connection->announce_drain();
  Deadline until(loop_, deadline);
  while (!connections_.empty()) {
    if (!co_await empty_.wait(until.token())) break;
  }
  close_connections({CloseReason::draining, "the server stops now"});
  while (!connections_.empty()) (void)co_await empty_.wait();
  sequences_.clear();
  // Those removed last are freed in the round after.
  co_await loop_.yield();
}

}  // namespace cairn::srpc
