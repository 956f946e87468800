// srpc-ping: is there an SRPC server, what does it allow, and how far away is it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "reactor/deadline.h"
#include "srpc/channel.h"
#include "srpc/reactor_host.h"
#include "tools/srpc/exit_code.h"
#include "tools/srpc/latency_histogram.h"
#include "tools/srpc/reach.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {
namespace {

constexpr const char* kProgram = "srpc-ping";
constexpr uint16_t kDefaultPort = 7400;

constexpr const char* kFooter = R"text(
Examples:
  srpc-ping                         the node on this machine: 127.0.0.1:7400
  srpc-ping node1                   by name, port 7400
  srpc-ping 10.0.0.7:7410 -c 1000   more pings, for a p99 that means something
  srpc-ping --transport tcp         over TCP although shared memory would do
  srpc-ping --transport rdma node1  fails when that doesn't work, and says why
  srpc-ping --poll-group 1          a certain poll group of the server
  srpc-ping --interval 100ms        with pauses: what a call costs that meets a sleeping server
  srpc-ping --key-file /var/lib/cairn/cluster_key node1   a server that serves only those who know its key
  srpc-ping --json | jq .round_trip_us.median

Any SRPC server answers: pings need no method. What the first lines show is what the server allows each of its clients.

Exit codes: 0 ok, 1 failed or the connection was lost, 2 wrong usage, 3 nobody there, 4 somebody there who doesn't speak
SRPC.)text";

struct Plan {
  std::string server = "127.0.0.1";
  Way way = Way::near;
  uint16_t poll_group = kAnyPollGroup;
  uint32_t count = 100;
  Duration interval;
  Duration timeout = seconds(3);
  std::optional<KeyRing> keys = {};
  bool tls = false;
  bool json = false;
};

struct Found {
  std::string transport;
  std::string peer;
  HelloReplyBody agreed;
  Duration connect_time;
  LatencyHistogram round_trips;
};
using Outcome = std::expected<Found, Failure>;

Task<std::optional<Failure>> ping_often(Channel* channel, const Plan* plan, LatencyHistogram* round_trips) {
  const SystemClock clock;
  for (uint32_t i = 0; i < plan->count; ++i) {
    if (i > 0 && plan->interval.ns > 0) (void)co_await channel->loop().sleep(plan->interval);
    Deadline deadline(channel->loop(), channel->loop().now() + plan->timeout);
    const Time before = clock.now();
    const auto answered = co_await channel->ping(deadline.token());
    if (!answered) {
      const bool late = answered.error().code() == Errc::timed_out;
      co_return Failure{Exit::failed, std::string(errc_name(answered.error().code())),
                        late
                            ? fmt::format("ping {} of {}: no answer within {}: the server hangs, or the network is cut",
                                          i + 1, plan->count, format_duration(plan->timeout))
                            : fmt::format("ping {} of {}: {}", i + 1, plan->count, answered.error().message())};
    }
    round_trips->record((clock.now() - before).ns);
  }
  co_return std::nullopt;
}

Task<Outcome> ping(ReactorHost* host, Address to, const Plan* plan) {
  const SystemClock clock;
  const Time before = clock.now();
  Channel channel(host->reactor(), host->metrics(), host->connector(to, plan->way, plan->tls ? &*plan->keys : nullptr),
                  {.poll_group = plan->poll_group, .connect_timeout = plan->timeout, .keys = keys_of(plan->keys)});
  Found found;
  auto failure = co_await reach(channel, plan->way, plan->timeout, plan->keys.has_value());
  if (!failure) {
    found.connect_time = clock.now() - before;
    found.transport = channel.transport();
    found.peer = channel.peer();
    found.agreed = channel.agreed();
    failure = co_await ping_often(&channel, plan, &found.round_trips);
  }
  co_await channel.close();
  if (failure) co_return std::unexpected(*std::move(failure));
  co_return found;
}

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

void print_text(const std::string& address, const Found& found) {
  const HelloReplyBody& agreed = found.agreed;
  fmt::print("{}: SRPC version {} over {}, connected in {:.0f} us\n", address, agreed.version, found.transport,
             us(found.connect_time.ns));
  fmt::print("  server      {}\n", Id128{agreed.server_id}.to_string());
  fmt::print("  poll group  {} of {}\n", agreed.poll_group.get(), agreed.poll_groups.get());
  fmt::print("  credits     {} messages, {} calls under way, {} of payload under way\n", agreed.credits.get(),
             agreed.max_calls.get(), format_size(agreed.byte_credits));
  fmt::print("  limits      {} of payload and {} of metadata a request, {} of silence\n", format_size(agreed.max_data),
             format_size(agreed.max_metadata), format_duration(milliseconds(agreed.idle_timeout_ms)));
  const LatencyHistogram& trips = found.round_trips;
  fmt::print("  round trip  {:.1f} us min, {:.1f} us median, {:.1f} us p99, {:.1f} us max of {} pings\n",
             us(trips.min_ns()), us(trips.percentile_ns(0.5)), us(trips.percentile_ns(0.99)), us(trips.max_ns()),
             trips.count());
}

