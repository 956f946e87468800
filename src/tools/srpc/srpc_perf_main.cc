// srpc-perf: how fast is SRPC here, and what does it cost.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "tools/srpc/perf_commands.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {
namespace {

constexpr const char* kFooter = R"text(
Examples:
  srpc-perf server                                  serve on 127.0.0.1:7410 until Ctrl-C
  srpc-perf server --listen 10.0.0.7 --poll-groups 4
  srpc-perf client                                  4 KiB writes, one at a time, to 127.0.0.1:7410
  srpc-perf client 10.0.0.7 --size 4KiB,64KiB --depth 1,8,32
  srpc-perf client --op read --size 1MiB --depth 8 --threads 2 --json
  srpc-perf client --transport tcp --mode performance --size 64 --op echo
  srpc-perf sweep --out plots                       server and client here: JSON and plots from one command
  srpc-perf load --transport tcp --out plots        latency and processor time over offered load, for each mode
  srpc-perf sweep --connect 10.0.0.7 --transport tcp --out plots

'srpc-perf COMMAND --help' explains each option. Latencies are from a call to its answer. Processor time per call is
that of the whole process, at both ends; a server that others use meanwhile counts what they cost, too. In performance
mode it is one core, whatever the load.

Exit codes: 0 ok, 1 a call failed, 2 wrong usage, 3 no server reachable, 4 something else than srpc-perf's server
there.)text";

// What the options of client and sweep come to; texts are parsed after CLI11 is done, so that errors read alike.
struct Words {
  std::string server = "";
  std::vector<std::string> ways;
  std::vector<std::string> sizes;
  std::vector<uint32_t> depths;
  std::string operation = "write";
  std::string mode = "automatic";
  std::string seconds;
  std::string key_file = "";
  uint32_t threads = 1;
  bool tls = false;
  bool json = false;
};

void add_load_options(CLI::App& command, Words& words) {
  command
      .add_option(
          "--transport", words.ways,
          "near or auto (shared memory on one machine, else RDMA if it works, else TCP), tcp, shm, rdma; or several")
      ->type_name("NAME,...")
      ->delimiter(',');
  command.add_option("--size", words.sizes, "payload of a call, at most 16MiB; or several")
      ->type_name("SIZE,...")
      ->delimiter(',');
  command.add_option("--depth", words.depths, "calls under way, of each thread; or several")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536));
  command.add_option("--op", words.operation, "write: payload goes to the server; read: from it; echo: both (write)")
      ->type_name("NAME");
  command.add_option("--threads", words.threads, "threads, each with its own reactor and channel (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  command.add_option("--seconds", words.seconds, "how long to measure each combination, after 0.2 s of warm-up")
      ->type_name("N");
  command.add_option("--key-file", words.key_file, "keys of the server's cluster: lines of 64 hexadecimal digits")
      ->type_name("FILE");
  command.add_flag("--tls", words.tls, "encrypt TCP; needs --key-file");
  command.add_flag("--json", words.json, "print JSON instead of a table");
}

// How the client waits; `load` has both sides wait in several ways instead.
void add_mode_option(CLI::App& command, Words& words) {
  command
      .add_option("--mode", words.mode,
                  "how the client waits: performance polls, economy sleeps, automatic (automatic)")
      ->type_name("NAME");
}

Result<Duration> parse_seconds(const std::string& text) {
  // A bare number means seconds here, as the option's name says.
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  TRY(const Duration time, parse_duration(bare ? text + "s" : text));
  if (time < milliseconds(10) || time > seconds(3600)) {
    return Error(Errc::invalid_argument, fmt::format("--seconds {}: between 0.01 and 3600", text));
  }
  return time;
}

Result<Operation> parse_operation(const std::string& text) {
  for (const Operation operation : {Operation::write, Operation::read, Operation::echo}) {
    if (text == operation_name(operation)) return operation;
  }
  return Error(Errc::invalid_argument, fmt::format("'{}' is no operation: take one of write, read, echo", text));
}

Result<size_t> parse_payload(const std::string& text) {
  TRY(const uint64_t size, parse_size(text));
  if (size > kMaxData) {
    return Error(Errc::invalid_argument,
                 fmt::format("{} of payload: one call carries at most {}", text, format_size(kMaxData)));
  }
  return size;
}

