// Device: one port of one RDMA device with the process's memory made known to it. Opened once, then shared by the poll
// groups of all reactors, which change nothing in it.
//
// Memory is registered in two protection domains, each with its own keys: in that of clients peers may read and write
// it, in that of servers nobody may. So no key that a client gives away opens anything through a server's queue pair.
// (It opens all of this process's memory through the client's own queue pair, to the server that it talks to.) The
// kernel counts the memory against RLIMIT_MEMLOCK once for each domain.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "srpc/rdma/qp_address.h"
#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma {

// One rail. Everything but the device's name may be left as it is.
struct RailOptions {
  std::string device;  // "mlx5_0"
  uint8_t port = 1;
  std::optional<uint32_t> gid_index = {};  // none: chosen for each connection (gid_choice.h)
  uint32_t mtu = 0;                        // bytes: 256, 512, ... 4096; 0: as large as the path can
  uint8_t traffic_class = 0;               // RoCEv2: DSCP << 2, and ECN
  uint8_t service_level = 0;               // InfiniBand
  uint8_t timeout = 14;                    // for an acknowledgement: 4.096 us * 2^timeout
  uint8_t retries = 7;                     // of what wasn't acknowledged, before the connection has failed
  uint8_t rnr_retries = 7;                 // of what found no receive posted; 7: for ever
};

// What this process is, or both.
struct Roles {
  bool client = true;
  bool server = true;
};

class Device {
 public:
  // `memory`: where payload lives, the arenas of the process; it outlives the device, as `verbs` does. Errors, one line
  // each: no such device or port, or a call that failed, with device, call, limit and what to do.
  static Result<std::unique_ptr<Device>> open(Verbs& verbs, RailOptions options,
                                              std::span<const std::span<std::byte>> memory, Roles roles = {});
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Everything made from it is gone.
  ~Device();

  const RailOptions& options() const { return options_; }
  // "mlx5_0 port 1"
  const std::string& name() const { return name_; }
  const DeviceLimits& limits() const { return limits_; }
  VerbsDevice& verbs() const { return *device_; }
  // As it is now.
  VerbResult<Port> port() const { return device_->port(options_.port); }
  // Once more, for its news: they come to each opening.
  VerbResult<std::unique_ptr<VerbsDevice>> open_again() const { return verbs_.open(options_.device); }

  bool has(Role role) const { return domains_[static_cast<size_t>(role)] != nullptr; }
  // has(role)
  VerbsDomain& domain(Role role) const { return *domains_[static_cast<size_t>(role)]; }
  struct Keys {
    uint32_t local;
    uint32_t remote;
  };
  // Of a piece of the registered memory; nullopt: it isn't any.
  std::optional<Keys> keys(Role role, std::span<const std::byte> memory) const;
  size_t registered_bytes() const { return registered_bytes_; }
  size_t regions() const { return regions_.size(); }

  // "mlx5_0 port 1: ibv_create_qp: Cannot allocate memory; ..."
  Error explain(const VerbError& error) const;

 private:
  struct Region {
    std::span<std::byte> memory;
    Role role;
    std::unique_ptr<VerbsMemory> registered;
  };

  Device(Verbs& verbs, RailOptions options);
  Result<void> register_all(Role role, std::span<const std::span<std::byte>> memory);

  Verbs& verbs_;
  RailOptions options_;
  std::string name_;
  std::unique_ptr<VerbsDevice> device_;
  DeviceLimits limits_;
  std::unique_ptr<VerbsDomain> domains_[2];
  std::vector<Region> regions_;  // destroyed before the domains
  size_t registered_bytes_ = 0;
};

// All that can be opened, in the order given; for those that can't, a line each in `problems`. No `wanted`: every port
// of every device.
struct Rails {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::string> problems;
};
Rails open_rails(Verbs& verbs, std::vector<RailOptions> wanted, std::span<const std::span<std::byte>> memory,
                 Roles roles = {});

}  // namespace cairn::srpc::rdma
