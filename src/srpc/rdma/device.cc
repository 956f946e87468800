#include "srpc/rdma/device.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/units.h"

namespace cairn::srpc::rdma {
namespace {

std::string locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : format_size(limit.rlim_cur);
}

// What to do about it; empty: nobody knows.
std::string cure_of(const VerbError& error) {
  switch (error.verb) {
    case Verb::get_device_list:
    case Verb::open_device:
      if (error.error == EACCES || error.error == EPERM) return "give this user access to /dev/infiniband/uverbs*";
      if (error.error == ENODEV) return "'rdma link' shows what there is";
      return "check that the device's kernel module is loaded and rdma-core has its provider (ibverbs-providers)";
    case Verb::reg_mr:
      return fmt::format(
          "the limit of locked memory is {} (raise it: 'ulimit -l unlimited', LimitMEMLOCK=infinity, "
          "in a container --ulimit memlock=-1), or the device has no more keys",
          locked_memory_limit());
    case Verb::alloc_pd:
    case Verb::create_comp_channel:
    case Verb::create_cq:
    case Verb::create_qp:
      return fmt::format("the device's limits ('rdma resource show'), or that of locked memory, {}",
                         locked_memory_limit());
    case Verb::modify_qp_rtr:
      return "no way to the peer's address through this port";
    default:
      return "";
  }
}

Errc code_of(int error) {
  if (error == ENOMEM || error == EAGAIN) return Errc::busy;
  if (error == EACCES || error == EPERM) return Errc::permission_denied;
  return Errc::unavailable;
}

}  // namespace

Device::Device(Verbs& verbs, RailOptions options)
    : verbs_(verbs), options_(std::move(options)), name_(fmt::format("{} port {}", options_.device, options_.port)) {}

Device::~Device() = default;

Error Device::explain(const VerbError& error) const {
  const std::string cure = cure_of(error);
  return {code_of(error.error), fmt::format("{}: {}{}{}", name_, error.to_string(), cure.empty() ? "" : "; ", cure)};
}

Result<std::unique_ptr<Device>> Device::open(Verbs& verbs, RailOptions options,
                                             std::span<const std::span<std::byte>> memory, Roles roles) {
  std::unique_ptr<Device> self(new Device(verbs, std::move(options)));
  auto opened = verbs.open(self->options_.device);
  if (!opened) return self->explain(opened.error());
  self->device_ = *std::move(opened);
  auto limits = self->device_->limits();
  if (!limits) return self->explain(limits.error());
  self->limits_ = *limits;
  if (auto port = self->port(); !port) return self->explain(port.error());
  if (roles.client) TRY(self->register_all(Role::client, memory));
  if (roles.server) TRY(self->register_all(Role::server, memory));
  return self;
}

Result<void> Device::register_all(Role role, std::span<const std::span<std::byte>> memory) {
  auto domain = device_->make_domain();
  if (!domain) return explain(domain.error());
  const Access access = {.remote_read = role == Role::client, .remote_write = role == Role::client};
  for (const std::span<std::byte> piece : memory) {
    auto registered = (*domain)->register_memory(piece, access);
    if (!registered) {
      regions_.clear();
      return explain(registered.error()).with_context(fmt::format("registering {}", format_size(piece.size())));
    }
    regions_.push_back({piece, role, *std::move(registered)});
    registered_bytes_ += piece.size();
  }
  domains_[static_cast<size_t>(role)] = *std::move(domain);
  return {};
}

std::optional<Device::Keys> Device::keys(Role role, std::span<const std::byte> memory) const {
  const auto at = reinterpret_cast<uintptr_t>(memory.data());
  // A process has a few arenas at most.
  for (const Region& region : regions_) {
    const auto start = reinterpret_cast<uintptr_t>(region.memory.data());
    if (region.role != role || at < start || at - start > region.memory.size()) continue;
    if (memory.size() > region.memory.size() - (at - start)) continue;
    return Keys{region.registered->local_key(), region.registered->remote_key()};
  }
  return std::nullopt;
}

Rails open_rails(Verbs& verbs, std::vector<RailOptions> wanted, std::span<const std::span<std::byte>> memory,
                 Roles roles) {
  Rails rails;
  if (wanted.empty()) {
    auto found = verbs.devices();
    if (!found) {
      rails.problems.push_back(fmt::format("rdma: {}; {}", found.error().to_string(), cure_of(found.error())));
      return rails;
    }
    for (const Verbs::Found& device : *found) {
      for (uint8_t port = 1; port <= device.ports; ++port) wanted.push_back({.device = device.name, .port = port});
    }
    if (wanted.empty()) rails.problems.emplace_back("rdma: this machine has no RDMA device");
  }
  for (RailOptions& options : wanted) {
    auto device = Device::open(verbs, std::move(options), memory, roles);
    if (device) {
      rails.devices.push_back(*std::move(device));
    } else {
      rails.problems.push_back(device.error().message());
    }
  }
  return rails;
}

}  // namespace cairn::srpc::rdma