Result<ClientPlan> plan_of(const Words& words) {
  ClientPlan plan;
  plan.server = words.server;
  for (const auto& way : words.ways) {
    TRY(const Way parsed, parse_way(way));
    plan.ways.push_back(parsed);
  }
  for (const auto& size : words.sizes) {
    TRY(const size_t parsed, parse_payload(size));
    plan.sizes.push_back(parsed);
  }
  plan.depths = words.depths;
  TRY(plan.workload.operation, parse_operation(words.operation));
  TRY(plan.workload.mode, parse_mode(words.mode));
  TRY(plan.workload.time, parse_seconds(words.seconds));
  plan.workload.threads = words.threads;
  plan.json = words.json;
  plan.key_file = words.key_file;
  TRY(plan.keys, read_key_ring(words.key_file));
  TRY(tls_keys_of(words.tls, plan.keys));
  plan.workload.tls = words.tls;
  return plan;
}

int wrong_usage(const Error& error) {
  fmt::print(stderr, "srpc-perf: {}; try srpc-perf --help\n", error.message());
  return static_cast<int>(Exit::usage);
}

struct ServerWords {
  std::string listen = "127.0.0.1";
  uint32_t poll_groups = 1;
  std::string mode = "automatic";
  std::string memory = "128MiB";
  std::string key_file;
  bool tls = false;
  bool tcp_only = false;
  std::string rdma = "auto";
  bool print_address = false;
};

