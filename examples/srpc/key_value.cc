// A key-value server in memory, and its client: payload in both directions.
//
//   key_value serve [POLL_GROUPS [HOST:PORT]]
//   key_value put KEY FILE [HOST:PORT]
//   key_value get KEY [HOST:PORT]               the value on standard output
#include <srpc/channel.h>
#include <srpc/reactor_host.h>
#include <srpc/server_process.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "key_value_methods.h"

#include <reactor/stop_signals.h>

using namespace cairn;

namespace {

constexpr const char* kDefaultAddress = "127.0.0.1:7421";

// What one poll group keeps. Payload lands once in memory of its pool, stays there, and is sent from there: neither put
// nor get copies it.
class Store {
 public:
  explicit Store(srpc::Server& server) {
    server.register_method<Put>(*this, &Store::put, {.max_tail = kMaxKey});
    server.register_method<Get>(*this, &Store::get, {.max_tail = kMaxKey});
  }

 private:
  Task<Result<srpc::Message<ValueSize>>> put(srpc::CallContext& context, srpc::Message<srpc::None> request) {
    // Who keeps what requests bring must keep less than the pool has, else there is none left for the next one.
    if (context.pool.free_bytes() < context.pool.total_bytes() / 2) {
      co_return Error(Errc::no_space, "the store is full: get a larger one, or keep less");
    }
    const auto size = static_cast<uint32_t>(request.data.size());
    values_[std::move(request.tail)] = std::move(request.data);
    co_return srpc::Message<ValueSize>{.meta = {size}};
  }
  Task<Result<srpc::Message<ValueSize>>> get(srpc::CallContext&, srpc::Message<srpc::None> request) {
    const auto found = values_.find(request.tail);
    if (found == values_.end()) co_return Error(Errc::not_found, "no such key: " + request.tail);
    co_return srpc::Message<ValueSize>{.meta = {static_cast<uint32_t>(found->second.size())}, .data = found->second};
  }

  std::map<std::string, mem::BufChain> values_;
};

int serve(uint16_t poll_groups, const Address& at) {
  StopSignals signals;
  auto process = srpc::ServerProcess::start(
      {.at = at, .poll_groups = poll_groups},
      [](srpc::Server& server, srpc::ReactorHost&) { return std::make_shared<Store>(server); });
  if (!process) {
    std::fprintf(stderr, "key_value: %s\n", process.error().to_string().c_str());
    return 1;
  }
  std::printf("serving at %s\n", (*process)->address().to_string().c_str());
  std::fflush(stdout);
  signals.wait();
  (*process)->stop(seconds(5));
  return 0;
}

// A channel to the poll group that has the key. Its number is known once somebody has said hello.
Task<Result<std::unique_ptr<srpc::Channel>>> find(srpc::ReactorHost* host, Address at, const std::string* key) {
  const auto open = [&](uint16_t poll_group) {
    return std::make_unique<srpc::Channel>(host->reactor(), host->metrics(), host->connector(at),
                                           srpc::ChannelOptions{.poll_group = poll_group});
  };
  auto channel = open(srpc::kAnyPollGroup);
  if (auto connected = co_await channel->wait_attempt(); !connected) {
    co_await channel->close();
    co_return std::move(connected).error();
  }
  const uint16_t wanted = poll_group_of(*key, channel->poll_groups());
  if (channel->poll_group() != wanted) {
    co_await channel->close();
    channel = open(wanted);
  }
  co_return channel;
}

// Straight into the pieces of the chain. (Copies of a Buf share its memory.)
bool read_file(const std::string& path, const mem::BufChain& into) {
  std::ifstream file(path, std::ios::binary);
  for (mem::Buf piece : into.slices()) {
    file.read(reinterpret_cast<char*>(piece.writable()), static_cast<std::streamsize>(piece.size()));
  }
  return file.good();
}

Task<Result<void>> put(srpc::ReactorHost* host, Address at, std::string key, std::string path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) co_return Error(Errc::not_found, "can't read " + path);
  CO_TRY(auto channel, co_await find(host, at, &key));
  Result<void> outcome;
  // Payload comes from the pool, and is held by the call until it is sent.
  auto memory = co_await host->pool().alloc_chain(size);
  if (memory && !read_file(path, *memory)) memory = Error(Errc::io_error, "can't read " + path);
  if (memory) {
    auto reply = co_await channel->call<Put>({.tail = std::move(key), .data = *std::move(memory)},
                                             {.deadline = host->reactor().now() + seconds(10)});
    if (!reply) outcome = std::move(reply).error();
  } else {
    outcome = std::move(memory).error();
  }
  co_await channel->close();
  co_return outcome;
}

Task<Result<std::string>> get(srpc::ReactorHost* host, Address at, std::string key) {
  CO_TRY(auto channel, co_await find(host, at, &key));
  auto reply = co_await channel->call<Get>({.tail = std::move(key)}, {.deadline = host->reactor().now() + seconds(10)});
  std::string content;
  if (reply) {
    reply->data.for_each([&](std::span<const std::byte> bytes) {
      content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
  }
  co_await channel->close();
  if (!reply) co_return std::move(reply).error();
  co_return content;
}

template <typename T>
int check(const Result<T>& result) {
  if (result) return 0;
  std::fprintf(stderr, "key_value: %s\n", result.error().to_string().c_str());
  return 1;
}

int usage() {
  std::fprintf(stderr,
               "usage: key_value serve [POLL_GROUPS [HOST:PORT]] | put KEY FILE [HOST:PORT] | get KEY [HOST:PORT]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return usage();
  const auto word = [&](size_t i, const char* otherwise) { return i < words.size() ? words[i] : otherwise; };
  const std::string& what = words[0];
  const size_t address_at = what == "put" ? 3 : 2;
  const auto address = Address::parse(word(address_at, kDefaultAddress));
  if (!address) return usage();

  if (what == "serve") {
    const int groups = std::atoi(word(1, "1").c_str());
    if (groups < 1 || groups > 256) return usage();
    return serve(static_cast<uint16_t>(groups), *address);
  }
  if (words.size() < address_at) return usage();
  auto host = srpc::ReactorHost::create();
  if (!host) return check(host);
  if (what == "put") {
    return check((*host)->run(&put, host->get(), *address, words[1], words[2]));
  }
  if (what != "get") return usage();
  const auto content = (*host)->run(&get, host->get(), *address, words[1]);
  if (content) std::fwrite(content->data(), 1, content->size(), stdout);
  return check(content);
}
