// FaultDevice: a disk with a volatile cache, in memory, for the engine's own tests.
//
// Fault model. Operations take a random time and end in any order. A write is in the cache when it ends, and on stable
// storage when a flush that began afterwards has ended. At a crash every 512-byte sector written since, whether the
// write had ended or not, is there or not, each by itself: torn and reordered writes. Reads, writes and flushes fail on
// demand, and bytes rot on demand (a failed write may still be found after a crash). Left out: a disk that lies about
// flushes (the engine can't survive it, but must notice: set `lie_about_flush`).
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "engine/block_device.h"
#include "reactor/loop.h"

namespace cairn::engine::test {

class FaultDevice final : public BlockDevice {
 public:
  static constexpr uint64_t kSector = 512;

  FaultDevice(Loop& loop, Rng& rng, std::shared_ptr<std::vector<std::byte>> contents)
      : loop_(loop), rng_(rng), contents_(std::move(contents)) {}
  ~FaultDevice() override { ASSERT(under_way_.empty()); }

  void submit(IoRequest& request) override {
    ASSERT(request.offset % kBlockBytes == 0 && request.length % kBlockBytes == 0);
    ASSERT(request.offset + request.length <= contents_->size());
    under_way_.push_back(std::make_unique<Operation>(*this, request));
    Operation& operation = *under_way_.back();
    if (request.op == IoRequest::Op::flush) {
      for (const auto& [number, old] : volatile_) {
        if (old.pending == nullptr) operation.covered.push_back(number);
      }
    }
    if (request.op == IoRequest::Op::write) {
      operation.write = next_write_++;
      // From now on a crash may or may not find it.
      remember_old(request, operation.write);
    }
    ++counts[static_cast<size_t>(request.op)];
    loop_.arm_in(operation.timer, microseconds(static_cast<int64_t>(rng_.below(max_latency_us) + 1)));
  }
  uint64_t size_bytes() const override { return contents_->size(); }
  bool supports_discard() const override { return true; }
  Loop& loop() override { return loop_; }

  // Power is lost: contents() is what the next start finds, and changes no more. What is under way and what still comes
  // ends with io_error, so that the shard can be closed in an orderly way.
  void power_off() {
    ASSERT(!dead_);
    dead_ = true;
    // Newest first: where writes overlap, the older one's bytes are what the newer one remembered.
    for (auto at = volatile_.rbegin(); at != volatile_.rend(); ++at) {
      const Old& old = at->second;
      // All of it, nothing of it, or each sector by itself.
      const uint64_t fate = rng_.below(3);
      for (size_t sector = 0; sector < old.bytes.size(); sector += kSector) {
        const bool survives = fate == 0 || (fate == 1 && rng_.chance(1, 2));
        if (survives && old.pending == nullptr) continue;
        const std::byte* from = survives ? old.pending->data() : old.bytes.data();
        std::memcpy(contents_->data() + old.offset + sector, from + sector, kSector);
      }
    }
    volatile_.clear();
  }

  std::vector<std::byte>& contents() { return *contents_; }
  void rot(uint64_t offset) { (*contents_)[offset] ^= std::byte{1}; }
  size_t under_way() const { return under_way_.size(); }

  // Asked as an operation ends; anything but ok is its result, and a write then has no effect.
  std::function<Errc(const IoRequest&)> fault;
  bool lie_about_flush = false;
  uint64_t max_latency_us = 100;
  uint64_t counts[4] = {};  // by IoRequest::Op

 private:
  struct Operation {
    Operation(FaultDevice& its_device, IoRequest& its_request)
        : device(its_device),
          request(its_request),
          timer([](void* self) { static_cast<Operation*>(self)->end(); }, this) {}
    ~Operation() { device.loop_.disarm(timer); }
    void end() { device.end(*this); }

    FaultDevice& device;
    IoRequest& request;
    Timer timer;
    uint64_t write = 0;
    std::vector<uint64_t> covered;  // by a flush
  };
  // What a write that isn't stable yet covered.
  struct Old {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;                     // before it
    std::unique_ptr<std::vector<std::byte>> pending;  // its own, while it is under way
  };

  void remember_old(const IoRequest& request, uint64_t number) {
    Old old{.offset = request.offset, .bytes = {}, .pending = std::make_unique<std::vector<std::byte>>()};
    for (uint32_t i = 0; i < request.iovec_count; ++i) {
      const auto* from = static_cast<const std::byte*>(request.iovecs[i].iov_base);
      old.pending->insert(old.pending->end(), from, from + request.iovecs[i].iov_len);
    }
    ASSERT(old.pending->size() == request.length);
    old.bytes.resize(request.length);
    std::memcpy(old.bytes.data(), contents_->data() + request.offset, request.length);
    volatile_.emplace(number, std::move(old));
  }

  void end(Operation& operation) {
    IoRequest& request = operation.request;
    Errc result = dead_ ? Errc::io_error : fault ? fault(request) : Errc::ok;
    if (result == Errc::ok) carry_out(operation);
    request.result = result;
    std::erase_if(under_way_, [&](const auto& one) { return one.get() == &operation; });
    request.complete(request);
  }

  void carry_out(Operation& operation) {
    IoRequest& request = operation.request;
    switch (request.op) {
      case IoRequest::Op::write: {
        Old& old = volatile_.at(operation.write);
        std::memcpy(old.bytes.data(), contents_->data() + old.offset, old.bytes.size());
        std::memcpy(contents_->data() + old.offset, old.pending->data(), old.pending->size());
        old.pending.reset();
        break;
      }
      case IoRequest::Op::read: {
        uint64_t at = request.offset;
        for (uint32_t i = 0; i < request.iovec_count; ++i) {
          std::memcpy(request.iovecs[i].iov_base, contents_->data() + at, request.iovecs[i].iov_len);
          at += request.iovecs[i].iov_len;
        }
        break;
      }
      case IoRequest::Op::flush:
        if (lie_about_flush) break;
        for (const uint64_t number : operation.covered) volatile_.erase(number);
        break;
      case IoRequest::Op::discard:
        // Discarded ranges read as anything.
        rng_.fill({contents_->data() + request.offset, request.length});
        break;
    }
  }

  Loop& loop_;
  Rng& rng_;
  bool dead_ = false;
  std::shared_ptr<std::vector<std::byte>> contents_;
  uint64_t next_write_ = 1;
  std::map<uint64_t, Old> volatile_;  // by the order of submission
  std::vector<std::unique_ptr<Operation>> under_way_;
};

}  // namespace cairn::engine::test
