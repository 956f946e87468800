// QpAddress: what the two sides of an RDMA connection tell each other before it works, over the connection that they
// have already. It travels as it stands here.
#pragma once

#include <array>
#include <cstdint>

#include "base/endian.h"
#include "base/status.h"
#include "srpc/stream/one_sided.h"

namespace cairn::srpc::rdma {

using stream::Role;

struct QpAddress {
  static constexpr uint8_t kVersion = 1;

  uint8_t version = kVersion;
  uint8_t link_layer = 0;       // 1 InfiniBand, 2 Ethernet (RoCEv2); both sides must be of the same
  Le16 lid;                     // InfiniBand; else 0
  Le32 qpn;                     // 24 bits, as the PSN
  Le32 psn;                     // of the first packet that the sender of this will send
  Le32 slot_bytes;              // the longest SEND that it takes, header included
  std::array<uint8_t, 16> gid;  // RoCEv2 with IPv4: ::ffff:a.b.c.d
  Le16 slots;                   // receives that it keeps posted: the other side's credits
  Le16 mtu;                     // of the path, bytes: the smaller one of both sides' is used
  Le16 reads;                   // client: READs that it answers at a time; server: READs that it begins at a time
  Le16 zero;
};
static_assert(sizeof(QpAddress) == 40 && alignof(QpAddress) == 1);

// What must hold whoever the peer is. Errors: protocol_error (values that make no sense), unsupported (a version or
// link layer that doesn't fit `mine`).
Result<void> check_remote(const QpAddress& remote, const QpAddress& mine);

}  // namespace cairn::srpc::rdma
