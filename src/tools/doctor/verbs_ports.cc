#include "tools/doctor/verbs_ports.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "srpc/verbs/port_facts.h"

namespace cairn::srpc::doctor {
namespace {

using rdma::PortFacts;

PortFacts facts_of(ibv_context& context, uint8_t port) {
  ibv_port_attr attributes{};
  if (ibv_query_port(&context, port, &attributes) == 0) return rdma::port_facts(context, port, attributes);
  return {.device = ibv_get_device_name(context.device), .port = port};
}

}  // namespace

Result<std::vector<PortFacts>> verbs_ports() {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> devices(ibv_get_device_list(&count), ibv_free_device_list);
  // A kernel without RDMA has no such call.
  if (!devices && errno != ENOSYS) return error_from_errno(errno, "ibv_get_device_list");
  if (count == 0) return Error(Errc::not_found, "the kernel knows no RDMA device");
  std::vector<PortFacts> ports;
  Error refused(Errc::io_error);
  for (int i = 0; i < count; ++i) {
    ibv_device* device = devices.get()[i];
    const std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(ibv_open_device(device), ibv_close_device);
    ibv_device_attr attributes{};
    if (!context || ibv_query_device(context.get(), &attributes) != 0) {
      refused = error_from_errno(errno, fmt::format("can't open {}", ibv_get_device_name(device)));
      continue;
    }
    for (uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) ports.push_back(facts_of(*context, port));
  }
  if (ports.empty()) return refused;
  return ports;
}

}  // namespace cairn::srpc::doctor