CLI::App* add_server(CLI::App& app, ServerWords& words) {
  auto* command = app.add_subcommand("server", "serve measurements until Ctrl-C");
  command
      ->add_option(
          "--listen", words.listen,
          "address (127.0.0.1:7410); port 0: any free one. Beyond loopback anybody may use it without --key-file")
      ->type_name("HOST[:PORT]");
  command->add_option("--poll-groups", words.poll_groups, "reactors, each on a thread of its own (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  command->add_option("--mode", words.mode, "how they wait: performance polls, economy sleeps, automatic (automatic)")
      ->type_name("NAME");
  command->add_option("--memory", words.memory, "for payload, of each poll group (128MiB)")->type_name("SIZE");
  command
      ->add_option("--key-file", words.key_file,
                   "serve only clients that know a key of this file (openssl rand -hex 32)")
      ->type_name("FILE");
  command->add_flag("--tcp-only", words.tcp_only, "offer no shared memory and no RDMA");
  command->add_option("--rdma", words.rdma, "auto (where it works), on (says what keeps it from working), off (auto)")
      ->type_name("WHEN");
  command->add_flag("--tls", words.tls, "take nothing but TLS over TCP; needs --key-file");
  command->add_flag("--print-address", words.print_address, "print nothing but the address, for scripts");
  return command;
}

int serve(const ServerWords& words) {
  ServerPlan plan{.listen = words.listen, .poll_groups = words.poll_groups};
  const auto mode = parse_mode(words.mode);
  if (!mode) return wrong_usage(mode.error());
  const auto memory = parse_size(words.memory);
  if (!memory) return wrong_usage(memory.error());
  constexpr uint64_t kStep = uint64_t{2} << 20;
  if (*memory < 4 * kStep) return wrong_usage(Error(Errc::invalid_argument, "--memory: at least 8MiB"));
  plan.mode = *mode;
  plan.memory = *memory / kStep * kStep;
  auto keys = read_key_ring(words.key_file);
  if (!keys) return wrong_usage(keys.error());
  plan.keys = *std::move(keys);
  if (auto tls = tls_keys_of(words.tls, plan.keys); !tls) return wrong_usage(tls.error());
  plan.tls = words.tls;
  plan.shared_memory = !words.tcp_only;
  if (words.rdma != "auto" && words.rdma != "on" && words.rdma != "off") {
    return wrong_usage(Error(Errc::invalid_argument, "--rdma: auto, on or off"));
  }
  plan.rdma = words.rdma != "off" && !words.tcp_only;
  plan.rdma_expected = words.rdma == "on";
  plan.print_address = words.print_address;
  return run_server(plan);
}

int load_at_rates(LoadPlan plan, const ClientPlan& client, const std::vector<std::string>& modes) {
  plan.client = client;
  if (client.ways.size() != 1 || client.sizes.size() != 1 || client.depths.size() != 1) {
    return wrong_usage(Error(Errc::invalid_argument, "load takes one --transport, one --size and one --depth"));
  }
  for (const std::string& mode : modes) {
    const auto parsed = parse_mode(mode);
    if (!parsed) return wrong_usage(parsed.error());
    plan.modes.push_back(*parsed);
  }
  std::ranges::sort(plan.rates);
  return run_load(plan);
}

int run(int argc, char** argv) {
  CLI::App app("srpc-perf: latency, rate and bandwidth of SRPC, and what they cost", "srpc-perf");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("srpc-perf {}", kVersion));
  app.require_subcommand(1);

  ServerWords server_words;
  const auto* server = add_server(app, server_words);

  Words client_words{.server = "127.0.0.1", .ways = {"near"}, .sizes = {"4KiB"}, .depths = {1}, .seconds = "3"};
  auto* client = app.add_subcommand("client", "measure a server: one row for each transport, size and depth");
  client->add_option("server", client_words.server, "where it listens (127.0.0.1:7410)")->type_name("HOST[:PORT]");
  add_load_options(*client, client_words);
  add_mode_option(*client, client_words);

  Words sweep_words{.ways = {"shm", "tcp"}, .sizes = {"4KiB"}, .depths = {1, 2, 4, 8, 16, 32, 64}, .seconds = "1"};
  SweepPlan sweep_plan{.folder = "srpc-sweep"};
  std::string bulk_size = "1MiB";
  auto* sweep = app.add_subcommand("sweep", "measure over depths, sizes and transports, and plot it");
  sweep->add_option("--connect", sweep_words.server, "a server elsewhere; without it, one is started here")
      ->type_name("HOST[:PORT]");
  sweep
      ->add_option("--out", sweep_plan.folder,
                   "folder for sweep.json, latency.svg, rate.svg, throughput.svg (srpc-sweep)")
      ->type_name("DIR");
  sweep->add_option("--bulk-size", bulk_size, "payload of the calls that throughput is plotted of (1MiB)")
      ->type_name("SIZE");
  sweep->add_option("--poll-groups", sweep_plan.poll_groups, "of the server that is started here (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  add_load_options(*sweep, sweep_words);
  add_mode_option(*sweep, sweep_words);

  Words load_words{.ways = {"near"}, .sizes = {"64"}, .depths = {256}, .operation = "echo", .seconds = "2"};
  LoadPlan load_plan{.folder = "srpc-load"};
  std::vector<std::string> modes = {"performance", "economy", "automatic"};
  auto* load = app.add_subcommand("load", "measure at given rates, for each mode, and plot latency and processor time");
  load->add_option("--rates", load_plan.rates,
                   "calls a second, whatever becomes of those before (10, 30, 100, ... up to what there is)")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 1e9));
  load->add_option("--modes", modes, "of both sides (performance,economy,automatic)")
      ->type_name("NAME,...")
      ->delimiter(',');
  load->add_option("--out", load_plan.folder, "folder for load.json, load-latency.svg, load-cpu.svg (srpc-load)")
      ->type_name("DIR");
  load->add_option("--poll-groups", load_plan.poll_groups, "of the server that is started here (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  add_load_options(*load, load_words);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  log::setup(log::Level::warn, log::Format::text);
  if (*server) return serve(server_words);
  const auto plan = plan_of(*client ? client_words : *load ? load_words : sweep_words);
  if (!plan) return wrong_usage(plan.error());
  if (*client) return run_client(*plan);
  if (*load) return load_at_rates(load_plan, *plan, modes);
  sweep_plan.client = *plan;
  const auto bulk = parse_payload(bulk_size);
  if (!bulk) return wrong_usage(bulk.error());
  sweep_plan.bulk_size = *bulk;
  return run_sweep(sweep_plan);
}

}  // namespace
}  // namespace cairn::srpc::tools

int main(int argc, char** argv) { return cairn::srpc::tools::run(argc, argv); }
