#include "srpc/rdma/qp_address.h"

#include <fmt/format.h>

#include <bit>

#include "srpc/rdma/slot.h"

namespace cairn::srpc::rdma {
namespace {

constexpr uint32_t k24Bits = 0xffffff;

Error nonsense(std::string_view what, uint64_t value) {
  return {Errc::protocol_error, fmt::format("rdma: the peer's {} is {}, which can't be", what, value)};
}

}  // namespace

Result<void> check_remote(const QpAddress& remote, const QpAddress& mine) {
  if (remote.version != QpAddress::kVersion) {
    return Error(Errc::unsupported, fmt::format("rdma: the peer's address is of version {}, this side knows {}",
                                                remote.version, QpAddress::kVersion));
  }
  if (remote.link_layer != mine.link_layer) {
    return Error(Errc::unsupported, "rdma: one side is on InfiniBand, the other on Ethernet");
  }
  if (remote.qpn.get() == 0 || remote.qpn.get() > k24Bits) return nonsense("queue pair", remote.qpn);
  if (remote.psn.get() > k24Bits) return nonsense("packet number", remote.psn);
  if (remote.slots.get() < kMinSlots || remote.slots.get() > kMaxSlots) return nonsense("slot count", remote.slots);
  if (remote.slot_bytes.get() < kMinSlotBytes || remote.slot_bytes.get() > kMaxSlotBytes) {
    return nonsense("slot size", remote.slot_bytes);
  }
  if (remote.mtu.get() < 256 || remote.mtu.get() > 4096 || !std::has_single_bit(remote.mtu.get())) {
    return nonsense("MTU", remote.mtu);
  }
  if (remote.reads.get() == 0 || remote.reads.get() > 255) return nonsense("number of READs", remote.reads);
  if (remote.gid == decltype(remote.gid){}) return nonsense("GID", 0);
  return {};
}

}  // namespace cairn::srpc::rdma
