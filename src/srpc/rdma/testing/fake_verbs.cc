#include "srpc/rdma/testing/fake_verbs.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "srpc/rdma/testing/fake_objects.h"

namespace cairn::srpc::rdma::testing {

// --- FakeHost ---

FakeDevice& FakeHost::add_device(FakeDeviceSpec spec) {
  const std::lock_guard lock(fabric_.mutex_);
  FakeDevice& device = devices_.emplace_back();
  const auto address = Address::parse(spec.address, 0);
  ASSERT(address && address->family() == AF_INET);
  for (uint8_t number = 1; number <= spec.ports; ++number) {
    Gid gid{.type = GidType::roce_v2, .netdev = "eth0"};
    // ::ffff:a.b.c.d, the last byte counting the ports.
    const auto& v4 = reinterpret_cast<const sockaddr_in*>(address->raw())->sin_addr.s_addr;
    gid.bytes[10] = gid.bytes[11] = 0xff;
    std::memcpy(gid.bytes.data() + 12, &v4, 4);
    gid.bytes[15] = static_cast<uint8_t>(gid.bytes[15] + number - 1);
    device.ports.push_back({.facts = {.device = spec.name,
                                      .port = number,
                                      .state = PortState::active,
                                      .physical_state = "LinkUp",
                                      .link_layer = LinkLayer::ethernet,
                                      .active_mtu_bytes = 1024,
                                      .max_mtu_bytes = 4096,
                                      .netdev = "eth0",
                                      .netdev_mtu_bytes = 1500,
                                      .gids = {gid}},
                            .max_message_bytes = spec.max_message_bytes});
  }
  device.spec = std::move(spec);
  return device;
}

VerbResult<std::vector<Verbs::Found>> FakeHost::devices() {
  const std::lock_guard lock(fabric_.mutex_);
  if (const int error = fault(Verb::get_device_list, nullptr)) {
    return std::unexpected(VerbError{Verb::get_device_list, error});
  }
  std::vector<Found> found;
  for (const FakeDevice& device : devices_) {
    if (!device.removed) found.push_back({device.spec.name, device.spec.ports});
  }
  return found;
}

VerbResult<std::unique_ptr<VerbsDevice>> FakeHost::open(const std::string& name) {
  const std::lock_guard lock(fabric_.mutex_);
  const auto found = std::ranges::find_if(devices_, [&](const FakeDevice& device) { return device.spec.name == name; });
  if (found == devices_.end()) return std::unexpected(VerbError{Verb::open_device, ENODEV});
  if (const int error = fault(Verb::open_device, &*found)) return std::unexpected(VerbError{Verb::open_device, error});
  return std::make_unique<FakeOpened>(*this, *found);
}

void FakeHost::fail_call(uint64_t nth, int error, std::optional<Verb> verb) {
  const std::lock_guard lock(fabric_.mutex_);
  fail_in_ = nth;
  fail_with_ = error;
  fail_verb_ = verb;
}

bool FakeHost::failed_call() const {
  const std::lock_guard lock(fabric_.mutex_);
  return fail_in_ == 0;
}

FakeHost::Objects FakeHost::objects() const {
  const std::lock_guard lock(fabric_.mutex_);
  return objects_;
}

int FakeHost::fault(Verb verb, const FakeDevice* device) {
  const bool counts = fail_verb_ ? *fail_verb_ == verb : verb != Verb::poll_cq;
  if (fail_in_ > 0 && counts && --fail_in_ == 0) return fail_with_;
  // What is destroyed is, with or without the device.
  return device != nullptr && device->removed && verb != Verb::destroy_qp && verb != Verb::get_async_event &&
                 verb != Verb::poll_cq && verb != Verb::get_cq_event
             ? EIO
             : 0;
}

void FakeHost::kill() {
  const std::lock_guard lock(fabric_.mutex_);
  dead_ = true;
  fabric_.progress(SIZE_MAX);
}

void FakeHost::set_port(FakeDevice& device, PortState state, bool tell) {
  const std::lock_guard lock(fabric_.mutex_);
  for (Port& port : device.ports) {
    port.facts.state = state;
    for (FakeOpened* opened : device.openings) {
      const auto event = state == PortState::active ? AsyncEvent::port_active : AsyncEvent::port_error;
      if (tell) opened->tell({event, port.facts.port});
    }
  }
  if (!fabric_.held_) fabric_.progress(SIZE_MAX);
}

void FakeHost::give_up(FakeDevice& device) {
  const std::lock_guard lock(fabric_.mutex_);
  for (FakeQp* qp : fabric_.queue_pairs_) {
    if (qp->speaks_over(device)) qp->give_up();
  }
}

void FakeHost::remove(FakeDevice& device) {
  const std::lock_guard lock(fabric_.mutex_);
  device.removed = true;
  for (FakeQp* qp : fabric_.queue_pairs_) {
    if (qp->speaks_over(device)) qp->fail();
  }
  for (FakeOpened* opened : device.openings) opened->tell({AsyncEvent::device_fatal, 0});
}

// --- FakeFabric ---

void FakeFabric::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

size_t FakeFabric::deliver(size_t count) {
  const std::lock_guard lock(mutex_);
  return progress(count);
}

void FakeFabric::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  progress(SIZE_MAX);
}

std::vector<std::string> FakeFabric::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

uint64_t FakeFabric::rnr_waits() const {
  const std::lock_guard lock(mutex_);
  return rnr_waits_;
}

uint64_t FakeFabric::vanished() const {
  const std::lock_guard lock(mutex_);
  return vanished_;
}

uint64_t FakeFabric::inlined() const {
  const std::lock_guard lock(mutex_);
  return inlined_;
}

FakeQp* FakeFabric::find(const Gid::Bytes& gid, uint32_t number) {
  for (FakeQp* qp : queue_pairs_) {
    if (qp->number() == number && qp->gid() == gid && !qp->silent()) return qp;
  }
  return nullptr;
}

size_t FakeFabric::progress(size_t count) {
  size_t done = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < queue_pairs_.size(); ++i) {
      while (done < count && queue_pairs_[i]->step()) {
        ++done;
        moved = true;
      }
    }
  }
  return done;
}

}  // namespace cairn::srpc::rdma::testing
