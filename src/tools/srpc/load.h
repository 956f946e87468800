// One measurement: threads with a reactor and a channel each keep a number of calls under way for a while.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "base/time.h"
#include "reactor/address.h"
#include "srpc/key_ring.h"
#include "srpc/reactor_host.h"
#include "tools/srpc/exit_code.h"
#include "tools/srpc/latency_histogram.h"

namespace cairn::srpc::tools {

// Payload with the request, with the reply, with both.
enum class Operation : uint8_t { write, read, echo };

struct Workload {
  Way way = Way::near;
  Operation operation = Operation::write;
  size_t size = 4096;
  uint32_t depth = 1;  // calls under way, of each thread; with a rate: at most
  // Of all threads together: calls are due at even intervals, whatever becomes of those before, and their latency is
  // from the moment they were due. 0: the next one as soon as one is answered.
  double calls_per_second = 0;
  uint32_t threads = 1;
  Mode mode = Mode::automatic;  // of the client's reactors
  Duration warm_up = milliseconds(200);
  Duration time = seconds(3);
  Duration connect_timeout = seconds(5);
  const KeyRing* keys = nullptr;  // outlives the measurement
  bool tls = false;               // of TCP; with keys only
};

struct Measured {
  Workload workload;
  std::string transport;     // as it came about: "tcp", "shm"
  uint16_t poll_groups = 0;  // of the server; thread i asks for group i modulo their number
  double seconds = 0;
  LatencyHistogram latency = {};
  double client_cpu_us = 0;  // of both processes while it was measured
  double server_cpu_us = 0;
  uint64_t client_hops = 0;  // pieces of work that one thread handed to another meanwhile
  uint64_t server_hops = 0;

  double calls() const { return static_cast<double>(latency.count()); }
  double calls_per_second() const { return calls() / seconds; }
  // Payload, counted once for each direction that it goes.
  double bytes_per_second() const;
  double cores(double us) const { return us / 1e6 / seconds; }
  double per_call(double us) const { return latency.count() == 0 ? 0 : us / calls(); }
};

// Blocks until it is done. The server is srpc-perf's.
std::expected<Measured, Failure> measure(const Address& server, const Workload& workload);

std::string_view operation_name(Operation operation);

}  // namespace cairn::srpc::tools
