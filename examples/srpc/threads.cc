// A client on four threads: each has a reactor, memory and a channel of its own, and shares nothing with the others. It
// puts and gets small values of a server of key_value.cc. (Its keys are of no use to others: each thread asks the poll
// group that it has for its own, not the one that a key belongs to.)
//
//   threads [HOST:PORT]
#include <srpc/channel.h>
#include <srpc/reactor_host.h>

#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "key_value_methods.h"

#include <reactor/scope.h>

using namespace cairn;

namespace {

constexpr int kThreads = 4;
constexpr int kTogether = 16;  // calls under way, of each thread
constexpr int kRounds = 200;

// One thread's work. Everything here belongs to the thread of `host`.
struct Client {
  std::unique_ptr<srpc::ReactorHost> host;
  int number = 0;
  int answered = 0;
  std::string error = {};
};

Task<Result<void>> put_and_get(srpc::Channel* channel, std::string key) {
  CO_TRY(co_await channel->call<Put>({.tail = key}));
  CO_TRY(co_await channel->call<Get>({.tail = std::move(key)}));
  co_return Result<void>();
}

Task<void> work(Client* client, srpc::Channel* channel, int worker) {
  for (int round = 0; round < kRounds && client->error.empty(); ++round) {
    const auto done =
        co_await put_and_get(channel, "t" + std::to_string(client->number) + "/" + std::to_string(worker));
    if (!done) {
      client->error = done.error().to_string();
    } else {
      client->answered += 2;
    }
  }
}

Task<bool> run(Client* client, Address to, uint16_t poll_group) {
  srpc::Channel channel(client->host->reactor(), client->host->metrics(), client->host->connector(to),
                        {.poll_group = poll_group});
  if (auto connected = co_await channel.wait_attempt(); !connected) {
    client->error = connected.error().to_string();
  } else {
    // Many coroutines share a channel; a scope waits for all of them.
    Scope scope(client->host->reactor());
    for (int i = 0; i < kTogether; ++i) scope.spawn(&work, client, &channel, i);
    co_await scope.join();
  }
  co_await channel.close();
  co_return client->error.empty();
}

// How many poll groups the server has.
Task<Result<uint16_t>> count_poll_groups(srpc::ReactorHost* host, Address to) {
  srpc::Channel channel(host->reactor(), host->metrics(), host->connector(to));
  const auto connected = co_await channel.wait_attempt();
  const uint16_t groups = connected ? channel.poll_groups() : 0;
  co_await channel.close();
  if (!connected) co_return connected.error();
  co_return groups;
}

}  // namespace

int main(int argc, char** argv) {
  const auto address = Address::parse(argc > 1 ? argv[1] : "127.0.0.1:7421");
  if (!address) {
    std::fprintf(stderr, "usage: threads [HOST:PORT]\n");
    return 2;
  }
  auto host = srpc::ReactorHost::create();
  if (!host) {
    std::fprintf(stderr, "threads: %s\n", host.error().to_string().c_str());
    return 1;
  }
  const auto groups = (*host)->run(&count_poll_groups, host->get(), *address);
  if (!groups) {
    std::fprintf(stderr, "threads: %s\n", groups.error().to_string().c_str());
    return 1;
  }

  std::vector<Client> clients;
  for (int i = 0; i < kThreads; ++i) {
    auto own = srpc::ReactorHost::create({.index = static_cast<uint32_t>(i), .memory = size_t{16} << 20});
    if (!own) {
      std::fprintf(stderr, "threads: %s\n", own.error().to_string().c_str());
      return 1;
    }
    clients.push_back({.host = *std::move(own), .number = i});
  }
  std::vector<std::future<bool>> running;
  for (Client& client : clients) {
    client.host->start("client-" + std::to_string(client.number));
    const auto group = static_cast<uint16_t>(client.number % *groups);
    running.push_back(client.host->begin(&run, &client, *address, group));
  }
  bool fine = true;
  for (int i = 0; i < kThreads; ++i) {
    fine &= running[static_cast<size_t>(i)].get();
    const Client& client = clients[static_cast<size_t>(i)];
    std::printf("thread %d, poll group %d: %d calls%s%s\n", i, i % *groups, client.answered,
                client.error.empty() ? "" : ", then ", client.error.c_str());
  }
  return fine ? 0 : 1;
}
