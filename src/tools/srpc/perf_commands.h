// The subcommands of srpc-perf. Each gives the program's exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "reactor/reactor.h"
#include "srpc/key_ring.h"
#include "tools/srpc/load.h"

namespace cairn::srpc::tools {

inline constexpr uint16_t kPerfPort = 7410;

struct ServerPlan {
  std::string listen;
  uint32_t poll_groups = 1;
  Mode mode = Mode::automatic;
  size_t memory = 0;  // of each poll group
  bool shared_memory = true;
  std::optional<KeyRing> keys = {};
  bool rdma = true;
  bool rdma_expected = false;
  bool tls = false;            // over TCP nobody is served without; with keys only
  bool print_address = false;  // only that, on standard output, for programs
};
// Until SIGINT or SIGTERM.
int run_server(const ServerPlan& plan);

// Every combination is measured.
struct ClientPlan {
  std::string server;
  std::vector<Way> ways;
  std::vector<size_t> sizes;
  std::vector<uint32_t> depths;
  Workload workload;  // the rest, but for its keys
  std::string key_file = "";
  std::optional<KeyRing> keys = {};  // of that file
  bool json = false;
};
int run_client(const ClientPlan& plan);

struct SweepPlan {
  ClientPlan client = {};  // its server: empty for one of our own
  uint32_t poll_groups = 1;
  size_t bulk_size = size_t{1} << 20;
  std::string folder;
};
// Small blocks, then bulk ones, over all depths and ways: sweep.json, latency.svg, rate.svg, throughput.svg.
int run_sweep(const SweepPlan& plan);

struct LoadPlan {
  ClientPlan client = {};          // its depths: one, the most calls under way of each thread
  std::vector<double> rates = {};  // of calls a second; empty: from next to nothing to what there is
  std::vector<Mode> modes = {};
  uint32_t poll_groups = 1;
  std::string folder;
};
// Latency and processor time over offered load, for each way to wait, of both sides alike, with a server of our own:
// load.json, load-latency.svg, load-cpu.svg.
int run_load(const LoadPlan& plan);

}  // namespace cairn::srpc::tools
