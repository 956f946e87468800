// Process: a node on this machine, from the data directory to the last listener, and back.
//
//   start   lock the data directory ─► take the ports ─► device: find, make, format ─► store, cluster map ─► a Part for
//           each reactor ─► shards and groups recover, SRPC ─► gateways, admin ─► ready file
//   stop    ready file gone ─► gateways closed, requests under way end ─► clients ─► groups, checkpoints ─► threads end
//   ─►
//           store closed
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "admin/node_view.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/device.h"
#include "engine/disk_file.h"
#include "kv/rocks_store.h"
#include "mem/arena.h"
#include "node/command_line.h"
#include "node/data_directory.h"
#include "node/part.h"
#include "node/process_metrics.h"
#include "node/ready_file.h"
#include "node/resources.h"
#include "node/setup_reactor.h"
#include "reactor/held_port.h"
#include "reactor/offload.h"
#include "reactor/stop_signals.h"

namespace cairn::node {

class Process final : private admin::NodeView {
 public:
  // Both outlive the process.
  Process(const CommandLine& line, StopSignals& signals);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Stopped, or never started.
  ~Process() override;

  // Returns when everything listens and the ready file is written. After an error, stop() takes down what came up.
  Result<void> start();
  void stop();

 private:
  Result<void> take_ports();
  // Device, store and cluster map, on a reactor of their own.
  Result<void> set_up();
  Result<void> set_up_device(SetupReactor& setup, const std::string& path);
  Result<void> set_up_store(SetupReactor& setup);
  Result<void> make_parts();
  Result<void> open_parts();
  Result<void> open_gateways();
  Result<void> announce(bool access_key_valid);

  // On any part's thread.
  void fence_device(const Error& why);

  // Waits for what a worker brings. Ends the process when a stop signal comes before: nothing is served yet, and a
  // start may be cut off anywhere, as by a crash.
  template <typename T>
  T wait_for(std::future<T> future);
  // Runs a Part's method on all parts side by side.
  template <typename... Arguments>
  std::vector<std::future<Result<void>>> call_all(Task<Result<void>> (Part::*method)(Arguments...),
                                                  std::type_identity_t<Arguments>... arguments);

  Task<Result<admin::NodeStatus>> status() override;
  std::vector<admin::ConfigRow> config() const override;
  std::string metrics() override;
  uint64_t uptime_seconds() const;
  Result<void> ready() const override;
  Task<Result<void>> checkpoint() override;
  Task<Result<object::OrphanReport>> check_orphans() override;

  const CommandLine& line_;
  StopSignals& signals_;
  Machine machine_;
  SystemRng rng_;
  SystemWallClock wall_clock_;
  SystemClock clock_;
  Time started_;

  // In the order in which they come up; destroyed in the opposite one.
  std::optional<DataDirectory> directory_;
  std::optional<engine::DiskFile> disk_;
  HeldPort s3_port_;
  HeldPort admin_port_;
  HeldPort srpc_port_;
  engine::DeviceInfo device_;
  control::ClusterMap map_;
  Resources resources_;
  std::optional<OffloadPool> helpers_;
  std::unique_ptr<kv::RocksStore> store_;
  std::optional<mem::Arena> arena_;
  std::optional<Part::Shared> shared_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::optional<srpc::ReactorPlacement> placement_;
  std::optional<ProcessMetrics> metrics_;
  Endpoints endpoints_;
  std::atomic<bool> serving_{false};  // read by reactor 0
};

}  // namespace cairn::node
