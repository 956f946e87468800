// The objects of FakeFabric. All they have is guarded by the fabric's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "srpc/rdma/testing/fake_verbs.h"

namespace cairn::srpc::rdma::testing {

class FakeDomain;
class FakeCq;

class FakeOpened final : public VerbsDevice {
 public:
  FakeOpened(FakeHost& host, FakeDevice& device);
  ~FakeOpened() override;
  VerbResult<DeviceLimits> limits() override;
  VerbResult<Port> port(uint8_t port) override;
  VerbResult<std::unique_ptr<VerbsDomain>> make_domain() override;
  VerbResult<std::unique_ptr<VerbsChannel>> make_channel() override;
  VerbResult<std::unique_ptr<VerbsCq>> make_cq(uint32_t depth, VerbsChannel& channel) override;
  VerbResult<std::unique_ptr<VerbsQp>> make_qp(VerbsDomain& domain, VerbsCq& cq, const QpDepths& depths) override;
  int async_fd() const override { return event_.get(); }
  VerbResult<AsyncNews> take_news() override;

  void tell(AsyncNews news);

  FakeHost& host;
  FakeDevice& device;
  int children = 0;  // made from it

 private:
  Fd event_;
  std::deque<AsyncNews> news_;
};

class FakeMemory final : public VerbsMemory {
 public:
  FakeMemory(FakeDomain& domain, std::span<std::byte> memory, Access access, uint32_t key);
  ~FakeMemory() override;
  uint32_t local_key() const override { return key; }
  uint32_t remote_key() const override { return key | 0x80000000U; }

  FakeDomain& domain;
  std::span<std::byte> memory;
  Access access;
  uint32_t key;
};

class FakeDomain final : public VerbsDomain {
 public:
  explicit FakeDomain(FakeOpened& opened);
  ~FakeDomain() override;
  VerbResult<std::unique_ptr<VerbsMemory>> register_memory(std::span<std::byte> memory, Access access) override;

  bool holds(uint32_t local_key, std::span<const std::byte> bytes) const;
  const FakeMemory* find_remote(uint32_t remote_key) const;

  FakeOpened& opened;
  std::vector<FakeMemory*> regions;
  int queue_pairs = 0;
};

class FakeChannel final : public VerbsChannel {
 public:
  explicit FakeChannel(FakeOpened& opened);
  ~FakeChannel() override;
  int fd() const override { return event_.get(); }
  VerbResult<bool> take_event() override;

  void tell();

  FakeOpened& opened;
  int queues = 0;

 private:
  Fd event_;
};

class FakeCq final : public VerbsCq {
 public:
  FakeCq(FakeOpened& opened, FakeChannel& channel, uint32_t depth);
  ~FakeCq() override;
  VerbResult<size_t> poll(std::span<WorkCompletion> out) override;
  VerbResult<void> request_notification() override;

  // `retires`: how many entries of the queue pair's send queue become free when it is polled.
  void add(FakeQp& qp, bool receive, uint32_t retires, WorkCompletion completion);
  void forget(const FakeQp& qp);

  FakeOpened& opened;
  FakeChannel& channel;
  uint32_t depth;
  int queue_pairs = 0;

 private:
  struct Entry {
    FakeQp* qp;
    bool receive;
    uint32_t retires;
    WorkCompletion completion;
  };
  std::deque<Entry> entries_;
  bool armed_ = false;
};

class FakeQp final : public VerbsQp {
 public:
  FakeQp(FakeOpened& opened, FakeDomain& domain, FakeCq& cq, const QpDepths& depths);
  ~FakeQp() override;
  uint32_t number() const override { return number_; }
  uint32_t inline_bytes() const override { return depths_.inline_bytes; }
  VerbResult<void> to_init(uint8_t port, Access access) override;
  VerbResult<void> to_rtr(const Path& path) override;
  VerbResult<void> to_rts(const Sending& sending) override;
  VerbResult<void> to_error() override;
  VerbResult<void> post(const SendRequest& request) override;
  VerbResult<void> post(const ReceiveRequest& request) override;
  VerbResult<void> destroy() override;

  // For the fabric. One request is carried out, or has failed; false: none can be now.
  bool step();
  void give_up();  // the retries of what waits
  void fail();     // to ERR, everything flushed
  bool speaks_over(const FakeDevice& device) const { return &opened_.device == &device; }
  const Gid::Bytes& gid() const { return opened_.device.ports[port_ - 1U].facts.gids[0].bytes; }
  void retired(bool receive, uint32_t entries) { (receive ? receives_used_ : sends_used_) -= receive ? 1 : entries; }
  bool silent() const { return destroyed_ || opened_.host.dead_; }

 private:
  enum class State : uint8_t { reset, init, rtr, rts, error };
  struct Waiting {
    SendRequest request;
    std::vector<std::byte> copy;  // of an inlined one
    uint32_t rnr_tries = 0;
  };

  VerbResult<void> move(Verb verb, State from, State to, bool valid);
  bool port_up() const { return opened_.device.ports[port_ - 1U].facts.state == PortState::active; }
  void complete(CompletionStatus status);
  bool carry_out(FakeQp& peer);
  bool deliver(FakeQp& peer, std::span<const std::byte> bytes);
  bool access(FakeQp& peer);
  size_t reads_waiting() const;

  FakeOpened& opened_;
  FakeDomain& domain_;
  FakeCq& cq_;
  QpDepths depths_;
  uint32_t number_;
  State state_ = State::reset;
  uint8_t port_ = 1;
  Access access_;
  Path path_;
  Sending sending_;
  std::deque<Waiting> sends_;
  std::deque<ReceiveRequest> receives_;
  uint32_t sends_used_ = 0;
  uint32_t receives_used_ = 0;
  uint32_t unsignaled_ = 0;  // carried out since the last completion
  bool destroyed_ = false;
};

}  // namespace cairn::srpc::rdma::testing
