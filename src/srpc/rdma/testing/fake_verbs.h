// FakeFabric: hosts, RDMA devices and the network between them, inside one process, below the same calls as the
// system's verbs.
//
// What it does as devices do:
//   - queue pairs go RESET, INIT, RTR, RTS, ERR, and a call in the wrong state fails; sent to one that isn't there or
//     has failed, a request ends with retries_exceeded;
//   - requests complete in order, without a completion when they aren't signaled and don't fail; an entry of the send
//     queue is free when a completion behind it was polled; a full queue refuses;
//   - a SEND that finds no receive posted waits (RNR), for ever or for so many tries;
//   - memory is read when a request is carried out, not when it is posted, unless it is inlined;
//   - keys, bounds, domains and access flags are checked; who reaches beyond loses the connection, at both ends;
//   - a queue pair in error flushes everything that is posted;
//   - completion events come for completions added after the arming, once, through a real descriptor.
//
// Faults, and why SRPC must survive them: any call fails (limits of devices, of locked memory); the network delays
// (hold, deliver), a port goes down for a while or for good, a device is taken out, a process dies at any point;
// completions of different queue pairs come in any order; messages without bytes vanish (some virtual networks do
// that).
//
// Excluded: bytes that change on the way (the link's checksums), completions that never come from a device that works.
//
// What a correct user never does is recorded in violations(), and tests expect none. Everything is deterministic on one
// thread; several threads may use it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma::testing {

class FakeFabric;
class FakeQp;
class FakeOpened;

struct FakeDeviceSpec {
  std::string name = "fake0";
  std::string address = "10.0.0.1";  // its GID is RoCEv2 with this one
  DeviceLimits limits = {
      .queue_pair_depth = 1024, .completion_queue_depth = 4096, .reads_answered = 16, .reads_issued = 16};
  uint32_t inline_bytes = 256;
  uint64_t max_message_bytes = uint64_t{1} << 31;
  uint8_t ports = 1;
};

struct FakeDevice {
  FakeDeviceSpec spec;
  std::vector<Port> ports;
  bool removed = false;
  std::vector<FakeOpened*> openings;
};

// One process, as its verbs.
class FakeHost final : public Verbs {
 public:
  explicit FakeHost(FakeFabric& fabric) : fabric_(fabric) {}

  FakeDevice& add_device(FakeDeviceSpec spec);
  VerbResult<std::vector<Found>> devices() override;
  VerbResult<std::unique_ptr<VerbsDevice>> open(const std::string& name) override;

  // The `nth` call from now on (1: the next), of `verb` or of any, fails with `error`. (Of any: but looks into
  // completion queues, whose number is a matter of time.)
  void fail_call(uint64_t nth, int error, std::optional<Verb> verb = {});
  // Whether that call has come.
  bool failed_call() const;
  // What exists now.
  struct Objects {
    int openings = 0;
    int domains = 0;
    int regions = 0;
    int channels = 0;
    int completion_queues = 0;
    int queue_pairs = 0;
    int total() const { return openings + domains + regions + channels + completion_queues + queue_pairs; }
  };
  Objects objects() const;

  // --- Faults ---
  // The process has died: the network hears nothing of it any more.
  void kill();
  // Of a device of this host. Down: what is sent over it waits for its retries, until give_up() or the port is back.
  void set_port(FakeDevice& device, PortState state, bool tell = true);
  void give_up(FakeDevice& device);
  void remove(FakeDevice& device);

 private:
  friend class FakeFabric;
  friend class FakeOpened;
  friend class FakeQp;
  friend class FakeCq;
  friend class FakeChannel;
  friend class FakeDomain;
  friend class FakeMemory;

  // With the fabric's lock. The error that this call shall have, or 0.
  int fault(Verb verb, const FakeDevice* device);

  FakeFabric& fabric_;
  std::deque<FakeDevice> devices_;
  Objects objects_;
  bool dead_ = false;
  uint64_t fail_in_ = 0;  // calls; 0: never
  int fail_with_ = 0;
  std::optional<Verb> fail_verb_;
};

class FakeFabric {
 public:
  FakeHost& add_host() { return hosts_.emplace_back(*this); }

  // Held: requests wait. deliver() carries out `count` of them and returns how many there were.
  void hold();
  size_t deliver(size_t count);
  void release();
  // Completions of different queue pairs come in an order that the seed decides.
  void shuffle(uint64_t seed) { rng_.emplace(seed); }

  std::vector<std::string> violations() const;
  uint64_t rnr_waits() const;
  uint64_t vanished() const;  // messages without bytes
  uint64_t inlined() const;

 private:
  friend class FakeHost;
  friend class FakeOpened;
  friend class FakeQp;
  friend class FakeCq;
  friend class FakeChannel;
  friend class FakeDomain;
  friend class FakeMemory;

  // All with the lock.
  void blame(std::string what) { violations_.push_back(std::move(what)); }
  FakeQp* find(const Gid::Bytes& gid, uint32_t number);
  size_t progress(size_t count);

  mutable std::mutex mutex_;
  std::deque<FakeHost> hosts_;
  std::vector<FakeQp*> queue_pairs_;
  std::optional<SeededRng> rng_;
  bool held_ = false;
  uint32_t next_number_ = 0x11;
  uint32_t next_key_ = 0x1000;
  std::vector<std::string> violations_;
  uint64_t rnr_waits_ = 0;
  uint64_t vanished_ = 0;
  uint64_t inlined_ = 0;
};

}  // namespace cairn::srpc::rdma::testing