void print_json(const std::string& address, const Found& found) {
  const HelloReplyBody& agreed = found.agreed;
  const LatencyHistogram& trips = found.round_trips;
  const nlohmann::ordered_json document = {{"address", address},
                                           {"transport", found.transport},
                                           {"peer", found.peer},
                                           {"server_id", Id128{agreed.server_id}.to_string()},
                                           {"version", agreed.version},
                                           {"features", agreed.features.get()},
                                           {"poll_group", agreed.poll_group.get()},
                                           {"poll_groups", agreed.poll_groups.get()},
                                           {"credits", agreed.credits.get()},
                                           {"limits",
                                            {{"calls", agreed.max_calls.get()},
                                             {"payload_under_way_bytes", agreed.byte_credits.get()},
                                             {"request_bytes", agreed.max_data.get()},
                                             {"metadata_bytes", agreed.max_metadata.get()},
                                             {"idle_timeout_ms", agreed.idle_timeout_ms.get()}}},
                                           {"connect_us", us(found.connect_time.ns)},
                                           {"round_trip_us",
                                            {{"count", trips.count()},
                                             {"min", us(trips.min_ns())},
                                             {"median", us(trips.percentile_ns(0.5))},
                                             {"p99", us(trips.percentile_ns(0.99))},
                                             {"max", us(trips.max_ns())}}}};
  fmt::print("{}\n", document.dump(2));
}

int run_plan(const Plan& plan) {
  const auto fail = [&plan](const Error& error, Exit exit) {
    return report(kProgram, {exit, std::string(errc_name(error.code())), error.message()}, plan.json);
  };
  auto host = ReactorHost::create({.memory = size_t{4} << 20, .rdma = rdma_for(plan.way)});
  if (!host) return fail(host.error(), Exit::failed);
  const auto address = find_server(**host, plan.server, kDefaultPort);
  if (!address) return fail(address.error(), Exit::unreachable);
  const Outcome outcome = (*host)->run(&ping, host->get(), *address, &plan);
  if (!outcome) return report(kProgram, outcome.error(), plan.json);
  plan.json ? print_json(address->to_string(), *outcome) : print_text(address->to_string(), *outcome);
  return static_cast<int>(Exit::ok);
}

int wrong_usage(const Error& error) {
  fmt::print(stderr, "srpc-ping: {}; try srpc-ping --help\n", error.message());
  return static_cast<int>(Exit::usage);
}

int run(int argc, char** argv) {
  CLI::App app("srpc-ping: is there an SRPC server, what does it allow, how far away is it", "srpc-ping");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("srpc-ping {}", kVersion));
  Plan plan;
  std::string way = "near";
  std::string interval = "0";
  std::string timeout = "3s";
  std::string key_file;
  std::optional<uint16_t> poll_group;
  app.add_option("server", plan.server, "where it listens (127.0.0.1:7400)")->type_name("HOST[:PORT]");
  app.add_option("-c,--count", plan.count, "pings (100)")->type_name("N")->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--interval", interval, "pause between them (0)")->type_name("TIME");
  app.add_option("--timeout", timeout, "how long to wait for the connection, and for each answer (3s)")
      ->type_name("TIME");
  app.add_option("--transport", way,
                 "near or auto (shared memory on one machine, else RDMA if it works, else TCP), tcp, shm, rdma (near)")
      ->type_name("NAME");
  app.add_option("--poll-group", poll_group, "ask for this one (any)")->type_name("N")->check(CLI::Range(0, 65534));
  app.add_option("--key-file", key_file, "keys of the server's cluster: lines of 64 hexadecimal digits")
      ->type_name("FILE");
  app.add_flag("--tls", plan.tls, "encrypt TCP; needs --key-file");
  app.add_flag("--json", plan.json, "print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  const auto parsed_way = parse_way(way);
  if (!parsed_way) return wrong_usage(parsed_way.error());
  const auto parsed_interval = parse_duration(interval);
  if (!parsed_interval) return wrong_usage(parsed_interval.error());
  const auto parsed_timeout = parse_duration(timeout);
  if (!parsed_timeout) return wrong_usage(parsed_timeout.error());
  if (parsed_timeout->ns <= 0) return wrong_usage(Error(Errc::invalid_argument, "--timeout: more than 0"));
  auto keys = read_key_ring(key_file);
  if (!keys) return wrong_usage(keys.error());
  plan.keys = *std::move(keys);
  if (auto tls = tls_keys_of(plan.tls, plan.keys); !tls) return wrong_usage(tls.error());
  plan.way = *parsed_way;
  plan.interval = *parsed_interval;
  plan.timeout = *parsed_timeout;
  plan.poll_group = poll_group.value_or(kAnyPollGroup);
  log::setup(log::Level::warn, log::Format::text);
  return run_plan(plan);
}

}  // namespace
}  // namespace cairn::srpc::tools

int main(int argc, char** argv) { return cairn::srpc::tools::run(argc, argv); }
