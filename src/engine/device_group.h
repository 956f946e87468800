// Several device operations at once, awaited together.
//
//   DeviceGroup group(device, parts);
//   group.add(IoRequest::Op::read, offset, chain);   // `parts` times at most
//   Errc result = co_await group;                     // submits them; the first error, or ok
#pragma once

#include <boost/container/small_vector.hpp>
#include <coroutine>
#include <cstdint>

#include "engine/block_device.h"
#include "mem/buf_chain.h"

namespace cairn::engine {

class DeviceGroup {
 public:
  DeviceGroup(BlockDevice& device, size_t parts) : device_(device) { parts_.reserve(parts); }
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;
  ~DeviceGroup() { ASSERT(left_ == 0); }

  void add(IoRequest::Op op, uint64_t offset, mem::BufChain memory) {
    Part& part = add_part(op, offset, memory.size());
    part.memory = std::move(memory);
    part.vectors.resize(part.memory.slices().size());
    part.memory.to_iovecs({part.vectors.data(), part.vectors.size()});
  }
  void add_discard(uint64_t offset, uint64_t length) { (void)add_part(IoRequest::Op::discard, offset, length); }

  bool await_ready() const { return parts_.empty(); }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    left_ = parts_.size();
    for (Part& part : parts_) {
      part.iovecs = part.vectors.data();
      part.iovec_count = static_cast<uint32_t>(part.vectors.size());
      device_.submit(part);
    }
  }
  Errc await_resume() const { return first_error_; }

 private:
  struct Part : IoRequest {
    DeviceGroup* group = nullptr;
    mem::BufChain memory;
    boost::container::small_vector<iovec, mem::BufChain::kInline> vectors;

    static void done_one(IoRequest& request) {
      DeviceGroup& group = *static_cast<Part&>(request).group;
      if (request.result != Errc::ok && group.first_error_ == Errc::ok) group.first_error_ = request.result;
      if (--group.left_ == 0) group.device_.loop().post(group.handle_);
    }
  };

  Part& add_part(IoRequest::Op op, uint64_t offset, uint64_t length) {
    ASSERT(parts_.size() < parts_.capacity());  // requests don't move once they are submitted
    Part& part = parts_.emplace_back();
    part.group = this;
    part.op = op;
    part.offset = offset;
    part.length = length;
    part.complete = &Part::done_one;
    return part;
  }

  BlockDevice& device_;
  boost::container::small_vector<Part, 1> parts_;
  size_t left_ = 0;
  Errc first_error_ = Errc::ok;
  std::coroutine_handle<> handle_;
};

}  // namespace cairn::engine
